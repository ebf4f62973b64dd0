"""Cases made by hand, as `zeroproof verify --run` would write them, and their evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

GROUP = {
    "learning_rate": 0.0625,
    "beta1": 0.875,
    "beta2": 0.96875,
    "epsilon": 0.125,
    "weight_decay": 0.0,
    "decay": "decoupled",
}


def window(first: int, micro_steps: int) -> list[dict[str, Any]]:
    """A window's actions, without their indices."""
    return [
        {"action": "micro_step", "micro_step": first + k, "synchronise": k == micro_steps - 1}
        for k in range(micro_steps)
    ] + [{"action": "step"}]


class CaseMaker:
    """A case with three parameters of 5, 3x2 and 1 elements; the middle one is tied."""

    def __init__(self, **changes: Any) -> None:
        self.ranks = 2
        self.used: dict[str, Any] = {}  # [K, N] by parameter, else ones
        self.not_finite: list[tuple[int, int, str, int, float]] = []
        self.document: dict[str, Any] = {
            "index": 0,
            "id": "hand/made",
            "tensors": "case-0000.safetensors",
            "stage": 1,
            "precision": "fp32",
            "micro_steps": 2,
            "parameters": [
                {"name": "a.weight", "shape": [5], "group": 0, "trainable": True},
                {"name": "tied", "shape": [3, 2], "group": 0, "trainable": True},
                {"name": "scalar", "shape": [], "group": 0, "trainable": True},
            ],
            "units": [["a.weight", "tied"], ["tied", "scalar"]],
            "groups": [dict(GROUP)],
            "bucket_elements": 8,
            "overlap": True,
            "prefetch": True,
            "clip_norm": 0,
            "loss_scale": None,
            "model": "dot",
            "surroundings": "plain",
            "features": [],
            "options": {},
            "first_micro_step": 0,
            "save_to": None,
            "load_from": None,
            "actions": window(0, 2) + window(2, 2) + [{"action": "evaluate"}] + window(4, 2),
        }
        self.document.update(changes)
        for i, action in enumerate(self.document["actions"]):
            action.setdefault("index", i)

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        c, n = self.document, self.ranks
        random = np.random.default_rng(c["index"] + 7)
        numbers = [a["micro_step"] for a in c["actions"] if a["action"] == "micro_step"]
        count = max(numbers) - c["first_micro_step"] + 1 if numbers else 0
        tensors = {}
        for p in c["parameters"]:
            name, elements = p["name"], int(np.prod(p["shape"], dtype=int))
            uses = sum(name in unit for unit in c["units"])
            shape = (count, n, uses, elements)
            # Multiples of N * GA: every order of summation gives the same bits.
            gradient = random.integers(-8, 9, shape) * float(n * c["micro_steps"]) / 16
            for k, rank, injected, element, value in self.not_finite:
                if injected == name:
                    gradient[k, rank, 0, element] = value
            tensors[f"initial/{name}"] = random.integers(-16, 17, p["shape"]) / np.float32(16)
            tensors[f"gradient/{name}"] = gradient
            tensors[f"used/{name}"] = np.asarray(self.used.get(name, np.ones((count, n))))
        return {name: np.asarray(t, np.float32, order="C") for name, t in tensors.items()}


def write_cases(folder: Path, *cases: CaseMaker) -> Path:
    """Numbers and writes the cases; their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, case in enumerate(cases):
        case.document["index"] = i
        case.document["tensors"] = f"case-{i:04d}.safetensors"
        save_file(case.tensors(), folder / case.document["tensors"])
    document = {
        "schema": "zeroproof.cases/1",
        "ranks": cases[0].ranks,
        "cases": [case.document for case in cases],
    }
    (folder / "cases.json").write_text(json.dumps(document))
    return folder


def read_evidence(
    results: Path, rank: int, index: int = 0
) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.float32]]]:
    """The JSON document of a rank, and its tensors."""
    folder = results / f"{index:04d}"
    document: dict[str, Any] = json.loads((folder / f"rank-{rank}.json").read_text())
    return document, load_file(folder / f"rank-{rank}.safetensors")
