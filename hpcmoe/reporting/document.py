"""A report before rendering."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpcmoe.analysis import Figure, Notice, Section, Table


@dataclass(frozen=True)
class Document:
    """``origin``: name and value of what identifies the results file, in order.  ``pages``: run key to the
    page on that run, relative to the report.  ``reading``: terms and what they mean."""

    title: str
    origin: tuple[tuple[str, str], ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...]
    pages: Mapping[str, str] = field(default_factory=dict)
    reading: tuple[tuple[str, str], ...] = ()

    def tables(self) -> Iterator[Table]:
        for section in self.sections:
            yield from (item for item in section.items if isinstance(item, Table))

    def figures(self) -> Iterator[Figure]:
        for section in self.sections:
            yield from (item for item in section.items if isinstance(item, Figure))


SCALED = "scaled"

READING = (
    (
        "Times",
        (
            "are those of the bottleneck rank, the last to complete (the lowest on a tie), in "
            "seconds. wall = GPU + communication."
        ),
    ),
    (
        "Means",
        (
            "are arithmetic over a set; a ratio of conditions is a ratio of means; the communication "
            "fraction of a set is mean communication over mean wall time."
        ),
    ),
    (
        "Sets per model",
        (
            "S_full: all 192 runs. S_feedback: the three modes with rate feedback, 144. S_RoCE: the two "
            "RoCE modes, 96. S_network: topologies t1 to t5, 40 per mode."
        ),
    ),
    (
        "difference",
        (
            "is (ours - published) / published in percent; in percentage points (pp) where the value is a "
            "relative difference itself; plain for counts; same or differs for names."
        ),
    ),
    (
        "partial",
        "marks a value over an incomplete set, with its n. It is never compared with the published value.",
    ),
    ("gap", "marks a value that no run of this file gives."),
    (
        SCALED,
        (
            "marks a full-model estimate: time of the layers simulated, times all layers over those "
            "simulated. It is not simulated. It is given only for models whose layers are all alike."
        ),
    ),
)
"""How to read a report on the published study: term and meaning."""

OWN_READING = (
    READING[0],
    (
        "Ratios",
        (
            "are of two runs that are equal in every factor but one. Their mean is geometric, so that "
            "turning the comparison round turns it over."
        ),
    ),
    (
        "Communication fraction",
        "is communication over wall time of the bottleneck rank.",
    ),
)
"""The same for a study of the user's own."""
