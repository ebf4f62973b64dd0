"""What the cost model predicts against what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from zeroproof_report import units
from zeroproof_report.figures.drawing import (
    BLACK,
    Drawn,
    Figure,
    Looks,
    finish,
    format_log_axis,
    panels,
    plain,
    seconds_tick,
)
from zeroproof_report.record import Record

_BAND = 0.10
_STEPS = "steps"
_BAND_COLOUR = "#dddddd"


@dataclass(frozen=True)
class _Point:
    what: str
    algorithm: str
    measured: float
    predicted: float
    used_for_fit: bool


def geometric_mean_error(ratios: list[float]) -> float | None:
    """Of predicted over measured: how far off they are, either way, as a part of 1."""
    if not ratios:
        return None
    return math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios)) - 1


def _points(record: Record) -> list[_Point]:
    operations = [
        _Point(r.op, r.algorithm, r.timing.median, r.prediction.seconds, r.prediction.used_for_fit)
        for r in record.operations
        if r.prediction
    ]
    steps = [
        _Point(
            _STEPS, s.algorithm, s.timing.median, s.prediction.seconds, s.prediction.used_for_fit
        )
        for s in record.stages
        if s.prediction
    ]
    return operations + steps


def _error_in_words(points: list[_Point], used_for_fit: bool) -> str:
    chosen = [p for p in points if p.used_for_fit == used_for_fit]
    error = geometric_mean_error([p.predicted / p.measured for p in chosen])
    name = "fitted" if used_for_fit else "held out"
    if error is None:
        return f"{name}: none"
    return f"{name}: {len(chosen)}, error {units.per_cent(error)}"


def _marker(used_for_fit: bool) -> str:
    return "o" if used_for_fit else "^"


def _draw_panel(axis: Any, points: list[_Point], looks: Looks) -> None:
    values = [value for p in points for value in (p.measured, p.predicted)]
    ends = [min(values) / 1.6, max(values) * 1.6]
    axis.fill_between(
        ends,
        [end / (1 + _BAND) for end in ends],
        [end * (1 + _BAND) for end in ends],
        color=_BAND_COLOUR,
        linewidth=0,
        zorder=1,
    )
    axis.plot(ends, ends, color=BLACK, linewidth=1, zorder=2)
    for point in points:
        colour = looks[point.algorithm].colour
        axis.plot(
            point.measured,
            point.predicted,
            linestyle="none",
            marker=_marker(point.used_for_fit),
            markersize=7,
            markerfacecolor="none" if point.used_for_fit else colour,
            markeredgecolor=colour,
            markeredgewidth=1.4,
            zorder=3,
        )
    # A legend of its own: the errors are of these points.
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=_marker(fit),
            color="#333333",
            markerfacecolor="none" if fit else "#333333",
            label=_error_in_words(points, fit),
        )
        for fit in (True, False)
        if any(p.used_for_fit == fit for p in points)
    ]
    axis.legend(handles=handles, loc="upper left", fontsize=9)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(ends)
    axis.set_ylim(ends)
    axis.set_xlabel("measured")
    axis.set_ylabel("predicted")
    format_log_axis(axis.xaxis, seconds_tick)
    format_log_axis(axis.yaxis, seconds_tick)


def _figure(number: int, record: Record, points: list[_Point], looks: Looks) -> Figure:
    kinds = list(dict.fromkeys(p.what for p in points))
    operations = [p for p in points if p.what != _STEPS]
    figure, axes = panels(len(kinds), height=4.2, share=False)
    for axis, kind in zip(axes, kinds):
        _draw_panel(axis, [p for p in points if p.what == kind], looks)
        axis.set_title(kind if kind != _STEPS else "steps, predicted from their collectives alone")
    handles: list[Any] = [
        Line2D([], [], color=looks[a].colour, linewidth=5, label=plain(a))
        for a in dict.fromkeys(p.algorithm for p in points)
    ]
    handles.append(Line2D([], [], color=BLACK, linewidth=1, label="equal"))
    handles.append(Patch(color=_BAND_COLOUR, label=f"within {_BAND:.0%}"))
    return finish(
        figure,
        f"predictions-{number}",
        f"Predicted and measured times, {plain(record.label)}, {record.ranks} ranks",
        "Times that the cost model predicts over the measured medians, a point for each size; "
        "points on the diagonal are predicted exactly. Of all operations, "
        f"{_error_in_words(operations, True)}; {_error_in_words(operations, False)}, as geometric "
        "means. A step is predicted as its collectives one after the other, without all else.",
        handles,
    )


def draw(records: list[Record], looks: Looks) -> Drawn:
    """A figure for each record, a panel for each operation."""
    drawn = Drawn()
    for number, record in enumerate(records, 1):
        points = _points(record)
        if points:
            drawn.figures.append(_figure(number, record, points, looks))
        else:
            drawn.left_out.append(
                f"Predictions for {record.label}: the record holds none; `zeroproof bench --fit` "
                "makes some."
            )
    return drawn
