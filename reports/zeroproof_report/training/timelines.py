"""Live bytes by category over one step, of each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from zeroproof_report.figures.drawing import BLACK, Drawn, Figure, finish
from zeroproof_report.training.looks import COLOURS, MEGA, handles_of, label_of
from zeroproof_report.training.record import CATEGORIES, Run
from zeroproof_report.units import three_digits

_GREY = "#777777"
_WIDTH, _HEIGHT = 11.0, 5.2
_SHADES = ("#ffffff", "#ececec")
_LETTER = 0.0085  # of the axis, about, at the size of phases' names
_LINE = 0.052  # of the axis, at the size of the formulas' labels


@dataclass(frozen=True)
class Band:
    """A phase, in milliseconds."""

    name: str
    begin: float
    end: float

    @property
    def middle(self) -> float:
        return (self.begin + self.end) / 2


@dataclass(frozen=True)
class StepOfRun:
    """The changes of one step: `live` holds from `at` on, in MB."""

    at: list[float]  # milliseconds since the step began
    live: dict[str, list[float]]
    bands: list[Band]


def first_step(run: Run) -> StepOfRun:
    """The first one of which changes were kept.

    A step ends where another forward pass begins, or at the last point, which changes nothing.
    """
    line = run.timeline
    last = ("reduce", "step")
    end = next(
        (
            i
            for i in range(1, len(line.phases))
            if line.phases[i - 1] in last and line.phases[i] not in last
        ),
        len(line.phases) - 1,
    )
    at = [1e3 * (second - line.seconds[0]) for second in line.seconds[: end + 1]]
    live = {c: [b / MEGA for b in (*line.live[c][:end], line.live[c][end - 1])] for c in CATEGORIES}
    begins = [i for i in range(end) if i == 0 or line.phases[i] != line.phases[i - 1]]
    ends = [*begins[1:], end]
    bands = [Band(line.phases[b], at[b], at[e]) for b, e in zip(begins, ends)]
    return StepOfRun(at, live, bands)


def spread(wanted: list[float], sizes: list[float], room: float) -> list[float]:
    """Places near the wanted ones, ascending, at which things of these sizes do not overlap.

    They lie between 0 and `room`, if there is room.
    """
    places: list[float] = []
    edge = 0.0
    for place, size in zip(wanted, sizes):
        places.append(max(place, edge + size / 2))
        edge = places[-1] + size / 2
    edge = room
    for i in reversed(range(len(places))):
        places[i] = min(places[i], edge - sizes[i] / 2)
        edge = places[i] - sizes[i] / 2
    return places


def _leader(side: tuple[float, float]) -> dict[str, Any]:
    """A line that leads to this side of a label."""
    return {
        "arrowstyle": "-",
        "color": _GREY,
        "linewidth": 0.7,
        "shrinkA": 0,
        "shrinkB": 0,
        "relpos": side,
    }


def _draw_bands(axis: Any, bands: list[Band], end: float) -> None:
    for i, band in enumerate(bands):
        axis.axvspan(band.begin, band.end, color=_SHADES[i % 2], zorder=0)
        axis.axvline(band.begin, color="#bbbbbb", linewidth=0.8, zorder=0.5)
    sizes = [_LETTER * (len(band.name) + 2) for band in bands]
    named = sorted(range(len(bands)), key=lambda i: bands[i].begin - bands[i].end)
    while sum(sizes[i] for i in named) > 1:  # many micro-steps: the longest have names
        named.pop()
    named.sort()
    places = spread([bands[i].middle / end for i in named], [sizes[i] for i in named], 1)
    for i, place in zip(named, places):
        axis.annotate(
            bands[i].name,
            (bands[i].middle / end, 1.0),
            (place, 1.035),
            xycoords="axes fraction",
            textcoords="axes fraction",
            ha="center",
            va="bottom",
            fontsize=10,
            arrowprops=_leader((0.5, 0)),
        )


def _draw_formulas(axis: Any, run: Run, top: float) -> None:
    """The stages' bytes as lines. Labels stand in the margin on the right."""
    by_size = sorted(range(4), key=lambda stage: run.formula[stage])
    wanted = [run.formula[stage] / MEGA / top for stage in by_size]
    places = spread(wanted, [_LINE] * 4, 1)
    for stage, height, place in zip(by_size, wanted, places):
        own = stage == run.plan.stage
        axis.axhline(
            height * top,
            color=BLACK if own else _GREY,
            linewidth=2 if own else 0.9,
            linestyle="--" if own else ":",
            zorder=5,
        )
        axis.annotate(
            f"stage {stage}: {three_digits(height * top)} MB",
            (1.0, height),
            (1.025, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=10,
            color=BLACK if own else "#555555",
            fontweight="bold" if own else "normal",
            annotation_clip=False,
            arrowprops=_leader((0, 0.5)),
        )


def _part(run: Run) -> tuple[str, int]:
    return run.plan.model, run.rank_parameters


def _top(runs: list[Run]) -> dict[tuple[str, int], float]:
    """Of the vertical axis in MB, equal where ranks have the same model, or the same part of it."""
    tops: dict[tuple[str, int], float] = {}
    for run in runs:
        live = run.timeline.live
        most = max(sum(live[c][i] for c in CATEGORIES) for i in range(len(run.timeline.seconds)))
        largest = max(most, *run.formula) / MEGA
        tops[_part(run)] = max(tops.get(_part(run), 0), 1.06 * largest)
    return tops


def _figure(number: int, run: Run, top: float) -> Figure:
    step = first_step(run)
    end = step.at[-1] or 1
    figure, axis = plt.subplots(figsize=(_WIDTH, _HEIGHT))
    present = [c for c in CATEGORIES if any(step.live[c])]
    axis.stackplot(
        step.at,
        *(step.live[c] for c in present),
        colors=[COLOURS[c] for c in present],
        step="post",
        linewidth=0,
        zorder=2,
    )
    axis.set_xlim(0, end)
    axis.set_ylim(0, top)
    axis.grid(axis="x", visible=False)
    axis.set_xlabel("time since the step began, in ms")
    axis.set_ylabel("live bytes of rank 0, in MB = 1e6 bytes")
    _draw_bands(axis, step.bands, end)
    _draw_formulas(axis, run, top)
    totals = [sum(column) for column in zip(*(step.live[c] for c in present))]
    most, least = three_digits(max(totals)), three_digits(min(totals))
    return finish(
        figure,
        f"timeline-{number}",
        f"Live bytes over one step, {label_of(run)}",
        f"Live bytes of rank 0 over a step of {run.label}, by category; phases have names above. "
        "Lines are what the formulas of the stages give for model states; the thick one is of this "
        f"stage. The most is {most} MB, the least {least} MB.",
        [
            *handles_of(present),
            Line2D([], [], color=BLACK, linewidth=2, linestyle="--", label="formula, this stage"),
            Line2D([], [], color=_GREY, linewidth=0.9, linestyle=":", label="formula, others"),
        ],
    )


def draw(runs: list[Run]) -> Drawn:
    """A figure for each run."""
    drawn = Drawn()
    shown = [run for run in runs if any(any(run.timeline.live[c]) for c in CATEGORIES)]
    tops = _top(shown)
    for number, run in enumerate(runs, 1):
        if run in shown:
            drawn.figures.append(_figure(number, run, tops[_part(run)]))
        else:
            drawn.left_out.append(
                f"Live bytes of {run.label}: the record holds no changes, which are kept from the "
                "second step of a run on, once the run has come to its end."
            )
    return drawn
