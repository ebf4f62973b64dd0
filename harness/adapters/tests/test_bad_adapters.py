"""Adapters that crash, hang, print rubbish and write files that lie.

Each runs three cases with the template's trainer and misbehaves at one place, mostly in the second
case. It has to end in a verdict or in exit code 4, with a message that says what is wrong: never
with a pass of that case, and neither with a signal nor with a fault of the program itself.
`bad_adapters.json` has them; one that ends with 1 is the trainer's fault, one with 4 the adapter's.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.judging import ADAPTERS, Judged, needs_program, verify

pytestmark = needs_program

CASES = ["decay/stage=1,ranks=2,precision=fp32*", "groups/stage=1,ranks=2,precision=fp32"]
SECOND = "decay/stage=1,ranks=2,precision=fp32,groups=l2"

CONTROL = {chr(code) for code in (*range(32), *range(127, 160))}  # a terminal obeys them

# All ranks in one process: `start` is run before anybody is ready, `before` and `after` around the
# second case.
ADAPTER = '''
import json, os, shutil, signal, struct, subprocess, sys, time
from pathlib import Path

from template_adapter import Template
from zeroproof_adapter.cases import read_plan
from zeroproof_adapter.evidence import write_ready
from zeroproof_adapter.simulated import run_case_simulated

ranks, cases, results = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
here = Path(__file__).parent
outside = here / "outside"
with open(here / "launches", "a") as launches:
    launches.write("x")
plan = read_plan(cases, ranks)
ready = results / "ready-0.json"


def replace(path, content):
    """As a whole: a bad adapter may still be careful."""
    other = path.with_name(path.name + ".new")
    other.write_bytes(content)
    os.replace(other, path)


def rubbish():
    for stream in (1, 2):
        for _ in range(64):
            os.write(stream, bytes(range(256)) * 512)


def header(tensors):
    data = tensors.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size])


def with_header(tensors, header):
    data, text = tensors.read_bytes(), json.dumps(header).encode()
    (size,) = struct.unpack("<Q", data[:8])
    replace(tensors, struct.pack("<Q", len(text)) + text + data[8 + size :])


def change(path, old, new):
    text = path.read_text()
    assert old in text, text
    replace(path, text.replace(old, new, 1).encode())


def start():
    START


def before():
    BEFORE


def after(json_file, tensors, folder):
    AFTER


start()
write_ready(results, 0, "bad", "1")
READY
write_ready(results, 1, "bad", "1")  # until now nobody looks for results
for case in plan:
    second = case.id == "SECOND"
    if second:
        before()
        # The evidence becomes visible as a whole, once it is as bad as it should be.
        hidden = here / f"hidden-{os.getpid()}"
        run_case_simulated(Template, case, hidden)
        folder = hidden / f"{case.index:04d}"
        after(folder / "rank-1.json", folder / "rank-1.safetensors", folder)
        if folder.exists():
            shutil.move(folder, results / folder.name)
    else:
        run_case_simulated(Template, case, results)
'''


@dataclass(frozen=True)
class Bad:
    name: str
    says: str  # what the program's output has to match
    start: str = "pass"
    ready: str = ""
    before: str = "pass"
    after: str = "pass"
    exit_code: int = 4
    launches: int = 1


def judge(folder: Path, bad: Bad, *options: str) -> Judged:
    text = ADAPTER.replace("SECOND", SECOND).replace("READY", textwrap.dedent(bad.ready))
    for place in ("start", "before", "after"):
        code = textwrap.dedent(getattr(bad, place)).strip()
        text = text.replace(place.upper(), textwrap.indent(code, "    ").strip())
    (folder / "outside").mkdir()
    (folder / "bad.py").write_text(text)
    command = f"{sys.executable} bad.py {{ranks}} {{cases}} {{results}}"
    judged = verify(folder, command, CASES, *options, package=ADAPTERS)
    assert judged.exit_code >= 0, f"ended by signal {-judged.exit_code}"
    assert judged.exit_code in (0, 1, 3, 4), judged.text
    assert len(judged.text) < 100_000 and not set(judged.text) & CONTROL
    assert len(judged.cases) == 3, "every case has a verdict, whatever happens"
    return judged


def launches(folder: Path) -> int:
    return len((folder / "launches").read_text())


def test_a_good_one(tmp_path: Path) -> None:
    judged = judge(tmp_path, Bad("", ""))
    assert judged.exit_code == 3 and judged.failed() == set(), judged.text
    assert judged.verdicts("LIVENESS.END") == ["pass"] * 3
    assert launches(tmp_path) == 1


ROWS = json.loads((Path(__file__).parent / "bad_adapters.json").read_text())
AT_START = [Bad(**row) for row in ROWS["at_start"]]
IN_A_CASE = [Bad(**row) for row in ROWS["in_a_case"]]


@pytest.mark.parametrize("bad", AT_START, ids=[bad.name for bad in AT_START])
def test_at_start(tmp_path: Path, bad: Bad) -> None:
    judged = judge(tmp_path, bad)
    assert judged.exit_code == 4, judged.text
    assert re.search(bad.says, judged.text), judged.text
    assert judged.passed() == set()
    assert {case["status"] for case in judged.cases} == {"environment"}
    assert (tmp_path / "outside").is_dir()
    assert launches(tmp_path) == 1


@pytest.mark.parametrize("bad", IN_A_CASE, ids=[bad.name for bad in IN_A_CASE])
def test_in_a_case(tmp_path: Path, bad: Bad) -> None:
    judged = judge(tmp_path, bad)
    assert judged.exit_code == bad.exit_code, judged.text
    assert re.search(bad.says, judged.text), judged.text
    expected = "fail" if bad.exit_code == 1 else "environment"
    assert judged.verdicts("LIVENESS.END") == ["pass", expected, "pass"]
    assert judged.cases[1]["id"] == SECOND and judged.cases[1]["passed"] == []
    assert judged.verdicts("GRADIENT.MEAN")[::2] == ["pass", "pass"]
    assert launches(tmp_path) == bad.launches


CHILDREN = """
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
sleep = [sys.executable, "-c", deaf]
children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
(here / "children").write_text(" ".join(str(c.pid) for c in children))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""


