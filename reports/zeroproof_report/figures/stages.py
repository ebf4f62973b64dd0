"""Bars by stage and algorithm, which two kinds of figures have."""

from __future__ import annotations

from typing import Any

from zeroproof_report import units
from zeroproof_report.figures.drawing import plain, short
from zeroproof_report.record import Conditions, Record, Stage

Panel = tuple[Record, list[Stage]]


def by_conditions(records: list[Record]) -> dict[Conditions, list[Panel]]:
    """Steps under the same conditions, in the order of the records; stages ascending."""
    found: dict[Conditions, list[Panel]] = {}
    for record in records:
        for conditions in dict.fromkeys(stage.conditions for stage in record.stages):
            stages = [s for s in record.stages if s.conditions == conditions]
            found.setdefault(conditions, []).append((record, sorted(stages, key=lambda s: s.stage)))
    return found


def conditions_in_words(conditions: Conditions) -> str:
    steps = conditions.micro_steps
    words = (
        f"{conditions.type}, {conditions.ranks} ranks, Φ = {units.phi(conditions.parameters)}, "
        f"{steps} micro-step{'' if steps == 1 else 's'}"
    )
    if conditions.compute_seconds > 0:
        words += f" computing {short(units.seconds(conditions.compute_seconds))}"
    return words if conditions.overlap else words + ", no overlap"


def places_of(stages: list[Stage]) -> list[float]:
    """Of bars, which stand close within a stage and apart between stages."""
    places: list[float] = []
    for i, stage in enumerate(stages):
        if i > 0:
            places.append(places[-1] + (1 if stage.stage == stages[i - 1].stage else 1.7))
        else:
            places.append(0)
    return places


def label_bars(axis: Any, stages: list[Stage], places: list[float]) -> None:
    """The algorithm below each bar, and the stage above all bars of it."""
    axis.set_xticks(
        places, [plain(s.algorithm) for s in stages], rotation=40, ha="right", fontsize=9
    )
    axis.tick_params(axis="x", length=0)
    axis.grid(axis="x", visible=False)
    axis.use_sticky_edges = False  # a bar of no height would take the margin away
    axis.margins(y=0.16)
    axis.set_ylim(bottom=0, auto=True)  # where limits are shared, later panels may need more
    for number in dict.fromkeys(s.stage for s in stages):
        own = [place for place, s in zip(places, stages) if s.stage == number]
        axis.annotate(
            f"stage {number}",
            ((own[0] + own[-1]) / 2, 0.995),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=10,
        )
