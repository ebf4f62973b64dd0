"""A complete adapter to copy, with a small trainer of ZeRO stage 1 that simulates its ranks.

zeroproof verify --run \
    "python -m zeroproof_adapter.launch template_adapter.py --ranks {ranks} {cases} {results}"
"""

from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path

import numpy as np

from zeroproof_adapter import Case, FloatArray, Slice, State, StepReport, World


class Template(World):
    name = "template"
    stages = frozenset({1})  # cases of other stages or precisions are refused
    precisions = frozenset({"fp32"})
    observes = frozenset({
        "ownership", "gradient", "momentum", "variance", "master", "weights", "norm",
        "clip_coefficient", "skips", "loss_scale", "steps",
    })  # fmt: skip

    def __init__(self, case: Case, ranks: int) -> None:
        self.case, self.ranks = case, ranks
        self.trained = [p for p in case.parameters if p.trainable]
        self.master = flat(case.initial(p.name) for p in self.trained)  # the weights, in fp32
        self.momentum, self.variance = np.zeros_like(self.master), np.zeros_like(self.master)
        self.local = np.zeros((ranks, self.master.size), np.float32)  # each rank's gradients
        self.gradient = np.zeros_like(self.master)  # their mean in the last step
        self.group = flat(np.full(p.elements, p.group, np.float32) for p in self.trained)
        settings = np.array([astuple(group) for group in case.groups], np.float32)
        self.settings = settings[self.group.astype(int)].T  # a row for each field of Group
        self.taken = self.skipped = 0

    def owned(self, rank: int) -> slice:
        """Each rank keeps the states of an N-th part of all elements, rounded up."""
        shard = -(-self.master.size // self.ranks)
        return slice(rank * shard, (rank + 1) * shard)

    def micro_step(self, micro_step: int, synchronise: bool) -> None:
        for rank in range(self.ranks):  # in a trainer of yours this is forward and backward
            self.local[rank] += flat(
                self.case.local_gradient(micro_step, rank, p.name) for p in self.trained
            )

    def step(self) -> StepReport:
        self.gradient = self.local.sum(axis=0) / np.float32(self.ranks * self.case.micro_steps)
        self.local[:] = 0
        norm, bound = float(np.linalg.norm(self.gradient.astype(float))), self.case.clip_norm
        clip = bound / norm if norm > bound > 0 else 1.0
        if not np.isfinite(self.gradient).all():
            self.skipped += 1
            return StepReport(skipped=True, norm=norm, clip_coefficient=clip)
        self.taken += 1
        for rank in range(self.ranks):
            self.adam(self.owned(rank), np.float32(clip))
        return StepReport(skipped=False, norm=norm, clip_coefficient=clip)

    def adam(self, own: slice, clip: np.float32) -> None:
        rate, beta1, beta2, epsilon, decay, decoupled = self.settings[:, own]
        p, m, v = self.master[own], self.momentum[own], self.variance[own]  # views
        g = self.gradient[own] * clip + decay * (1 - decoupled) * p
        m[:] = beta1 * m + (1 - beta1) * g
        v[:] = beta2 * v + (1 - beta2) * g * g
        # In double precision: 1 - beta^t cancels.
        m_hat = m / (1 - beta1.astype(float) ** self.taken)
        v_hat = v / (1 - beta2.astype(float) ** self.taken)
        p -= rate * (m_hat / (np.sqrt(v_hat) + epsilon) + decay * decoupled * p)

    def zero_grad(self, by: str) -> None:
        self.local[:] = 0

    def evaluate(self) -> None:
        """A forward pass of this model has nothing to leave behind."""

    def set_learning_rate(self, group: int, value: float) -> None:
        self.settings[0, self.group == group] = value

    def save(self, folder: Path) -> None:
        states = np.stack([self.master, self.momentum, self.variance])
        np.savez(folder / "states.npz", states=states, counts=[self.taken, self.skipped])

    def load(self, folder: Path) -> None:
        saved = np.load(folder / "states.npz")
        self.master[:], self.momentum[:], self.variance[:] = saved["states"]
        self.taken, self.skipped = map(int, saved["counts"])

    def read(self, rank: int, after_step: bool) -> State:
        own, begin, slices = self.owned(rank), 0, []
        arrays = [self.master, self.momentum, self.variance] + [self.gradient] * after_step
        weights = {p.name: self.case.initial(p.name) for p in self.case.parameters}
        for p in self.trained:
            end = begin + p.elements
            weights[p.name] = self.master[begin:end]
            first, last = max(begin, own.start), min(end, own.stop)
            if first < last:
                slices.append(Slice(p.name, first - begin, *(a[first:last] for a in arrays)))
            begin = end
        return State(slices, weights, self.taken, self.skipped)


def flat(arrays: Iterable[FloatArray]) -> FloatArray:
    """All elements end to end."""
    return np.concatenate([np.zeros(0, np.float32), *(array.ravel() for array in arrays)])


TRAINER = Template
