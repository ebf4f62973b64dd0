"""Horizontal bars by run, which two kinds of figures have: labels of runs are long."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt

from zeroproof_report.training.looks import label_of
from zeroproof_report.training.record import Run

HEIGHT = 0.38  # of a bar, where runs are 1 apart
_LINE = 26  # characters of a label in one line


def _in_lines(label: str) -> str:
    """Broken at commas."""
    lines: list[str] = []
    for part in label.split(", "):
        if lines and len(lines[-1]) + len(part) + 2 <= _LINE:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return ",\n".join(lines)


def measured_runs(runs: list[Run], what: str) -> tuple[list[Run], list[str]]:
    """Those that have bytes, and a sentence for each that has none."""
    return [run for run in runs if run.has_measured], [
        f"{what} of {run.label}: the record holds none of a step."
        for run in runs
        if not run.has_measured
    ]


def run_axes(runs: list[Run], panels: int, bars_of_run: int) -> tuple[Any, list[Any]]:
    """A figure with so many axes, two in a row, whose vertical axis has the runs, downwards."""
    columns = min(panels, 2)
    rows = (panels + columns - 1) // columns
    labels = [_in_lines(label_of(run)) for run in runs]
    lines = max(bars_of_run, max(label.count("\n") + 1 for label in labels))
    height = max(1.0, (0.2 + 0.2 * lines) * len(runs))
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(11, rows * (height + 1) + 0.7),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    flat = list(axes.flat)
    for unused in flat[panels:]:
        unused.set_visible(False)
    for axis in flat[:panels]:
        axis.set_yticks(range(len(runs)), labels)
        axis.tick_params(axis="y", length=0)
        axis.tick_params(labelbottom=True)
        axis.grid(axis="y", visible=False)
    flat[0].set_ylim(len(runs) - 0.4, -0.6)
    return figure, flat[:panels]
