"""Time of a step, by stage and algorithm."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from zeroproof_report import units
from zeroproof_report.figures.drawing import (
    BLACK,
    SKY,
    VERMILLION,
    Drawn,
    Figure,
    finish,
    format_axis,
    outer_label,
    panels,
    plain,
    seconds_tick,
)
from zeroproof_report.figures.stages import (
    Panel,
    by_conditions,
    conditions_in_words,
    label_bars,
    places_of,
)
from zeroproof_report.record import Conditions, Record, Stage

_COMPUTING, _WAITING = SKY, VERMILLION


def _draw_bars(axis: Any, stages: list[Stage]) -> None:
    places = places_of(stages)
    computing = [s.computing_seconds for s in stages]
    axis.bar(places, computing, 0.8, color=_COMPUTING)
    axis.bar(
        places, [s.communication_seconds for s in stages], 0.8, bottom=computing, color=_WAITING
    )
    medians = [s.timing.median for s in stages]
    axis.errorbar(
        places,
        medians,
        yerr=[
            [s.timing.median - s.timing.lowest for s in stages],
            [s.timing.highest - s.timing.median for s in stages],
        ],
        fmt="none",
        ecolor="#333333",
        capsize=3,
        linewidth=1.2,
    )
    predicted = [(p, s.prediction.seconds) for p, s in zip(places, stages) if s.prediction]
    axis.plot(
        [place for place, _ in predicted],
        [value for _, value in predicted],
        linestyle="none",
        marker="D",
        markersize=6,
        markerfacecolor="white",
        markeredgecolor=BLACK,
        markeredgewidth=1.4,
    )
    label_bars(axis, stages, places)


def _figure(number: int, conditions: Conditions, shown: list[Panel]) -> Figure:
    # Links of other speeds: each panel has its own scale.
    figure, axes = panels(len(shown), height=4.2, share=False)
    for axis, (record, stages) in zip(axes, shown):
        _draw_bars(axis, stages)
        axis.set_title(plain(record.label))
        format_axis(axis.yaxis, seconds_tick)
    outer_label(axes, "time of a step")
    every = [s for _, stages in shown for s in stages]
    handles: list[Any] = [
        Patch(color=_WAITING, label="waiting for collectives"),
        Patch(color=_COMPUTING, label="computing, and all else"),
        Line2D([], [], color="#333333", marker="_", label="lowest to highest of all repeats"),
    ]
    if any(s.prediction for s in every):
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker="D",
                markerfacecolor="white",
                markeredgecolor=BLACK,
                markeredgewidth=1.4,
                label="predicted for the collectives",
            )
        )
    fastest = min(every, key=lambda s: s.timing.median)
    return finish(
        figure,
        f"steps-{number}",
        f"Time of a step by stage, {conditions_in_words(conditions)}",
        "Time of one training step by stage and algorithm, with waiting for collectives and all "
        "else apart, of the rank that was slowest in the median repeat; a panel for each topology. "
        f"The fastest is stage {fastest.stage} by {fastest.algorithm} with "
        f"{units.seconds(fastest.timing.median)}.",
        handles,
    )


def draw(records: list[Record]) -> Drawn:
    """A figure for each set of conditions, a panel for each record."""
    drawn = Drawn()
    for number, (conditions, shown) in enumerate(by_conditions(records).items(), 1):
        drawn.figures.append(_figure(number, conditions, shown))
    if not drawn.figures:
        drawn.left_out.append("Times of steps: no record holds whole steps.")
    elif not any(s.prediction for record in records for s in record.stages):
        drawn.left_out.append("Predicted times of steps: no record holds any.")
    return drawn
