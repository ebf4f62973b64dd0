"""From operations that an observer recorded to the protocol's canonical records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zeroproof_adapter.evidence import Collective, EvidenceError

# Of an operation, as the observer tells it: its action, phase, op, reduction, type, in_elements,
# out_elements, peer, group and awaited.
Record = Mapping[str, Any]
Classifier = Callable[[Record], str]

REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter"})
OPERATIONS = REDUCING | {"broadcast", "all_gather", "all_to_all", "send", "receive"}
INTEGERS = frozenset({"int8", "int32", "int64"})

# Phases whose operations are no part of any volume.
UNCOUNTED = frozenset({"initialise", "save", "load", "read"})

# Types and reductions that the protocol has another name for. Flags travel as bytes; of flags the
# bitwise operations are the extremes.
_TYPES = {"uint8": "int8", "bool": "int8"}
_REDUCTIONS = {"bitwise_or": "max", "bitwise_and": "min", "scaled_sum": "sum"}


def default_traffic(record: Record) -> str:
    """Whether an operation carries gradients, weights (`parameter`) or neither (`control`).

    A guess that holds for most: whoever knows better, as for a trainer that reduces gradients in
    its step, passes a classifier of its own.
    """
    if _TYPES.get(record["type"], record["type"]) in INTEGERS:
        return "control"
    if record["op"] in REDUCING:
        return "control" if record["phase"] == "step" else "gradient"
    if record["op"] == "all_to_all" and record["phase"] == "backward":
        return "gradient"
    return "parameter"


def canonical(
    records: Iterable[Record], classify: Classifier = default_traffic
) -> list[Collective]:
    """Canonical records, numbered from 0 within each group and traffic.

    What the protocol has no word for, such as a gather, is left out of phases that are no part of
    any volume and is an EvidenceError elsewhere.
    """
    collectives: list[Collective] = []
    numbers: Counter[tuple[tuple[int, ...], str]] = Counter()
    for record in records:
        type_: str = record["type"]
        type_ = _TYPES.get(type_, type_)
        reduction: str = record["reduction"]
        reduction = _REDUCTIONS.get(reduction, reduction)
        if record["op"] not in OPERATIONS or reduction not in ("none", "sum", "mean", "max", "min"):
            if record["phase"] in UNCOUNTED:
                continue
            raise EvidenceError(
                f"a {record['op']} with reduction {record['reduction']} in {record['phase']} has no"
                " canonical record"
            )
        group, traffic = tuple(record["group"]), classify(record)
        collectives.append(
            Collective(
                action=record["action"],
                phase=record["phase"],
                traffic=traffic,
                op=record["op"],
                reduction=reduction,
                type=type_,
                in_elements=record["in_elements"],
                out_elements=record["out_elements"],
                peer=record["peer"],
                group=group,
                sequence=numbers[group, traffic],
                awaited=record["awaited"],
            )
        )
        numbers[group, traffic] += 1
    return collectives
