"""Studies of the user's own: a YAML file of factors, settings and variants, checked and expanded to runs."""

from hpcmoe.studyfile.definition import Level, RunSettings, StudyDesign, from_json
from hpcmoe.studyfile.example import write_example
from hpcmoe.studyfile.reading import only_study, read_study

__all__ = ["Level", "RunSettings", "StudyDesign", "from_json", "only_study", "read_study", "write_example"]
