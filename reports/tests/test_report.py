from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.conftest import Change, sample
from tests.shown_page import Page
from zeroproof_report.__main__ import main
from zeroproof_report.report import write_report


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    count = write_report(page, [(s, sample(s)) for s in ("1x4", "2x2", "4x2")])
    text = page.read_text(encoding="utf-8")
    shown = Page(text)
    assert len(shown.images) == count == 15
    for image in shown.images:
        assert (image["src"] or "").startswith("data:image/png;base64,")
        assert len(image["alt"] or "") > 60
    assert "://" not in text
    assert "script" not in shown.tags
    for word in ("sample-2x2", "16 Gbit/s a rank, 8 µs", "made up", "2 (N - 1) / N", "3 Phi"):
        assert word in shown.text
    figures = tmp_path / "page-figures"
    assert len(list(figures.iterdir())) == count
    assert not list(tmp_path.rglob("*.tmp"))


def test_foreign_text_is_text(tmp_path: Path, changed_file: Callable[[str, Change], Path]) -> None:
    evil = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"

    def change(document: dict[str, Any]) -> None:
        for key in ("command", "host", "backend", "backend_detail", "topology_origin", "started"):
            document[key] = evil
        document["complete"] = False
        document["ended_by"] = evil
        document["topology"]["name"] = evil
        document["operations"][0]["algorithm"] = evil
        document["operations"][0]["bus_formula"] = evil
        document["stages"][0]["formula"] = evil

    page = tmp_path / "page.html"
    write_report(page, [(evil, changed_file("2x2", change))])
    shown = Page(page.read_text(encoding="utf-8"))
    assert "script" not in shown.tags
    assert shown.text.count(evil) >= 10
    assert "is not complete: " + evil in shown.text


def test_what_is_not_known_is_said(
    tmp_path: Path, changed_file: Callable[[str, Change], Path]
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["topology"]["links"]["intra_node"].update(
            bandwidth_gbit_per_s=None, latency_us=None
        )
        document["topology"]["links"]["inter_node"].update(latency_us=None)

    page = tmp_path / "page.html"
    write_report(page, [("r", changed_file("2x2", change))])
    text = Page(page.read_text(encoding="utf-8")).text
    assert "not known" in text
    assert "4 Gbit/s a rank, latency not known" in text


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main([str(page), f"--record={sample('1x4')}", "--name=-r"]) == 0
    assert capsys.readouterr().out == f"{page}: 7 figures\n"
    assert page.exists()
    with pytest.raises(SystemExit):
        main([str(page), f"--record={sample('1x4')}", "--name=a", "--name=b"])


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    # None in the place of a module says that there is none.
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from zeroproof_report.__main__ import main\n"
        f"sys.exit(main([{str(tmp_path / 'p.html')!r}, '--record={sample('1x4')}', '--name=r']))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == "there is no module matplotlib"
