"""One module per subcommand: from parsed arguments to output. The command line imports them on use."""
