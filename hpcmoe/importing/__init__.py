"""Takes runs of another program into a results file, and says what that program does not report."""

from hpcmoe.importing.folder import Imported, read_folder
from hpcmoe.importing.labels import labelled
from hpcmoe.importing.storing import add_run

__all__ = ["Imported", "add_run", "labelled", "read_folder"]
