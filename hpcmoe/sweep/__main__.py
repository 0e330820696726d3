"""`python -m hpcmoe.sweep`."""

import sys

from hpcmoe.sweep.app import main

if __name__ == "__main__":
    sys.exit(main())
