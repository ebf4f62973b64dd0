"""Starts all ranks of a subject on this machine.

    python -m zeroproof_adapter.launch SUBJECT --ranks N CASES RESULTS

SUBJECT is a built-in name, or the path of a Python file that defines TRAINER. The subject and what
it needs is imported once, before the ranks are forked: that is most of the time of starting them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import NoReturn

from zeroproof_adapter.runner import main as run_rank
from zeroproof_adapter.simulated import main_simulated
from zeroproof_adapter.trainer import World

EXIT_ENVIRONMENT = 3

# How long other ranks may go on after one has failed: they may be about to say why, too.
GRACE_SECONDS = 2.0


class MissingPackage(Exception):
    """What the subject imports is not there."""

    def __init__(self, what: str, packages: Sequence[str]) -> None:
        super().__init__(what)
        # Without a list in the adapter the name in the message is all that is known.
        self.install = "pip install " + " ".join(packages) if packages else ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="zeroproof_adapter.launch", description="Starts ranks.")
    parser.add_argument("subject", help="a built-in subject, or a Python file with TRAINER")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("cases", type=Path)
    parser.add_argument("results", type=Path)
    arguments = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # ranks share the cores
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module = import_subject(arguments.subject)
            module.TRAINER.prepare()
    except MissingPackage as missing:
        words = {"environment": str(missing), "install": missing.install}
        print(json.dumps({key: value for key, value in words.items() if value}))
        return EXIT_ENVIRONMENT
    version = module.version() if hasattr(module, "version") else "unversioned"
    of_ranks = [str(arguments.cases), str(arguments.results), "--ranks", str(arguments.ranks)]
    if issubclass(module.TRAINER, World):
        main_simulated(module.TRAINER, of_ranks, version)
        return 0
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return _Launch(module, version, arguments.ranks, of_ranks).run()


def subject_file(subject: str) -> Path:
    """Where a subject is defined. Raises SystemExit for an unknown one."""
    if subject.endswith(".py"):
        file = Path(subject).resolve()
    else:
        file = Path(__file__).parent / "subjects" / f"{subject.replace('-', '_')}.py"
    if not file.is_file():
        sys.exit(f"there is no subject {subject}")
    return file


def import_subject(subject: str) -> ModuleType:
    """The module of a subject, with TRAINER, and version() if it has one. Raises MissingPackage."""
    file = subject_file(subject)
    try:
        if not subject.endswith(".py"):
            return importlib.import_module(f"zeroproof_adapter.subjects.{file.stem}")
        sys.path.insert(0, str(file.parent))  # as if it had been started itself
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        return module
    except ImportError as error:
        packages = _packages(file)
        missing = [package for package in packages if not _is_installed(package)]
        raise MissingPackage(f"{error}", missing or packages) from error


def _packages(file: Path) -> list[str]:
    """PACKAGES of a subject that cannot be imported: a list or tuple of texts in its source."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "PACKAGES" for target in node.targets
        ):
            return [str(package) for package in ast.literal_eval(node.value)]
    return []


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


class _Launch:
    """The ranks of one launch, as children of this process."""

    def __init__(
        self, module: ModuleType, version: str, ranks: int, arguments: Sequence[str]
    ) -> None:
        self._module = module
        self._version = version
        self._ranks = ranks
        self._arguments = arguments
        self._running: dict[int, int] = {}  # rank by process id

    def run(self) -> int:
        """0 if every rank ends well; else the code of the first that does not."""
        os.environ.update(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port()), WORLD_SIZE=str(self._ranks)
        )
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        sys.stdout.flush()
        sys.stderr.flush()
        for rank in range(self._ranks):
            child = os.fork()
            if child == 0:
                self._run_rank(rank)
            self._running[child] = rank
        return self._wait()

    def _run_rank(self, rank: int) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(self._ranks))
        code = 1
        try:
            run_rank(self._module.TRAINER, self._arguments, self._version)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # a fork must not run what the parent has registered for its own end

    def _wait(self) -> int:
        code = 0
        while self._running and code == 0:
            code = self._reap(0)
        if code != 0:
            deadline = time.monotonic() + GRACE_SECONDS
            while self._running and time.monotonic() < deadline:
                self._reap(os.WNOHANG)
                time.sleep(0.02)
            self._kill()
        return code

    def _reap(self, options: int) -> int:
        """The exit code of a rank that has ended, 0 if none has."""
        child, status = os.waitpid(-1, options)
        if child not in self._running:
            return 0
        rank = self._running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            print(f"rank {rank} ended with {code}", file=sys.stderr)
        return code if code >= 0 else 128 - code

    def _kill(self) -> None:
        for child in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in self._running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        self._running.clear()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._kill()
        os._exit(128 + number)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
