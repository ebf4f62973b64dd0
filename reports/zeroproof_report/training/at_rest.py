"""Bytes at rest by category, beside the formula."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import Patch

from zeroproof_report.figures.drawing import Drawn, Figure, finish
from zeroproof_report.training.bars import HEIGHT, measured_runs, run_axes
from zeroproof_report.training.looks import COLOURS, MEGA, handles_of
from zeroproof_report.training.record import CATEGORIES, MODEL_STATES, Run
from zeroproof_report.units import three_digits

# Bytes of an element, as section 3.1 of the ZeRO paper counts them.
_MIXED = {"parameter": 2, "gradient": 2, "master": 4, "momentum": 4, "variance": 4}
_FP32 = {"parameter": 4, "gradient": 4, "master": 0, "momentum": 4, "variance": 4}
# From which stage on a rank holds only its part.
_PARTITIONED_FROM = {"parameter": 3, "gradient": 2, "master": 1, "momentum": 1, "variance": 1}


def formula_by_state(run: Run) -> dict[str, float]:
    """The parts of the formula's bytes. Their sum is `run.nominal_bytes`."""
    widths = _FP32 if run.plan.precision == "fp32" else _MIXED
    return {
        state: widths[state]
        * run.rank_parameters
        / (run.plan.ranks if run.plan.stage >= _PARTITIONED_FROM[state] else 1)
        for state in MODEL_STATES
    }


def _stack(axis: Any, place: float, values: dict[str, float], is_formula: bool) -> None:
    left = 0.0
    for category in CATEGORIES:
        value = values.get(category, 0) / MEGA
        axis.barh(
            place,
            value,
            HEIGHT,
            left=left,
            color=COLOURS[category],
            alpha=0.5 if is_formula else 1,
            hatch="///" if is_formula else None,
            edgecolor="white",
            linewidth=0.6,
        )
        left += value
    axis.annotate(
        three_digits(left),
        (left, place),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
    )


def _figure(runs: list[Run]) -> Figure:
    figure, (axis,) = run_axes(runs, panels=1, bars_of_run=2)
    for place, run in enumerate(runs):
        measured: dict[str, float] = dict(run.measured.at_rest)
        _stack(axis, place - HEIGHT / 2, measured, False)
        _stack(axis, place + HEIGHT / 2, formula_by_state(run), True)
    longest = max(max(run.measured.at_rest_total, run.nominal_bytes) for run in runs)
    axis.set_xlim(0, 1.07 * longest / MEGA)
    axis.set_xlabel("bytes of a rank between steps, in MB = 1e6 bytes")
    handles = handles_of(c for run in runs for c, b in run.measured.at_rest.items() if b > 0)
    handles.append(Patch(facecolor="#666666", label="upper bar: measured"))
    handles.append(
        Patch(facecolor="#bbbbbb", hatch="///", edgecolor="white", label="lower bar: formula")
    )
    return finish(
        figure,
        "at-rest",
        "Bytes at rest by category, beside the formula",
        "Bytes that a rank holds between two steps, of the rank that holds the most: as measured, "
        "and below it what the formula of the stage gives, without the padding that makes parts "
        "equal.",
        handles,
    )


def draw(runs: list[Run]) -> Drawn:
    shown, left_out = measured_runs(runs, "Bytes at rest")
    return Drawn([_figure(shown)] if shown else [], left_out)
