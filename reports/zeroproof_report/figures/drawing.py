"""What all figures have in common: colours, markers, panels, and how they become files."""

from __future__ import annotations

import base64
import io
import textwrap
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from zeroproof_report import units

# The palette of Okabe and Ito, which colour-blind readers can tell apart; black is for limits.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#000000"
_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LONGEST_LABEL = 40

plt.rcParams.update(
    {
        "font.size": 11,
        "axes.titlesize": 11,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": "#dddddd",
        "legend.frameon": False,
    }
)


@dataclass(frozen=True)
class Figure:
    """One image, with what it shows in words."""

    name: str  # of its file, without ".png"
    title: str
    description: str  # for who does not see it
    png: bytes

    @property
    def data_uri(self) -> str:
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


@dataclass
class Drawn:
    """The figures of one kind, and a sentence for each that could not be drawn."""

    figures: list[Figure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Look:
    colour: str
    marker: str


class Looks:
    """The same look for the same algorithm in all figures."""

    def __init__(self, names: list[str]) -> None:
        self._looks = {
            name: Look(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)])
            for i, name in enumerate(dict.fromkeys(names))
        }

    def __getitem__(self, name: str) -> Look:
        return self._looks[name]


def plain(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Foreign text as it stands: neither a formula nor anything invisible, and not too long."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    if shown.startswith("_"):  # a legend would leave it out
        shown = " " + shown
    return shown.replace("$", r"\$")


def panels(count: int, height: float = 3.8, share: bool = True) -> tuple[Any, list[Any]]:
    """A figure with so many axes, two in a row, whose vertical limits may be the same."""
    columns = min(count, 2)
    rows = (count + columns - 1) // columns
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(6.5 if columns == 1 else 11, height * rows + 0.9),
        sharey=share,
        squeeze=False,
    )
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat[:count]


def outer_label(axes: list[Any], label: str) -> None:
    """On the vertical axis of the first panel of each row."""
    for axis in axes[::2]:
        axis.set_ylabel(label)
    for axis in axes:
        axis.tick_params(labelleft=True)


def format_axis(axis: Any, text_of: Callable[[float], str]) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: text_of(value)))
    axis.set_minor_formatter(NullFormatter())


def format_log_axis(axis: Any, text_of: Callable[[float], str]) -> None:
    """With labels at 2 and 5 too, where there are few powers of 10. After the limits are set."""
    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    format_axis(axis, text_of)


def size_ticks(axis: Any, sizes: Iterable[int]) -> None:
    """At sizes that were measured, as many as there is room for."""
    known = sorted(set(sizes))
    step = (len(known) + 6) // 7
    axis.set_ticks(known[::step])
    axis.set_ticks([], minor=True)
    format_axis(axis, size_tick)


def short(text: str) -> str:
    """ "100 MB/s" without digits that say nothing, for ticks: "1.00 GB/s" is "1 GB/s"."""
    number, unit = text.split(" ")
    return f"{float(number):g} {unit}"


def rate_tick(value: float) -> str:
    return short(units.rate(value))


def seconds_tick(value: float) -> str:
    return short(units.seconds(value))


def traffic_tick(value: float) -> str:
    return short(units.traffic(value))


def size_tick(value: float) -> str:
    return short(units.size(value))


def _legend_columns(labels: list[str], inches: float) -> int:
    """As many as there is room for."""
    most, letters = (5, 145) if inches > 8 else (2, 85)
    width = max((len(label) for label in labels), default=0) + 6
    return min(len(labels), most, max(1, letters // width))


def finish(figure: Any, name: str, title: str, description: str, handles: list[Any]) -> Figure:
    """The legend stands below all panels, once."""
    lines = textwrap.wrap(title, 95 if figure.get_figwidth() > 8 else 58)
    figure.suptitle("\n".join(lines), fontsize=12, x=0.02, ha="left")
    columns = _legend_columns([handle.get_label() for handle in handles], figure.get_figwidth())
    legend_rows = (len(handles) + columns - 1) // columns if handles else 0
    bottom = (0.26 * legend_rows + 0.08) / figure.get_figheight()
    if handles:
        figure.legend(handles=handles, loc="lower center", ncol=columns)
    image = io.BytesIO()
    with warnings.catch_warnings():
        # Foreign text may hold characters that the font has not; they become boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.tight_layout(rect=(0, bottom, 1, 0.99))
        figure.savefig(image, format="png", dpi=130, metadata={"Software": None})
    plt.close(figure)
    return Figure(name, title.replace(r"\$", "$"), description, image.getvalue())
