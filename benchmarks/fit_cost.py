"""Fits the cost model of hpcmoe/sweep/cost.py to the recorded run times of results files.

    python benchmarks/fit_cost.py STUDY.h5 [MORE.h5 ...] [--write]

Of each finished run it takes the CPU seconds in /provenance/runs and the packet-hops that the model counts
from the key. For a given base_s what is left is fitted in logarithms,

    log(seconds - base_s) - log(hops) = -log(hops_per_second) + sum of log(factor of each term's level)

by least squares with a small penalty on every factor, so that levels which are not in the files keep 1. Of
the values of base_s below the shortest time, the one that predicts best is taken. It prints how far
predictions are off, and with --write replaces hpcmoe/sweep/cost.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from hpcmoe.design import RunKey  # noqa: E402
from hpcmoe.store import open_results  # noqa: E402
from hpcmoe.sweep import cost  # noqa: E402

PENALTY = 0.01
BASE_SHARES = np.linspace(0.0, 0.98, 50)
"""Values of base_s to try, as shares of the shortest time."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit the cost model to recorded run times.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.h5")
    parser.add_argument("--write", action="store_true", help="replace hpcmoe/sweep/cost.json")
    options = parser.parse_args(argv)
    runs = [run for file in options.files for run in recorded(file)]
    fitted = fit(*zip(*runs, strict=True)) | {"fitted_to": f"{len(runs)} runs"}
    report(runs, fitted)
    if options.write:
        text = json.dumps(fitted, indent=1) + "\n"
        (ROOT / "hpcmoe" / "sweep" / "cost.json").write_text(text)
    return 0


def recorded(file: Path) -> list[tuple[RunKey, float, float]]:
    """(key, counted packet-hops, CPU seconds) of each finished run."""
    with open_results(file) as results:
        tokens, layers = int(results.attrs["tokens"]), int(results.attrs["layers"])
        done = results.runs["status"] == "ok"
        keys = [RunKey.parse(key) for key in results.runs["key"][done].tolist()]
        seconds = results.provenance()["runs"]["seconds"][done].tolist()
    hops = [cost.packet_hops(key, tokens, None if layers < 0 else layers) for key in keys]
    return list(zip(keys, hops, seconds, strict=True))


def fit(keys: Sequence[RunKey], hops: Sequence[float], seconds: Sequence[float]) -> dict[str, object]:
    """base_s, hops_per_second and factors; at least one run."""
    fits = [fit_with_base(keys, hops, seconds, share * min(seconds)) for share in BASE_SHARES]
    return min(fits, key=lambda fitted: misfit(keys, hops, seconds, fitted))


def misfit(
    keys: Sequence[RunKey], hops: Sequence[float], seconds: Sequence[float], fitted: dict[str, object]
) -> float:
    """Sum of squared logarithms of predicted over recorded."""
    guesses = np.array([predicted(key, count, fitted) for key, count in zip(keys, hops, strict=True)])
    return float(np.sum(np.log(guesses / np.array(seconds)) ** 2))


def fit_with_base(
    keys: Sequence[RunKey], hops: Sequence[float], seconds: Sequence[float], base_s: float
) -> dict[str, object]:
    target = np.log(np.array(seconds) - base_s) - np.log(np.array(hops))
    names = sorted({name for key in keys for name in cost.term_names(key)})
    matrix = np.zeros((len(keys), len(names)))
    for row, key in zip(matrix, keys, strict=True):
        row[[names.index(name) for name in cost.term_names(key)]] = 1.0
    mean = target.mean()
    left = matrix.T @ matrix + PENALTY * np.eye(len(names))
    logs = np.linalg.solve(left, matrix.T @ (target - mean))
    factors = {name: float(f"{np.exp(log):.4g}") for name, log in zip(names, logs, strict=True)}
    return {
        "base_s": float(f"{base_s:.3g}"),
        "hops_per_second": float(f"{np.exp(-mean):.4g}"),
        "factors": factors,
    }


def predicted(key: RunKey, hops: float, fitted: dict[str, object]) -> float:
    factors = fitted["factors"]
    assert isinstance(factors, dict)
    product = float(np.prod([factors.get(name, 1.0) for name in cost.term_names(key)]))
    return float(fitted["base_s"]) + hops / float(fitted["hops_per_second"]) * product  # type: ignore[arg-type]


def report(runs: Sequence[tuple[RunKey, float, float]], fitted: dict[str, object]) -> None:
    ratios = np.array([predicted(key, hops, fitted) / seconds for key, hops, seconds in runs])
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    total = sum(seconds for _, _, seconds in runs)
    guess = sum(predicted(key, hops, fitted) for key, hops, _ in runs)
    print(f"{len(runs)} runs, {total:.0f} CPU seconds; predicted {guess:.0f}")
    print(f"predicted over recorded: median {middle:.2f}, 5 to 95 % {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    sys.exit(main())
