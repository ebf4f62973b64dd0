"""What a step sends, by operation beside the formula, and by what it travels over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matplotlib.patches import Patch

from zeroproof_report import units
from zeroproof_report.figures.drawing import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Drawn,
    Figure,
    finish,
    format_axis,
    outer_label,
    panels,
    plain,
    traffic_tick,
)
from zeroproof_report.figures.stages import (
    Panel,
    by_conditions,
    conditions_in_words,
    label_bars,
    places_of,
)
from zeroproof_report.record import LINK_CLASSES, Conditions, Record, Stage

_OP_COLOURS = {
    "all_reduce": PURPLE,
    "reduce_scatter": BLUE,
    "all_gather": ORANGE,
    "broadcast": GREEN,
}
_OTHER_COLOUR = "#999999"
_LINK_COLOURS = {"intra_node": SKY, "inter_node": VERMILLION}
_LINK_NAMES = {"intra_node": "within nodes", "inter_node": "between nodes"}


def _by_op(stage: Stage, formula: bool) -> dict[str, float]:
    """In units of Phi."""
    elements: dict[str, float] = {}
    for row in stage.volumes:
        count = row.formula_elements if formula else row.nominal_elements
        elements[row.op] = elements.get(row.op, 0) + count / stage.conditions.parameters
    return elements


def _volume_panels(shown: list[Panel]) -> list[Panel]:
    """One bar for all algorithms where all of them send the same number of elements."""
    made = []
    for record, stages in shown:
        distinct = {
            (s.stage, tuple(_by_op(s, False).items()), tuple(_by_op(s, True).items())): s
            for s in reversed(stages)
        }
        made.append((record, sorted(distinct.values(), key=lambda s: (s.stage, s.algorithm))))
    return made


def _volume_bars(axis: Any, stages: list[Stage]) -> None:
    width = 0.38
    for place, stage in enumerate(stages):
        for formula in (False, True):
            bottom = 0.0
            x = place + (0.5 if formula else -0.5) * width
            for op, elements in _by_op(stage, formula).items():
                axis.bar(
                    x,
                    elements,
                    width * 0.94,
                    bottom=bottom,
                    color=_OP_COLOURS.get(op, _OTHER_COLOUR),
                    alpha=0.45 if formula else 1,
                    hatch="///" if formula else None,
                    edgecolor="white",
                    linewidth=0.5,
                )
                bottom += elements
            axis.annotate(
                f"{bottom:.3g}",
                (x, bottom),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
    twice = len({s.stage for s in stages}) < len(stages)
    axis.set_xticks(
        range(len(stages)),
        [f"{s.stage}\n{plain(s.algorithm)}" if twice else str(s.stage) for s in stages],
    )
    axis.grid(axis="x", visible=False)
    axis.margins(y=0.12)


def _volume_figure(number: int, conditions: Conditions, shown: list[Panel]) -> Figure:
    shown = _volume_panels(shown)
    figure, axes = panels(len(shown))
    for axis, (record, stages) in zip(axes, shown):
        _volume_bars(axis, stages)
        axis.set_title(plain(record.label))
        axis.set_xlabel("ZeRO stage (0: plain data parallelism)")
    outer_label(axes, "elements of a rank in a step / Φ")
    ops = dict.fromkeys(row.op for _, stages in shown for s in stages for row in s.volumes)
    handles = [Patch(color=_OP_COLOURS.get(op, _OTHER_COLOUR), label=op) for op in ops]
    handles.append(Patch(facecolor="#666666", label="left bar: counted"))
    handles.append(
        Patch(facecolor="#bbbbbb", hatch="///", edgecolor="white", label="right bar: formula")
    )
    return finish(
        figure,
        f"volume-{number}",
        f"Volume of communication by stage, {conditions_in_words(conditions)}",
        "Elements that one rank passes to collectives in one step, in units of the number of "
        "parameters Φ, by stage and operation: as counted, beside the formula (2 Φ for stages 0 to "
        "2 and 3 Φ for stage 3 where there is one micro-step). An all-reduce counts twice.",
        handles,
    )


def _link_bars(axis: Any, stages: list[Stage]) -> None:
    places = places_of(stages)
    bottoms = [0.0] * len(stages)
    for link in LINK_CLASSES:
        values = [(s.sent_bytes or {}).get(link, 0) for s in stages]
        axis.bar(places, values, 0.8, bottom=bottoms, color=_LINK_COLOURS[link])
        bottoms = [bottom + value for bottom, value in zip(bottoms, values)]
    label_bars(axis, stages, places)


def _link_figure(number: int, conditions: Conditions, shown: list[Panel]) -> Figure:
    figure, axes = panels(len(shown), height=4.2)
    for axis, (record, stages) in zip(axes, shown):
        _link_bars(axis, stages)
        axis.set_title(plain(record.label))
        format_axis(axis.yaxis, traffic_tick)
    outer_label(axes, "bytes sent by all ranks in a step")
    between = max(_between_nodes(s) for _, stages in shown for s in stages)
    return finish(
        figure,
        f"links-{number}",
        f"Bytes sent by link class, {conditions_in_words(conditions)}",
        "Bytes that all ranks together send in one step, within and between nodes, by stage and "
        "algorithm."
        + (f" The most between nodes is {units.traffic(between)}." if between > 0 else ""),
        [Patch(color=_LINK_COLOURS[link], label=_LINK_NAMES[link]) for link in LINK_CLASSES],
    )


def _between_nodes(stage: Stage) -> int:
    return (stage.sent_bytes or {}).get("inter_node", 0)


def _whatever_is_computed(records: list[Record]) -> dict[Conditions, list[Panel]]:
    """Steps that differ in the time of computing send the same: the first of them."""
    found: dict[Conditions, list[Panel]] = {}
    for conditions, shown in by_conditions(records).items():
        known = found.setdefault(replace(conditions, compute_seconds=0), [])
        drawn = [record for record, _ in known]
        known.extend(panel for panel in shown if panel[0] not in drawn)
    return found


def draw(records: list[Record]) -> Drawn:
    """Two figures for each set of conditions, a panel for each record."""
    drawn = Drawn()
    silent: dict[str, None] = {}
    for number, (conditions, shown) in enumerate(_whatever_is_computed(records).items(), 1):
        drawn.figures.append(_volume_figure(number, conditions, shown))
        telling = [(r, [s for s in stages if s.sent_bytes is not None]) for r, stages in shown]
        telling = [(record, stages) for record, stages in telling if stages]
        if telling:
            drawn.figures.append(_link_figure(number, conditions, telling))
        silent.update(
            (s.algorithm, None) for _, stages in shown for s in stages if s.sent_bytes is None
        )
    if not drawn.figures:
        drawn.left_out.append("Volumes of stages: no record holds whole steps.")
    if silent:
        drawn.left_out.append(
            f"Bytes by link class of {', '.join(silent)}: the backend does not tell what it sends "
            "over which link."
        )
    return drawn