def wait_for_the_end_of(folder: Path) -> None:
    left = [int(pid) for pid in (folder / "children").read_text().split()]
    deadline = time.monotonic() + 5
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if is_running(pid)]
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, 9)
    assert left == [], "what the command had started still ran"


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_hang_ends_all_processes(tmp_path: Path) -> None:
    bad = Bad("", "", before=CHILDREN + "time.sleep(60)")
    begin = time.monotonic()
    judged = judge(tmp_path, bad, "--timeout=2")
    assert time.monotonic() - begin < 40
    assert judged.exit_code == 1, judged.text
    assert re.search(r"no result within \d s, so all its processes were ended", judged.text)
    assert judged.verdicts("LIVENESS.END") == ["pass", "fail", "pass"]
    assert launches(tmp_path) == 2
    wait_for_the_end_of(tmp_path)


def test_a_crash_ends_its_process_group(tmp_path: Path) -> None:
    before = CHILDREN.replace(", start_new_session=True", "")
    judged = judge(tmp_path, Bad("", "", before=before + "os._exit(7)"))
    assert judged.verdicts("LIVENESS.END") == ["pass", "fail", "pass"]
    wait_for_the_end_of(tmp_path)


def test_an_end_that_leaves_processes(tmp_path: Path) -> None:
    """They hold the command's output open, which nobody waits for."""
    begin = time.monotonic()
    judged = judge(tmp_path, Bad("", "", start=CHILDREN.replace(", start_new_session=True", "")))
    assert time.monotonic() - begin < 40
    assert judged.exit_code == 3, judged.text
    wait_for_the_end_of(tmp_path)


def test_many_crashes_end(tmp_path: Path) -> None:
    """Not one launch a case for ever: it says how to go on."""
    (tmp_path / "bad.py").write_text(
        textwrap.dedent("""
            import os, sys
            from pathlib import Path
            from zeroproof_adapter.evidence import write_ready

            for rank in range(int(sys.argv[1])):
                write_ready(Path(sys.argv[3]), rank, "bad", "1")
            os._exit(5)
        """)
    )
    command = f"{sys.executable} bad.py {{ranks}} {{cases}} {{results}}"
    judged = verify(tmp_path, command, ["sizes/stage=1,ranks=2*", "accumulation/stage=1,ranks=2*"])
    assert len(judged.cases) > 12 and judged.passed() == set()
    assert judged.verdicts("LIVENESS.END")[:10] == ["fail"] * 10
    assert set(judged.verdicts("LIVENESS.END")[10:]) == {"environment"}
    assert "10 launches in a row ended without completing a case" in judged.text
