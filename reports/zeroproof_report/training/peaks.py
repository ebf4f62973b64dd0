"""The most bytes that were live in each phase, beside the prediction."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from zeroproof_report.figures.drawing import BLACK, Drawn, Figure, finish
from zeroproof_report.training.bars import HEIGHT, measured_runs, run_axes
from zeroproof_report.training.looks import MEGA
from zeroproof_report.training.record import PHASES_OF_STEP, Run
from zeroproof_report.units import signed_per_cent, three_digits

_COLOUR = "#8c8c8c"  # of no category
_PREDICTED = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 7,
    "markerfacecolor": "white",
    "markeredgecolor": BLACK,
    "markeredgewidth": 1.4,
}


def _draw(axis: Any, runs: list[Run], phase: str) -> None:
    peaks = [run.measured.peaks.get(phase, 0) / MEGA for run in runs]
    predicted = [run.predicted.peaks.get(phase, 0) / MEGA for run in runs]
    places = range(len(runs))
    axis.barh(places, peaks, 1.4 * HEIGHT, color=_COLOUR)
    axis.plot(predicted, places, clip_on=False, **_PREDICTED)
    for place, peak, foretold in zip(places, peaks, predicted):
        axis.annotate(
            three_digits(peak),
            (max(peak, foretold), place),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axis.set_title(phase)


def _figure(runs: list[Run]) -> Figure:
    phases = [phase for phase in PHASES_OF_STEP if any(phase in run.measured.peaks for run in runs)]
    figure, axes = run_axes(runs, panels=len(phases), bars_of_run=1)
    for axis, phase in zip(axes, phases):
        _draw(axis, runs, phase)
        axis.set_xlabel("peak of a rank, in MB = 1e6 bytes")
    highest = max(max(run.measured.peak, run.predicted.peak) for run in runs)
    axes[0].set_xlim(0, 1.12 * highest / MEGA)
    worst = max(runs, key=lambda run: abs(run.peak_error))
    return finish(
        figure,
        "peaks",
        "Peak of live bytes by phase",
        "The most bytes that were live at once in each phase, of the rank that holds the most, and "
        "the peak that was predicted before the run. "
        + (
            "No run's peak is off its prediction by a single byte."
            if worst.peak_error == 0
            else f"The peak furthest off its prediction is that of {worst.label}: "
            f"{signed_per_cent(worst.peak_error)}."
        ),
        [
            Patch(facecolor=_COLOUR, label="measured"),
            Line2D([], [], label="predicted", **_PREDICTED),
        ],
    )


def draw(runs: list[Run]) -> Drawn:
    shown, left_out = measured_runs(runs, "Peaks")
    return Drawn([_figure(shown)] if shown else [], left_out)
