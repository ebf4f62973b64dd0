"""The program of a trainer that simulates all ranks in one process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from zeroproof_adapter.cases import Case, CasesError, read_plan
from zeroproof_adapter.evidence import Evidence, StepReport, write_ready
from zeroproof_adapter.runner import Attempt, Reports, case_folder, parse_arguments
from zeroproof_adapter.trainer import World, check_declaration


def main_simulated(
    world: type[World], argv: Sequence[str] | None = None, version: str = "unversioned"
) -> None:
    """Runs all cases and writes the evidence of every rank; `argv` is `{cases} {results}`, else the
    command line's. A case that fails leaves the others alone."""
    cases, results, ranks = parse_arguments(argv)
    try:
        plan = read_plan(cases, ranks)
    except CasesError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    check_declaration(world)
    world.prepare()
    for rank in range(plan.ranks):
        write_ready(results, rank, world.name, version)
    for case in plan:
        run_case_simulated(world, case, results)


def run_case_simulated(world_type: type[World], case: Case, results: Path) -> str:
    """Runs one case on all ranks and writes their evidence; its status."""
    evidence = [Evidence(case, rank, case_folder(results, case)) for rank in range(case.ranks)]

    def build() -> World:
        world = world_type(case.loaded(), case.ranks)
        for of_rank in evidence:
            of_rank.observed = frozenset(world.observes)
        return world

    def look(world: World, action: int, reports: Reports) -> None:
        each = [reports] * case.ranks if not isinstance(reports, Sequence) else reports
        for rank, (of_rank, report) in enumerate(zip(evidence, each)):
            assert report is None or isinstance(report, StepReport)
            state = world.read(rank, report is not None and not report.skipped)
            of_rank.add_snapshot(action, state, report)

    def finish(world: World) -> None:
        for rank, of_rank in enumerate(evidence):
            of_rank.records = world.records(rank)

    status, message = Attempt(world_type, case, results, build, look, finish).run()
    for of_rank in evidence:
        of_rank.write(status, message)
    return status
