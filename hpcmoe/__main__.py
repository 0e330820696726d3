"""``python -m hpcmoe``, and the installed command."""

import sys

from hpcmoe import start_up


def main() -> int:
    """Prepares for Ctrl-C before the imports begin."""
    start_up.end_on_interrupt()
    from hpcmoe.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
