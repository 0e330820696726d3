"""What a reader must know before looking at any number of a report."""

import json
from collections.abc import Mapping
from typing import Any

from hpcmoe import design
from hpcmoe.analysis import sets
from hpcmoe.analysis.study import STUDY_TOKENS, Coverage, Study, moe_layers_asked
from hpcmoe.analysis.table import Notice


def notices(study: Study) -> list[Notice]:
    """Scope of the runs first, then holes, failures, changed parameters and runs outside the study."""
    found = [
        _scope_notice(study),
        _sample_notice(study),
        _overrides_notice(study.runs.attrs),
        _outside_notice(study),
    ]
    return [notice for notice in found if notice is not None]


def _scope_notice(study: Study) -> Notice:
    tokens = study.runs.attrs.get("tokens", "unknown")
    asked = moe_layers_asked(study.runs)
    layers = "all layers" if asked is None else f"{asked} MoE layer{'s' if asked != 1 else ''} of each model"
    held = f"Simulated: {tokens} tokens per rank, {layers}."
    models = [m for m in study.simulated.models if m in study.runs.text["model"]]
    if study.coverage(models) is Coverage.FULL:
        return Notice(f"{held} Times stand for the full models, as the published ones do.")
    details = tuple(study.scopes[m].reason or f"{m}: all layers, comparable" for m in models)
    why = (
        f"The published study ran all layers of each model with {STUDY_TOKENS} tokens per rank. Where only "
        "layers were left out and all layers of a model are alike, a full-model estimate stands beside our "
        "value, marked as scaled and not simulated; only that estimate is compared with the published value."
    )
    return Notice(
        f"{held} These times are NOT comparable with the published full-model times. {why}", True, details
    )


def _sample_notice(study: Study) -> Notice | None:
    statuses, runs = study.runs.text["status"], study.runs
    study_keys = {str(key) for key in design.all_runs()}
    present = sum(s == "ok" and key in study_keys for s, key in zip(statuses, runs.text["key"], strict=True))
    if present == len(study_keys):
        return None
    unplanned = len(study_keys.difference(runs.text["key"]))
    return Notice(
        f"{present} of the study's {len(study_keys)} runs present; {unplanned} are not planned in this file. "
        f"In the file {runs.count('failed')} failed and {runs.count('missing')} have not run yet. Values "
        "over incomplete sets are marked partial and not compared.",
        True,
    )


def _overrides_notice(attrs: Mapping[str, Any]) -> Notice | None:
    """Parameters that differ from the study's.  An unreadable design says so instead of passing."""
    text = attrs.get("design")
    if not text:
        return None
    try:
        overrides = json.loads(text).get("overrides") or {}
    except (TypeError, ValueError, AttributeError):
        return Notice(
            "The design recorded in this file cannot be read: changed parameters are unknown.", True
        )
    if not overrides:
        return None
    shown = overrides.items() if isinstance(overrides, Mapping) else enumerate(overrides)
    return Notice(
        "Parameters were changed from the study's values; differences from published values include "
        "the effect of that.",
        True,
        tuple(f"{name} = {value}" for name, value in shown),
    )


def _outside_notice(study: Study) -> Notice | None:
    runs = study.runs
    known = {"model": set(design.MODELS), **{factor: set(levels) for factor, levels in sets.LEVELS.items()}}
    outside = {factor: sorted(set(runs.text[factor]) - levels) for factor, levels in known.items()}
    details = tuple(f"{factor}: {', '.join(levels)}" for factor, levels in outside.items() if levels)
    if not details:
        return None
    return Notice(
        "This file holds runs outside the published study. Other models have their own rows without "
        "published values; runs with other levels are listed under all runs only.",
        False,
        details,
    )
