"""The same colour for the same category in all figures of training."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.patches import Patch

from zeroproof_report.figures.drawing import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    plain,
)
from zeroproof_report.training.record import CATEGORIES, Run

MEGA = 1e6  # bytes of a MB
LONGEST_LABEL = 60

COLOURS = {
    "parameter": BLUE,
    "gradient": ORANGE,
    "master": GREEN,
    "momentum": SKY,
    "variance": PURPLE,
    "activation": VERMILLION,
    "checkpoint": YELLOW,
    "buffer": "#555555",
}


def handles_of(present: Iterable[str]) -> list[Patch]:
    """Of the legend, in the order of the stacks."""
    shown = set(present)
    return [
        Patch(facecolor=COLOURS[category], edgecolor="#666666", linewidth=0.4, label=category)
        for category in CATEGORIES
        if category in shown
    ]


def label_of(run: Run) -> str:
    return plain(run.label, LONGEST_LABEL)
