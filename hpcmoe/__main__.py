"""``python -m hpcmoe``."""

import sys

from hpcmoe.cli import main

if __name__ == "__main__":
    sys.exit(main())
