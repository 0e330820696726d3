"""``hpcmoe list`` and ``hpcmoe parameters``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hpcmoe import catalog, compute, design, parameters
from hpcmoe.model import load_model
from hpcmoe.overrides import NOT_SCALAR
from hpcmoe.parameters import Parameter, Value
from hpcmoe.studyfile import read_study


def list_keys(arguments: argparse.Namespace) -> int:
    if arguments.kinds:
        for kind in arguments.kinds:
            print("\n".join(describe(kind)))
        return 0
    patterns = arguments.patterns or ["*"]
    keys = read_study(arguments.study).select(patterns) if arguments.study else design.select(patterns)
    print("\n".join(map(str, keys)))
    return 0


def describe(kind: str) -> Iterator[str]:
    """One line per catalog entry, and for models what they compute."""
    for name in catalog.names(kind):
        entry = catalog.load(kind, name)
        about = f": {entry['about']}" if "about" in entry else ""
        yield f"{name:<24}{entry.get('title', name)}{about}"
        if kind == "models":
            yield from _describe_model(name)


def _describe_model(name: str) -> Iterator[str]:
    model = load_model(name)
    experts = f"{model.routed_experts} experts of width {model.moe_intermediate}, {model.top_k} per token"
    yield (
        f"    hidden {model.hidden_size}, {model.layers} layers ({model.dense_layers} dense), "
        f"{experts if model.has_experts else 'no experts'}"
    )
    for row in compute.compare(model, catalog.study()["tokens"]):
        calibrated = "not calibrated" if row.calibrated is None else f"{row.calibrated / 1e12:.3f} calibrated"
        relative = "" if row.relative is None else f" ({row.relative:+.1%})"
        yield (
            f"    {row.part} TFLOP at {catalog.study()['tokens']} tokens: {calibrated}, "
            f"{row.first_principles / 1e12:.3f} from first principles{relative}"
        )


def list_parameters(arguments: argparse.Namespace) -> int:
    for name in arguments.names or [*parameters.PARAMETERS, *NOT_SCALAR]:
        if name in NOT_SCALAR:
            allowed, about = NOT_SCALAR[name]
            print(f"{name}  allowed: {allowed}\n    {about}")
        else:
            print("\n".join(parameter_lines(parameters.find(name, extra=NOT_SCALAR))))
    return 0


def parameter_lines(parameter: Parameter) -> Iterator[str]:
    """Name, unit, the two defaults and the allowed values, then the help."""
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    defaults = _text(parameter, parameter.default)
    if parameter.section != "workload" and parameter.upstream_default != parameter.default:
        defaults += f", upstream {_text(parameter, parameter.upstream_default)}"
    key = f"; upstream key {parameter.upstream_key}" if parameter.upstream_key else ""
    yield f"{parameter.name}{unit}  default {defaults}; allowed: {parameter.allowed()}{key}"
    yield f"    {parameter.section}: {parameter.help}"


def _text(parameter: Parameter, value: Value | None) -> str:
    return "must be given" if value is None else parameter.text(value)
