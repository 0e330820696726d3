"""The results file: schema.py says what is in it, docs/results-file.md shows it.

layout creates a file, rows and spool store finished runs, merge completes it, reader reads it.
"""

from hpcmoe.store.reader import Results, open_results

__all__ = ["Results", "open_results"]
