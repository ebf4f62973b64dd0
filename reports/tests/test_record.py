from __future__ import annotations

from typing import Any, Callable

from tests.conftest import Change, sample
from tests.make_sample import DATA, Maker, text_of
from zeroproof_report.record import Record, read_records


def test_samples_are_those_that_the_generator_makes() -> None:
    for nodes, ranks_per_node in ((1, 4), (2, 2), (4, 2)):
        text = text_of(Maker(nodes, ranks_per_node).record())
        assert (DATA / f"sample-{nodes}x{ranks_per_node}.json").read_text() == text


def test_a_record_is_read(records: list[Record]) -> None:
    record = records[1]
    assert (record.label, record.shape, record.ranks) == ("2x2", "2x2", 4)
    assert record.links[1].name == "inter_node"
    ring = record.operations[7]
    assert ring.algorithm == "ring"
    assert ring.prediction is not None
    assert ring.bus_bandwidth(2.0) == ring.bus_factor * ring.bytes / 2
    stage = record.stages[-1]
    assert stage.stage == 3
    assert stage.sent_bytes is not None
    assert sum(stage.sent_bytes.values()) == 4 * 3 * stage.nominal_elements
    assert record.stages[0].sent_bytes is None


def test_labels_tell_records_apart(changed_file: Callable[[str, Change], Any]) -> None:
    def rename(document: dict[str, Any]) -> None:
        document["topology"]["name"] = "other"

    same = ("a", sample("2x2"))
    other = ("b", changed_file("2x2", rename))
    assert [r.label for r in read_records([same, other])] == ["2x2, sample-2x2", "2x2, other"]
    assert [r.label for r in read_records([same, same])] == [
        "2x2, sample-2x2, mpi, no. 1",
        "2x2, sample-2x2, mpi, no. 2",
    ]
