"""Bus bandwidth over message size."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D

from zeroproof_report import units
from zeroproof_report.figures.drawing import (
    BLACK,
    Drawn,
    Figure,
    Looks,
    finish,
    format_log_axis,
    outer_label,
    panels,
    plain,
    rate_tick,
    size_ticks,
)
from zeroproof_report.record import Operation, Record

_Key = tuple[str, str, int]


def _key(operation: Operation) -> _Key:
    return (operation.op, operation.type, operation.ranks)


def _draw_lines(axis: Any, results: list[Operation], looks: Looks) -> None:
    for algorithm in dict.fromkeys(result.algorithm for result in results):
        line = sorted((r for r in results if r.algorithm == algorithm), key=lambda r: r.bytes)
        sizes = [r.bytes for r in line]
        look = looks[algorithm]
        axis.fill_between(
            sizes,
            [r.bus_bandwidth(r.timing.highest) for r in line],
            [r.bus_bandwidth(r.timing.lowest) for r in line],
            color=look.colour,
            alpha=0.2,
            linewidth=0,
        )
        axis.plot(
            sizes,
            [r.bus_bandwidth(r.timing.median) for r in line],
            color=look.colour,
            marker=look.marker,
            markersize=5,
        )


def _draw_limit(axis: Any, results: list[Operation]) -> bool:
    limits = {r.bytes: r.bus_limit for r in results if r.bus_limit is not None}
    sizes = sorted(limits)
    if len(sizes) == 1:  # a line takes two points
        axis.axhline(limits[sizes[0]], color=BLACK, linestyle="--", linewidth=1.3)
    elif sizes:
        axis.plot(sizes, [limits[s] for s in sizes], color=BLACK, linestyle="--", linewidth=1.3)
    return bool(sizes)


def _figure(key: _Key, shown: list[tuple[Record, list[Operation]]], looks: Looks) -> Figure:
    op, type_, ranks = key
    figure, axes = panels(len(shown))
    has_limit = False
    for axis, (record, results) in zip(axes, shown):
        _draw_lines(axis, results, looks)
        has_limit |= _draw_limit(axis, results)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(plain(record.label))
        axis.set_xlabel("message size")
        size_ticks(axis.xaxis, (r.bytes for r in results))
    for axis in axes:
        format_log_axis(axis.yaxis, rate_tick)
    outer_label(axes, "bus bandwidth")
    algorithms = dict.fromkeys(r.algorithm for _, results in shown for r in results)
    handles = [
        Line2D([], [], color=looks[a].colour, marker=looks[a].marker, markersize=5, label=plain(a))
        for a in algorithms
    ]
    if has_limit:
        handles.append(Line2D([], [], color=BLACK, linestyle="--", label="limit of the links"))
    best = max(
        (r for _, results in shown for r in results), key=lambda r: r.bus_bandwidth(r.timing.median)
    )
    return finish(
        figure,
        f"bandwidth-{op}-{type_}-{ranks}",
        f"Bus bandwidth of {op}, {type_}, {ranks} ranks",
        f"Median bus bandwidth over message size, a line for each algorithm, with the range of all "
        f"repeats as a band; a panel for each topology. The highest is "
        f"{units.rate(best.bus_bandwidth(best.timing.median))} by {best.algorithm} at "
        f"{units.size(best.bytes)}.",
        handles,
    )


def draw(records: list[Record], looks: Looks) -> Drawn:
    """A figure for each operation, type and number of ranks, a panel for each record."""
    drawn = Drawn()
    # A single rank sends nothing: no bus has a bandwidth.
    keys = dict.fromkeys(_key(r) for record in records for r in record.operations)
    for key in keys:
        shown = [
            (record, [r for r in record.operations if _key(r) == key and r.bus_factor > 0])
            for record in records
        ]
        shown = [(record, results) for record, results in shown if results]
        if shown:
            drawn.figures.append(_figure(key, shown, looks))
        else:
            drawn.left_out.append(f"Bus bandwidth of {key[0]}, {key[1]}: one rank sends nothing.")
    if not keys:
        drawn.left_out.append("Bus bandwidth: no record holds results of operations.")
    elif all(r.bus_limit is None for record in records for r in record.operations):
        drawn.left_out.append(
            "Limits of bandwidth: no topology tells the bandwidth of all links that are used."
        )
    return drawn
