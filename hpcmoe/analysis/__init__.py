"""Tables of the study from a table of runs: pure functions, no files, no rendering."""

from collections.abc import Mapping

from hpcmoe.analysis.claim_list import judge_claims
from hpcmoe.analysis.claims import Claim, claims_table, numbers_table
from hpcmoe.analysis.facts import ModelFacts
from hpcmoe.analysis.notices import notices
from hpcmoe.analysis.own import OwnStudy, holds_published, is_own, own_study
from hpcmoe.analysis.runtable import RunTable, from_results, from_rows
from hpcmoe.analysis.study import Study, build_study
from hpcmoe.analysis.table import Cell, Column, Figure, Notice, Quantity, Section, Table
from hpcmoe.analysis.tables_design import design_tables
from hpcmoe.analysis.tables_factors import factor_tables
from hpcmoe.analysis.tables_matched import matched_tables
from hpcmoe.analysis.tables_model import Published, architecture_table, model_tables
from hpcmoe.analysis.tables_own import own_notices, own_sections
from hpcmoe.analysis.tables_runs import overview_tables, points_table, runs_table

__all__ = [
    "Cell",
    "Claim",
    "Column",
    "Figure",
    "ModelFacts",
    "Notice",
    "OwnStudy",
    "Quantity",
    "RunTable",
    "Section",
    "Study",
    "Table",
    "build_sections",
    "build_study",
    "claims_table",
    "from_results",
    "from_rows",
    "holds_published",
    "is_own",
    "judge_claims",
    "notices",
    "numbers_table",
    "own_notices",
    "own_sections",
    "own_study",
]


def build_sections(study: Study, published: Published, facts: Mapping[str, ModelFacts]) -> list[Section]:
    """Everything a report shows, in order."""
    return [
        Section("Overview", tuple(overview_tables(study))),
        Section("Design of the study", tuple(design_tables(facts, published))),
        Section(
            "Single runs",
            (points_table(study, published),),
            "Every single run the study publishes a time for, beside ours.",
        ),
        Section("Each model", (*model_tables(study, published), architecture_table(facts, published))),
        Section("Effect of each factor", tuple(factor_tables(study, published))),
        Section("Models against each other", tuple(matched_tables(study, published))),
        Section("All runs", (runs_table(study.runs),)),
    ]
