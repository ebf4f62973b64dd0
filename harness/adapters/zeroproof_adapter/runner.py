"""The program of one rank: runs every case of a launch and writes its evidence."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar, Union

from zeroproof_adapter.cases import Action, Case, CasesError, read_plan
from zeroproof_adapter.evidence import Evidence, StepReport, write_ready
from zeroproof_adapter.trainer import (
    Actions,
    Rejected,
    Trainer,
    Unavailable,
    check_declaration,
    why_rejected,
)

# Where launchers say which rank a process is, and of how many.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)

# The phase that an action's work belongs to. Edits from outside count as reading, which is no part
# of any volume; what changes the set of trained parameters counts as setting up.
_PHASES = {
    "micro_step": "forward",
    "step": "step",
    "zero_grad": "zero_grad",
    "evaluate": "evaluate",
    "read": "read",
    "rate": "read",
    "clip": "read",
    "scale_gradient": "read",
    "scale_weight": "read",
    "freeze": "initialise",
    "unfreeze": "initialise",
    "add_group": "initialise",
    "save": "save",
    "load": "load",
    "reload": "load",
}

Reports = Union[None, StepReport, Sequence[StepReport]]


def main(
    trainer: type[Trainer], argv: Sequence[str] | None = None, version: str = "unversioned"
) -> None:
    """Runs all cases on this rank, `argv` being `{cases} {results}`, else the command line's.

    The rank and the world size are those of torchrun, `zeroproof_adapter.launch`, Open MPI, an MPI
    with PMI or Slurm. Ends the process with 1 after a failure, since other ranks may then wait for
    this one for ever, and with 2 if it cannot begin.
    """
    cases, results, ranks = parse_arguments(argv)
    try:
        plan = read_plan(cases, ranks)
        rank = find_rank(plan.ranks)
    except CasesError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    check_declaration(trainer)
    trainer.prepare()
    gc.freeze()  # what is imported stays: collections then look at the cases' objects alone
    write_ready(results, rank, trainer.name, version)
    for case in plan:
        if not run_case(trainer, case, rank, results):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # an orderly end may wait for what other ranks will never send


def parse_arguments(argv: Sequence[str] | None) -> tuple[Path, Path, int | None]:
    """The folders of cases and results, and the world size if it is given."""
    parser = argparse.ArgumentParser(description="Runs cases and writes evidence.")
    parser.add_argument("cases", type=Path, help="folder with cases.json")
    parser.add_argument("results", type=Path, help="folder for evidence")
    parser.add_argument("--ranks", type=int, help="world size, to be that of the cases")
    arguments = parser.parse_args(argv)
    return arguments.cases, arguments.results, arguments.ranks


def find_rank(ranks: int) -> int:
    """This process's rank, from its launcher's variables. Raises CasesError."""
    for rank_variable, size_variable in _LAUNCHERS:
        if rank_variable in os.environ and size_variable in os.environ:
            rank, size = int(os.environ[rank_variable]), int(os.environ[size_variable])
            break
    else:
        rank, size = 0, 1
    if size != ranks:
        raise CasesError(f"the cases are for {ranks} ranks, and this launch has {size}")
    os.environ.setdefault("RANK", str(rank))
    os.environ.setdefault("WORLD_SIZE", str(size))
    return rank


def run_case(trainer_type: type[Trainer], case: Case, rank: int, results: Path) -> bool:
    """Runs one case on one rank and writes its evidence. False after a failure, which leaves this
    process, and what other ranks wait for, in an unknown state."""
    evidence = Evidence(case, rank, case_folder(results, case))

    def build() -> Trainer:
        trainer = trainer_type(case.loaded(), rank, case.ranks)
        evidence.observed = frozenset(trainer.observes)
        return trainer

    def look(trainer: Trainer, action: int, report: Reports) -> None:
        assert report is None or isinstance(report, StepReport)
        state = trainer.read(report is not None and not report.skipped)
        evidence.add_snapshot(action, state, report)

    def finish(trainer: Trainer) -> None:
        evidence.records = trainer.records()

    status, message = Attempt(trainer_type, case, results, build, look, finish).run()
    evidence.write(status, message)
    return status != "failed"


def case_folder(results: Path, case: Case) -> Path:
    return results / f"{case.index:04d}"


AnyTrainer = TypeVar("AnyTrainer", bound=Actions)


class Attempt(Generic[AnyTrainer]):
    """Performs a case's actions with a trainer."""

    def __init__(
        self,
        trainer_type: type[AnyTrainer],
        case: Case,
        results: Path,
        build: Callable[[], AnyTrainer],
        look: Callable[[AnyTrainer, int, Reports], None],
        finish: Callable[[AnyTrainer], None],
    ) -> None:
        """`look` takes a snapshot after an action, given the number of the action and the reports
        of a step; `finish` takes what was recorded over the whole case."""
        self._type = trainer_type
        self._case = case
        self._build = build
        self._look = look
        self._finish = finish
        self._checkpoints = case_folder(results, case) / "checkpoints"
        self._last_checkpoint = case.load_from
        self._began = False

    def run(self) -> tuple[str, str]:
        """The status of the evidence, and why."""
        if reason := why_rejected(self._type, self._case):
            return "rejected", reason
        trainer: AnyTrainer | None = None
        try:
            trainer = self._build()
            self._perform(trainer)
            self._finish(trainer)
            trainer.close()
        except (Exception, SystemExit) as error:
            if not self._began and isinstance(error, Rejected):
                return "rejected", one_line(error)
            if not self._began and isinstance(error, Unavailable):
                return "environment", one_line(error)
            traceback.print_exc()
            if trainer is not None:
                with contextlib.suppress(Exception):  # the first failure is the one to tell
                    self._finish(trainer)
                with contextlib.suppress(Exception):
                    trainer.close()
            return "failed", describe(error)
        return "completed", ""

    def _perform(self, trainer: AnyTrainer) -> None:
        if self._case.load_from is None:
            self._snapshot(trainer, -1)
        for action in self._case.actions:
            # Whether a checkpoint can be loaded here is known once it is read.
            self._began = self._began or action.kind != "reload"
            trainer.action = action.index
            trainer.enter(_PHASES[action.kind])
            reports = self._act(trainer, action)
            if action.kind != "micro_step":
                self._snapshot(trainer, action.index, reports)
        if self._case.save_to is not None:
            trainer.enter("save")
            self._save(trainer, self._case.save_to)

    def _snapshot(self, trainer: AnyTrainer, action: int, reports: Reports = None) -> None:
        trainer.enter("read")
        self._look(trainer, action, reports)

    def _act(self, trainer: AnyTrainer, a: Action) -> Reports:
        if a.kind == "micro_step":
            trainer.micro_step(_known(a.micro_step), _known(a.synchronise))
        elif a.kind == "step":
            return trainer.step()
        elif a.kind == "zero_grad":
            trainer.zero_grad(_known(a.by))
        elif a.kind == "evaluate":
            trainer.evaluate()
        elif a.kind == "rate":
            trainer.set_learning_rate(_known(a.group), _known(a.value))
        elif a.kind == "clip":
            trainer.clip(_known(a.value))
        elif a.kind == "scale_gradient":
            trainer.scale_gradient(_known(a.parameter), _known(a.value))
        elif a.kind == "scale_weight":
            trainer.scale_weight(_known(a.parameter), _known(a.value))
        elif a.kind == "freeze":
            trainer.freeze(_known(a.parameter))
        elif a.kind == "unfreeze":
            trainer.unfreeze(_known(a.parameter))
        elif a.kind == "add_group":
            trainer.add_group(_known(a.group))
        elif a.kind == "save":
            self._save(trainer, self._checkpoints / str(a.index))
        elif a.kind in ("load", "reload"):
            if self._last_checkpoint is None:
                raise CasesError(f"action {a.index} loads, and nothing has been saved")
            trainer.load(self._last_checkpoint)
        return None

    def _save(self, trainer: AnyTrainer, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        trainer.save(folder)
        self._last_checkpoint = folder


def describe(error: BaseException) -> str:
    """What happened and where, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, {frames[-1].name})"
    return f"{type(error).__name__}: {one_line(error)}{place if frames else ''}"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or "no message"


Known = TypeVar("Known")


def _known(value: Known | None) -> Known:
    """What an action of that kind always has, since cases are read strictly."""
    assert value is not None
    return value
