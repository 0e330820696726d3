"""`python -m hpcmoe.sweep`."""

import sys

from hpcmoe.sweep import main

if __name__ == "__main__":
    sys.exit(main(process_ends=True))
