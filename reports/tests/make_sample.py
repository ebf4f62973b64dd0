"""Writes tests/data: records whose times are made up, of a simple model and random noise."""

from __future__ import annotations

import json
import random
import statistics
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
REPEATS = 7
PHI = 4_000_000
GBIT = 1e9 / 8
LATENCY = {"intra_node": 8e-6, "inter_node": 60e-6}
BANDWIDTH = {"intra_node": 16 * GBIT, "inter_node": 4 * GBIT}
OPS = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}
FORMULAS = {1.0: "(N - 1) / N", 2.0: "2 (N - 1) / N"}


def rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")


class Maker:
    """Results of one topology."""

    def __init__(self, nodes: int, ranks_per_node: int) -> None:
        self.nodes = nodes
        self.ranks_per_node = ranks_per_node
        self.ranks = nodes * ranks_per_node
        self.random = random.Random(100 * nodes + ranks_per_node)
        self.link = "intra_node" if nodes == 1 else "inter_node"

    def algorithms(self) -> list[str]:
        return ["native", "ring"] + (["hierarchical"] if self.nodes > 1 else [])

    def model(self, rounds: float, bytes_: float, algorithm: str) -> float:
        """Seconds of an operation in which a rank sends `bytes_` times (N - 1) / N."""
        sent = bytes_ * (self.ranks - 1) / self.ranks
        if algorithm == "hierarchical":
            inner = bytes_ * (self.ranks_per_node - 1) / self.ranks_per_node
            outer = sent - inner
            return rounds * LATENCY["inter_node"] * (self.nodes - 1) + (
                inner / BANDWIDTH["intra_node"] + outer / BANDWIDTH["inter_node"]
            )
        slow = 1.25 if algorithm == "native" else 1.0
        return slow * (rounds * (self.ranks - 1) * LATENCY[self.link] + sent / BANDWIDTH[self.link])

    def timing(self, seconds: float) -> dict[str, Any]:
        times = [
            rounded(seconds * 1.02 * self.random.lognormvariate(0.03, 0.05)) for _ in range(REPEATS)
        ]
        return {
            "seconds": times,
            "slowest_rank": [self.random.randrange(self.ranks) for _ in times],
            "median_seconds": statistics.median(times),
            "lowest_seconds": min(times),
            "highest_seconds": max(times),
        }

    def sent(self, elements: int, algorithm: str) -> dict[str, int] | None:
        """Of all ranks, where a rank's nominal volume is `elements`."""
        if algorithm == "native":
            return None
        total = elements * (self.ranks - 1)
        if self.nodes == 1:
            return {"intra_node": total, "inter_node": 0}
        share = 1 / self.ranks_per_node if algorithm == "hierarchical" else 1.0
        between = int(total * self.nodes / self.ranks * share)
        return {"intra_node": total - between, "inter_node": between}

    def prediction(self, seconds: float, fitted: bool, algorithm: str) -> dict[str, Any] | None:
        if algorithm == "native":
            return None
        return {
            "seconds": rounded(seconds * self.random.lognormvariate(0.05, 0.04)),
            "used_for_fit": fitted,
        }

    def operation(self, op: str, algorithm: str, exponent: int) -> dict[str, Any]:
        bytes_ = 1 << exponent
        seconds = self.model(OPS[op], OPS[op] * bytes_, algorithm)
        timing = self.timing(seconds)
        factor = OPS[op] * (self.ranks - 1) / self.ranks
        bandwidth = bytes_ / timing["median_seconds"]
        return {
            "op": op,
            "algorithm": algorithm,
            "type": "fp32",
            "ranks": self.ranks,
            "bytes": bytes_,
            "timing": timing,
            "algorithm_bandwidth_bytes_per_s": bandwidth,
            "bus_factor": factor,
            "bus_formula": FORMULAS[OPS[op]],
            "bus_bandwidth_bytes_per_s": factor * bandwidth,
            "bus_limit_bytes_per_s": BANDWIDTH[self.link] * self.ranks_per_node
            if self.nodes > 1
            else BANDWIDTH[self.link],
            "sent_elements": self.sent(int(OPS[op] * bytes_ / 4), algorithm),
            "prediction": self.prediction(seconds, exponent % 4 == 0, algorithm),
            "checked_elements": self.ranks * bytes_ // 4,
        }

    def row(self, traffic: str, op: str, phase: str, elements: int) -> dict[str, Any]:
        sent = elements * (self.ranks - 1)
        return {
            "traffic": traffic,
            "op": op,
            "phase": phase,
            "operations": 8,
            "nominal_elements": elements,
            "formula_elements": elements,
            "sent_elements": sent,
            "formula_sent_elements": sent,
        }

    def volumes(self, stage: int) -> list[dict[str, Any]]:
        if stage == 0:
            return [self.row("gradient", "all_reduce", "backward", 2 * PHI)]
        gathers = ["step"] if stage < 3 else ["forward", "backward"]
        return [self.row("gradient", "reduce_scatter", "backward", PHI)] + [
            self.row("parameter", "all_gather", phase, PHI) for phase in gathers
        ]

    def stage(self, stage: int, algorithm: str) -> dict[str, Any]:
        volumes = self.volumes(stage)
        nominal = sum(row["nominal_elements"] for row in volumes)
        waiting = self.model(24, 4 * nominal, algorithm) * (0.8 if stage < 3 else 0.9)
        computing = 0.02
        timing = self.timing(waiting + computing)
        return {
            "stage": stage,
            "algorithm": algorithm,
            "type": "fp32",
            "ranks": self.ranks,
            "micro_steps": 1,
            "parameters": PHI,
            "bucket_elements": 500_000,
            "compute_seconds": 0.015,
            "overlap": True,
            "timing": timing,
            "communication_seconds": rounded(timing["median_seconds"] - computing),
            "computing_seconds": computing,
            "volumes": volumes,
            "nominal_elements": nominal,
            "formula": "3 Phi" if stage == 3 else "2 Phi",
            "sent_elements": self.sent(nominal, algorithm),
            "prediction": self.prediction(waiting + computing, False, algorithm),
        }

    def fit(self, op: str, algorithm: str) -> dict[str, Any]:
        used = ["intra_node", "inter_node"] if algorithm == "hierarchical" else [self.link]
        return {
            "op": op,
            "algorithm": algorithm,
            "latency_s": {k: v if k in used else None for k, v in LATENCY.items()},
            "bandwidth_bytes_per_s": {k: v if k in used else None for k, v in BANDWIDTH.items()},
            "errors": {
                "fitted": 0.04,
                "held_out": 0.06,
                "fitted_sizes": 4,
                "held_out_sizes": 3,
            },
        }

    def record(self) -> dict[str, Any]:
        algorithms = self.algorithms()
        return {
            "format": "zeroproof bench record",
            "version": 1,
            "zeroproof_version": "0.1.0",
            "command": "none: the times are made up by reports/tests/make_sample.py",
            "started": "2026-01-01T00:00:00Z",
            "host": "nowhere",
            "processors": 8,
            "backend": "mpi",
            "backend_detail": "made up",
            "topology": {
                "format": "zeroproof topology",
                "version": 1,
                "name": f"sample-{self.nodes}x{self.ranks_per_node}",
                "description": "",
                "source": "",
                "nodes": self.nodes,
                "ranks_per_node": self.ranks_per_node,
                "links": {
                    link: {
                        "kind": "",
                        "bandwidth_gbit_per_s": BANDWIDTH[link] / GBIT,
                        "latency_us": LATENCY[link] * 1e6,
                        "sharing": "rank",
                    }
                    for link in LATENCY
                },
            },
            "topology_origin": "made up",
            "complete": True,
            "ended_by": "",
            "operations": [
                self.operation(op, algorithm, exponent)
                for op in OPS
                for algorithm in algorithms
                for exponent in range(12, 25, 2)
            ],
            "stages": [
                self.stage(stage, algorithm) for stage in range(4) for algorithm in algorithms
            ],
            "fits": [self.fit(op, a) for op in OPS for a in algorithms if a != "native"],
        }


def text_of(record: dict[str, Any]) -> str:
    """A line for each key and each result, as zeroproof writes it."""
    parts = []
    for key, value in record.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(json.dumps(entry) for entry in value)
            parts.append(f"{json.dumps(key)}: [\n{entries}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for nodes, ranks_per_node in ((1, 4), (2, 2), (4, 2)):
        record = Maker(nodes, ranks_per_node).record()
        (DATA / f"sample-{nodes}x{ranks_per_node}.json").write_text(text_of(record))
