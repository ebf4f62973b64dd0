from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

from tests.conftest import TRAININGS, Change, training
from tests.make_training_sample import PHI
from tests.shown_page import Page
from tests.test_training_figures import ended_early
from zeroproof_report.__main__ import main
from zeroproof_report.report import write_report
from zeroproof_report.units import grouped


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    count = write_report(page, [(name, training(name)) for name in TRAININGS])
    text = page.read_text(encoding="utf-8")
    shown = Page(text)
    assert len(shown.images) == count == 8
    for image in shown.images:
        assert (image["src"] or "").startswith("data:image/png;base64,")
        assert len(image["alt"] or "") > 60
    assert "://" not in text
    assert "script" not in shown.tags
    for word in (
        "made-up",
        "stage 3, recompute 1",
        grouped(16 * PHI),  # at rest: measured, formula and predicted
        "+0.01 %",
        "reduce_scatter",
        "3.000",  # phi, which stage 3 sends
    ):
        assert word in shown.text
    assert len(list((tmp_path / "page-figures").iterdir())) == count
    assert not list(tmp_path.rglob("*.tmp"))


def test_foreign_text_is_text(
    tmp_path: Path, changed_training: Callable[[str, Change], Path]
) -> None:
    evil = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"

    def change(document: dict[str, Any]) -> None:
        ended_early(document)
        for key in ("command", "started", "zeroproof_version", "data", "ended_by"):
            document[key] = evil
        document["plan"]["model"]["name"] = evil

    page = tmp_path / "page.html"
    write_report(page, [(evil, changed_training("stage2", change))])
    shown = Page(page.read_text(encoding="utf-8"))
    assert "script" not in shown.tags
    assert shown.text.count(evil) >= 7
    assert "is not complete: " + evil in shown.text
    assert "not taken" in shown.text


def test_a_run_that_went_on_and_diverged(
    tmp_path: Path, changed_training: Callable[[str, Change], Path]
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["resumed_at"] = 30
        document["plan"]["steps"] = 42
        for step in document["steps"]:
            step["step"] += 30
        document["steps"][-1]["loss"] = None
        document["by_rank"][1]["host_peak_bytes"] = 4321

    page = tmp_path / "page.html"
    write_report(page, [("r", changed_training("stage2", change))])
    text = Page(page.read_text(encoding="utf-8")).text
    for word in ("31 to 42", "not finite", grouped(4321)):
        assert word in text


def test_the_command_line_knows_the_kind(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main([str(page), f"--record={training('stage0')}", "--name=r"]) == 0
    assert "Training with ZeRO" in page.read_text(encoding="utf-8")
