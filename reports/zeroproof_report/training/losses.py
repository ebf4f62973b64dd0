"""Loss over steps, of all runs."""

from __future__ import annotations

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from zeroproof_report.figures.drawing import Drawn, Figure, Looks, finish, panels
from zeroproof_report.training.looks import label_of
from zeroproof_report.training.record import Run

_DASH = 5.0  # in widths of a line


def largest_difference(runs: list[Run]) -> float | None:
    """Between losses of the same step, of runs that should learn alike; None without such."""
    groups: dict[object, dict[int, list[float]]] = {}
    for run in runs:
        losses = groups.setdefault(run.plan.learns_like, {})
        for step in run.steps:
            if step.loss is not None:
                losses.setdefault(step.step, []).append(step.loss)
    differences = [
        max(losses) - min(losses)
        for group in groups.values()
        for losses in group.values()
        if len(losses) > 1
    ]
    return max(differences, default=None)


def _sentence(runs: list[Run]) -> str:
    difference = largest_difference(runs)
    if difference is None:
        return ""
    if difference == 0:
        return " Runs of the same training, at any stage, have the same losses, digit for digit."
    return (
        " Between runs of the same training, at any stage, the largest difference of a step's "
        f"losses is {difference:.2g}."
    )


def _coinciding(runs: list[Run]) -> list[list[int]]:
    """Numbers of runs, those together whose lines could not be told apart."""
    losses = [{s.step: s.loss for s in run.steps if s.loss is not None} for run in runs]
    every = [loss for run in losses for loss in run.values()]
    nearest = 0.01 * (max(every) - min(every))
    groups: list[list[int]] = []
    for i, run in enumerate(losses):
        for group in groups:
            first = losses[group[0]]
            if first.keys() == run.keys() and all(
                abs(first[step] - run[step]) <= nearest for step in run
            ):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _figure(runs: list[Run]) -> Figure:
    looks = Looks([run.label for run in runs])
    figure, (axis,) = panels(1)
    figure.set_size_inches(11, 5)
    for group in _coinciding(runs):
        for turn, i in enumerate(group):
            look = looks[runs[i].label]
            steps = runs[i].steps
            # Lines that coincide take turns: a dash of each after the other.
            dashes = (-turn * _DASH, (_DASH, (len(group) - 1) * _DASH))
            every = max(len(group), len(steps) // 10)
            axis.plot(
                [step.step for step in steps],
                [float("nan") if step.loss is None else step.loss for step in steps],
                color=look.colour,
                linewidth=2,
                linestyle=dashes if len(group) > 1 else "solid",
                marker=look.marker,
                markersize=7,
                markeredgecolor="white",
                markeredgewidth=0.7,
                markevery=(turn * every // len(group), every),
            )
    axis.set_xlabel("step")
    axis.set_ylabel("loss, in nats a byte")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return finish(
        figure,
        "losses",
        "Loss over steps",
        "Mean negative log likelihood of a byte over the steps of each run. Where lines coincide, "
        "they take turns, dash by dash." + _sentence(runs),
        [
            Line2D(
                [],
                [],
                color=looks[run.label].colour,
                marker=looks[run.label].marker,
                linewidth=2,
                label=label_of(run),
            )
            for run in runs
        ],
    )


def draw(runs: list[Run]) -> Drawn:
    drawn = Drawn()
    shown = [run for run in runs if any(step.loss is not None for step in run.steps)]
    drawn.left_out += [
        f"Losses of {run.label}: the record holds none that is a number."
        for run in runs
        if run not in shown
    ]
    if shown:
        drawn.figures.append(_figure(shown))
    return drawn
