"""Writes tests/data/training-*.json: records of a model whose times and losses are made up."""

from __future__ import annotations

import random
from typing import Any, Callable

from tests.make_sample import DATA, rounded, text_of

LAYERS, HIDDEN, FEED_FORWARD, VOCABULARY, SEQUENCE = 4, 64, 256, 256, 64
SAMPLES, STEPS = 2, 12
UNITS = [
    (VOCABULARY + SEQUENCE) * HIDDEN,
    *[4 * HIDDEN * HIDDEN + 2 * HIDDEN * FEED_FORWARD] * LAYERS,
    2 * HIDDEN,
]
PHI = sum(UNITS)
CATEGORIES = (
    "parameter",
    "gradient",
    "master",
    "momentum",
    "variance",
    "activation",
    "checkpoint",
    "buffer",
)
PHASES = ("initialise", "forward", "backward", "step", "reduce")
Bytes = dict[str, int]


class Maker:
    """A run in bf16. The numbers of parameters and ranks divide evenly: there is no padding."""

    def __init__(self, stage: int, ranks: int, recompute: int = 0) -> None:
        self.stage, self.ranks, self.recompute = stage, ranks, recompute
        self.random = random.Random(10 * stage + recompute)
        self.live = self.states()
        self.seconds = 0.4
        self.points: list[tuple[float, str, Bytes]] = []
        self.peaks: dict[str, Bytes] = {"initialise": dict(self.live)}

    def share(self, width: int, partitioned_from: int) -> int:
        return width * PHI // (self.ranks if self.stage >= partitioned_from else 1)

    def states(self) -> Bytes:
        bytes_ = dict.fromkeys(CATEGORIES, 0)
        bytes_["parameter"] = self.share(2, 3)
        bytes_["gradient"] = self.share(2, 2)
        for state in ("master", "momentum", "variance"):
            bytes_[state] = self.share(4, 1)
        return bytes_

    def change(self, phase: str, **bytes_: int) -> None:
        """What is live changes by so many bytes of these categories."""
        self.seconds += rounded(0.004 * self.random.lognormvariate(0, 0.4))
        for category, more in bytes_.items():
            self.live[category] += more
        self.points.append((round(self.seconds, 6), phase, dict(self.live)))
        largest = self.peaks.setdefault(phase, dict(self.live))
        if sum(self.live.values()) > sum(largest.values()):
            self.peaks[phase] = dict(self.live)

    def step(self) -> None:
        rows = 2 * SAMPLES * SEQUENCE * HIDDEN
        gathers = self.stage == 3
        for elements in UNITS:
            if gathers:
                self.change("forward", parameter=2 * elements)
            self.change("forward", activation=16 * rows)
            if self.recompute:
                self.change("forward", activation=-16 * rows, checkpoint=rows)
            if gathers:
                self.change("forward", parameter=-2 * elements)
        for elements in reversed(UNITS):
            if self.recompute:
                self.change("backward", activation=16 * rows, checkpoint=-rows)
            self.change("backward", gradient=2 * elements)
            if self.stage >= 2:
                self.change("backward", buffer=2 * elements)
            self.change("backward", activation=-16 * rows, gradient=-2 * elements)
            if self.stage >= 2:
                self.change("backward", buffer=-2 * elements)
        self.change("reduce", buffer=64)
        self.change("step", buffer=-64)
        self.change("step")  # its end

    def traffic(self) -> list[dict[str, Any]]:
        def row(traffic: str, op: str, phase: str, elements: int) -> dict[str, Any]:
            return {
                "traffic": traffic,
                "op": op,
                "phase": phase,
                "operations": 6,
                "nominal_elements": elements,
            }

        control = row("control", "all_reduce", "step", 4)
        if self.stage == 0:
            return [row("gradient", "all_reduce", "backward", 2 * PHI), control]
        gathers = ["step"] if self.stage < 3 else ["forward", "backward"]
        return [
            row("gradient", "reduce_scatter", "backward", PHI),
            *[row("parameter", "all_gather", phase, PHI) for phase in gathers],
            control,
        ]

    def plan(self) -> dict[str, Any]:
        return {
            "model": {
                "name": "made-up",
                "family": "gpt2",
                "layers": LAYERS,
                "hidden": HIDDEN,
                "heads": 4,
                "kv_heads": 4,
                "feed_forward": FEED_FORWARD,
                "vocabulary": VOCABULARY,
                "sequence": SEQUENCE,
                "dropout": 0.0,
            },
            "stage": self.stage,
            "ranks": self.ranks,
            "tensor_parallel": 1,
            "precision": "bf16",
            "steps": STEPS,
            "samples": SAMPLES,
            "micro_steps": 1,
            "learning_rate": 0.5,
            "weight_decay": 0.25,
            "warm_up_steps": 4,
            "clip_norm": 1.0,
            "seed": 1,
            "bucket_elements": 65536,
            "overlap": True,
            "blocks_per_checkpoint": self.recompute,
            "partition_checkpoints": False,
            "offload_checkpoints": False,
            "contiguous_checkpoints": False,
            "capacity_bytes": None,
        }

    def steps(self) -> list[dict[str, Any]]:
        # The same losses for each stage.
        losses = random.Random(5)
        times = [rounded(self.seconds * self.random.lognormvariate(0, 0.05)) for _ in range(STEPS)]
        return [
            {
                "step": number,
                "loss": rounded(5.55 - 0.15 * number + 0.05 * losses.random()),
                "seconds": seconds,
                "norm": rounded(2 * losses.lognormvariate(0, 0.2)),
                "skipped": False,
            }
            for number, seconds in enumerate(times, 1)
        ]

    def record(self) -> dict[str, Any]:
        at_rest = self.states()
        begin = self.seconds
        self.step()
        peaks = {p: sum(self.peaks[p].values()) for p in PHASES}
        after_forward = next(live for _, phase, live in reversed(self.points) if phase == "forward")
        memory = {"at_rest_bytes": at_rest, "after_forward_bytes": after_forward}
        self.seconds -= begin
        steps = self.steps()
        median = sorted(step["seconds"] for step in steps)[STEPS // 2]
        return {
            "format": "zeroproof training",
            "version": 1,
            "zeroproof_version": "0.1.0",
            "command": "none: made up by reports/tests/make_training_sample.py",
            "started": "2026-01-01T00:00:00Z",
            "complete": True,
            "ended_by": None,
            "data": "nothing",
            "plan": self.plan(),
            "parameters": PHI,
            "resumed_at": 0,
            "tokens_per_second": SAMPLES * SEQUENCE * self.ranks / median,
            "resident_before_bytes": 10_000_000,
            "resident_peak_bytes": 60_000_000,
            "formula_bytes": {
                "phi": PHI,
                "stage_0": 16.0 * PHI,
                "stage_1": 4.0 * PHI + 12.0 * PHI / self.ranks,
                "stage_2": 2.0 * PHI + 14.0 * PHI / self.ranks,
                "stage_3": 16.0 * PHI / self.ranks,
            },
            "predicted": {
                "trainable_elements": PHI,
                "padded_elements": PHI,
                **memory,
                # As if the prediction had missed a little.
                "peak_bytes": {p: peak - 128 * (p == "backward") for p, peak in peaks.items()},
                "host_peak_bytes": 0,
            },
            "by_rank": [
                {
                    "rank": rank,
                    "at_rest_bytes": at_rest,
                    "after_first_step_bytes": at_rest,
                    "after_forward_bytes": after_forward,
                    "peak_bytes": peaks,
                    "peak_bytes_by_category": {p: self.peaks[p] for p in PHASES},
                    "host_peak_bytes": 0,
                }
                for rank in range(self.ranks)
            ],
            "traffic": self.traffic(),
            "steps": steps,
            "timeline": {
                "seconds": [seconds for seconds, _, _ in self.points],
                "phase": [phase for _, phase, _ in self.points],
                **{c: [live[c] for _, _, live in self.points] for c in CATEGORIES},
            },
        }


MAKERS: dict[str, Callable[[], Maker]] = {
    "stage0": lambda: Maker(0, 2),
    "stage1": lambda: Maker(1, 2),
    "stage2": lambda: Maker(2, 2),
    "stage3": lambda: Maker(3, 2),
    "recompute": lambda: Maker(3, 2, recompute=1),
}

if __name__ == "__main__":
    for name, maker in MAKERS.items():
        (DATA / f"training-{name}.json").write_text(text_of(maker().record()))
