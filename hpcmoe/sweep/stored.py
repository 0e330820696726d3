"""What a results file was made with, as options of a sweep."""

from __future__ import annotations

from hpcmoe.placement import CONTIGUOUS, parse
from hpcmoe.store.reader import Results
from hpcmoe.studyfile import from_json
from hpcmoe.sweep.arguments import Options, of_study


def stored_options(results: Results) -> Options:
    """The options that decide what the runs of an open file are."""
    made = results.design
    select, traces = tuple(made["select"]), bool(made["traces"])
    if "study" not in made:
        placed = parse(made.get("placement", CONTIGUOUS))  # files of earlier versions do not say it
        fields = (made["tokens"], made["layers"], made["overrides"], traces)
        return Options(results.path, select, *fields, placement=placed)
    return Options(results.path, select, traces=traces, **of_study(from_json(made["study"])))
