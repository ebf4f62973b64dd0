"""Adam in double precision, written from the formulas, to compare trainers with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.hand_made import CaseMaker, read_evidence

Values = dict[str, npt.NDArray[np.float64]]


class Oracle:
    """All parameters of a case, whole, stepped by its actions."""

    def __init__(self, maker: CaseMaker) -> None:
        self.case, self.ranks = maker.document, maker.ranks
        self.tensors = maker.tensors()
        self.parameters = {p["name"]: p for p in self.case["parameters"] if p["trainable"]}
        self.p: Values = {
            n: self.tensors[f"initial/{n}"].astype(float).ravel() for n in self.parameters
        }
        self.m = {name: np.zeros_like(p) for name, p in self.p.items()}
        self.v = {name: np.zeros_like(p) for name, p in self.p.items()}
        self.g = {name: np.zeros_like(p) for name, p in self.p.items()}
        self.rates = [group["learning_rate"] for group in self.case["groups"]]
        self.taken = self.skipped = 0
        self.norm = 0.0
        self.accumulated = {name: np.zeros_like(p) for name, p in self.p.items()}

    def act(self, action: Mapping[str, Any]) -> None:
        kind = action["action"]
        if kind == "micro_step":
            row = action["micro_step"] - self.case["first_micro_step"]
            for name in self.parameters:
                for rank in range(self.ranks):
                    if self.tensors[f"used/{name}"][row, rank]:
                        local = self.tensors[f"gradient/{name}"][row, rank].astype(float)
                        self.accumulated[name] += local.sum(axis=0)
        elif kind == "zero_grad":
            self._clear()
        elif kind == "rate":
            self.rates[action["group"]] = action["learning_rate"]
        elif kind == "step":
            self._step()

    def _clear(self) -> None:
        for values in self.accumulated.values():
            values[:] = 0

    def _step(self) -> None:
        count = self.ranks * self.case["micro_steps"]
        self.g = {name: values / count for name, values in self.accumulated.items()}
        self._clear()
        if not all(np.isfinite(g).all() for g in self.g.values()):
            self.skipped += 1
            return
        self.taken += 1
        self.norm = math.sqrt(sum(float((g**2).sum()) for g in self.g.values()))
        bound = self.case["clip_norm"]
        clip = min(1.0, bound / self.norm) if bound and self.norm else 1.0
        for name, p in self.p.items():
            number = self.parameters[name]["group"]
            group, rate = self.case["groups"][number], self.rates[number]
            decoupled = group["decay"] == "decoupled"
            g = self.g[name] * clip + (0 if decoupled else group["weight_decay"]) * p
            b1, b2 = group["beta1"], group["beta2"]
            self.m[name] = b1 * self.m[name] + (1 - b1) * g
            self.v[name] = b2 * self.v[name] + (1 - b2) * g * g
            m_hat = self.m[name] / (1 - b1**self.taken)
            v_hat = self.v[name] / (1 - b2**self.taken)
            update = m_hat / (np.sqrt(v_hat) + group["epsilon"])
            p -= rate * (update + (group["weight_decay"] if decoupled else 0) * p)


def assert_conforms(maker: CaseMaker, results: Path, index: int = 0, whole: bool = False) -> None:
    """That what every rank shows agrees with the oracle. `whole`: each rank owns everything."""
    oracle = Oracle(maker)
    evidence = [read_evidence(results, rank, index) for rank in range(maker.ranks)]
    for document, _ in evidence:
        assert (document["status"], document["message"]) == ("completed", "")
    number = 0
    _assert_snapshot(oracle, evidence, number, -1, whole)
    for action in maker.document["actions"]:
        oracle.act(action)
        if action["action"] != "micro_step":
            number += 1
            _assert_snapshot(oracle, evidence, number, action["index"], whole)
            for document, _ in evidence:
                snapshot = document["snapshots"][number]
                if action["action"] == "step" and not snapshot["skipped"]:
                    assert math.isclose(snapshot["norm"], oracle.norm, rel_tol=1e-6)
    assert all(len(document["snapshots"]) == number + 1 for document, _ in evidence)


def _assert_snapshot(
    oracle: Oracle, evidence: list[tuple[Any, Any]], number: int, action: int, whole: bool
) -> None:
    kinds = ("master", "momentum", "variance", "gradient")
    owners = {name: np.zeros(p.size, int) for name, p in oracle.p.items()}
    for document, tensors in evidence:
        snapshot = document["snapshots"][number]
        assert snapshot["action"] == action
        assert snapshot["steps_taken"] == oracle.taken
        assert snapshot["steps_skipped"] == oracle.skipped
        with_gradient = snapshot.get("skipped") is False
        for i, owned in enumerate(snapshot["owned"]):
            name, begin = owned["parameter"], owned["begin"]
            end = begin + owned["elements"]
            owners[name][begin:end] += 1
            expected = (oracle.p[name], oracle.m[name], oracle.v[name], oracle.g[name])
            for kind, values in zip(kinds, expected):
                place = f"{number}/owned/{i}/{kind}"
                if kind == "gradient" and not with_gradient:
                    assert place not in tensors
                    continue
                np.testing.assert_allclose(
                    tensors[place], values[begin:end], rtol=3e-6, atol=1e-7, err_msg=place
                )
        for p in oracle.case["parameters"]:
            seen = tensors[f"{number}/weights/{p['name']}"]
            assert seen.shape == tuple(p["shape"])
            if p["name"] in oracle.p:
                expected_weights = oracle.p[p["name"]].reshape(p["shape"])
                np.testing.assert_allclose(seen, expected_weights, rtol=3e-6, atol=1e-7)
            else:
                np.testing.assert_array_equal(seen, oracle.tensors[f"initial/{p['name']}"])
    for count in owners.values():
        assert (count == (len(evidence) if whole else 1)).all()
