"""Outputs of a comparison: files, and tables on standard output."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import orjson
from rich.console import Console, RenderableType

from shadowtime.replayer.arguments import split_size
from shadowtime.replayer.comparison import (
    DecisionLog,
    RunPlan,
    RunRecord,
    RunResult,
    Schedule,
    result_columns,
    write_schedule,
)
from shadowtime.replayer.logs import AS_READ, write_columns
from shadowtime.replayer.presentation import (
    comparison_table,
    drift_tables,
    expected_table,
    forecast_table,
    prediction_table,
    predictions_run,
    start_table,
    wait_bound_table,
    wait_bound_tables,
)
from shadowtime.replayer.report import page
from shadowtime.replayer.simulation import Observer
from shadowtime.shared.accounting import Reading
from shadowtime.shared.cli import program
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.output import STANDARD_OUTPUT, require_places, require_suffix, result_file
from shadowtime.shared.quoting import json_text

Item = TypeVar("Item")


SUFFIXES = {
    "decisions": (".jsonl",),
    "schedule": (".csv", ".parquet", ".swf", ".swf.gz"),
    "json": (".json",),
    "report": (".html",),
    "results": (".csv", ".parquet"),
}
"""Permitted suffixes of each result file, by the name of the result."""


@dataclass(frozen=True)
class Targets:
    """Paths of result files; None for results that are not wanted."""

    decisions: Path | None = None
    schedule: Path | None = None
    json: Path | None = None
    report: Path | None = None
    results: Path | None = None

    @property
    def all(self) -> Mapping[str, Path | None]:
        """Paths by name of the result."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def take_standard_output(self) -> bool:
        """Whether a result goes to standard output."""
        return Path(STANDARD_OUTPUT) in self.all.values()

    def require_usable(
        self, logs: Sequence[str], reading: Reading = AS_READ, *, one_run: bool, side_by_side: bool
    ) -> None:
        """Raise `SettingsError` if a path has two results, is an input, or has a wrong suffix.

        Also raise it if a file for one run would get several. `one_run` says whether there is only one run,
        `side_by_side` whether the runs are replayed at the same time.
        """
        if not one_run and (self.schedule is not None or (self.decisions is not None and side_by_side)):
            raise SettingsError(
                "--schedule needs one trace and one policy; so does --decisions with --transport kafka or --speed"
            )
        for option, path in self.all.items():
            require_suffix(f"--{option}", path, *SUFFIXES[option])
        read = (*(split_size(log)[0] for log in logs), reading.pools, reading.names_key)
        require_places([*self.all.values(), reading.names], read)


class ResultFiles:
    """The open result files. `observers` has, for each plan, the observers that gather the contents of the files."""

    def __init__(self, targets: Targets, files: Mapping[str, BinaryIO | None], plans: Sequence[RunPlan]) -> None:
        self._targets = targets
        self._files = files
        self._plans = plans
        self._schedule = Schedule()
        wanted = files["report"] is not None or (
            files["json"] is not None and all(plan.workload.whole for plan in plans)
        )
        self.records = [RunRecord(plan) for plan in plans] if wanted else []
        """A record of each run, if a result needs them."""
        of_all: list[Observer] = [] if files["decisions"] is None else [DecisionLog(files["decisions"])]
        if files["schedule"] is not None:
            of_all.append(self._schedule)
        records: Sequence[list[Observer]] = [[record] for record in self.records] or [[]] * len(plans)
        self.observers = [[*of_all, *record] for record in records]

    def write(self, documents: Sequence[Mapping[str, Any]], results: Sequence[RunResult] = ()) -> None:
        """Write all results after the last replay.

        Each document has the scores of the runs of one cluster. `results` are of all runs, for the table of results.
        """
        targets = self._targets
        if (schedule := self._files["schedule"]) is not None and targets.schedule is not None:
            write_schedule(schedule, targets.schedule, self._plans[0], self._schedule)
        if (table := self._files["results"]) is not None and targets.results is not None:
            write_columns(table, targets.results, result_columns(results))
        if (json := self._files["json"]) is not None:
            whole = documents if len(documents) > 1 else documents[0]
            json.write(json_text(orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)))
        if (report := self._files["report"]) is not None:
            command = f"{program() or 'shadowtime replay'} {shlex.join(sys.argv[1:])}".rstrip()
            report.write(page(documents, command, in_parts(self.records, len(documents))).encode())


@contextmanager
def result_files(targets: Targets, plans: Sequence[RunPlan]) -> Iterator[ResultFiles]:
    """Open every result file before the work begins. The files appear only if the work succeeds."""
    with ExitStack() as stack:
        yield ResultFiles(
            targets,
            {
                name: None if path is None else stack.enter_context(result_file(path))
                for name, path in targets.all.items()
            },
            plans,
        )


def in_parts(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Return `count` parts of equal length, in order. There must be a multiple of `count` items, and at least one each.

    >>> in_parts("abcdef", 3)
    ['ab', 'cd', 'ef']
    """
    size = len(items) // count
    return [items[first : first + size] for first in range(0, len(items), size)]


def print_tables(
    by_cluster: Sequence[Sequence[RunResult]],
    baseline: str,
    *,
    predicted: Sequence[RunResult] = (),
    exact: bool = False,
) -> None:
    """Print the tables of each cluster.

    `predicted` has the separate replays with all predictions, one for each cluster, or is empty. Policies are compared
    with the policy labelled `baseline`. With `exact`, times are in seconds.
    """
    console = Console(highlight=False, emoji=False)
    for place, results in enumerate(by_cluster):
        plan = results[0].plan
        tables: list[Callable[..., RenderableType]] = [prediction_table, *[wait_bound_table] * plan.bounds_waits]
        if plan.obeyed:
            tables = [partial(comparison_table, baseline=baseline)]
        if any(result.scores.wait_forecast for result in results):
            tables.append(forecast_table)
        if any(result.scores.starts for result in results):
            tables.append(start_table)
        if any(result.scores.expected_starts for result in results):
            tables.append(expected_table)
        shown: list[RenderableType] = [table(results, exact=exact) for table in tables]
        if plan.obeyed and plan.bounds_waits:
            shown[1:1] = wait_bound_tables(results, exact=exact)
        shown += drift_tables(results)
        if predicted:
            shown += predictions_run.tables(predicted[place], results, exact=exact)
        for number, part in enumerate(shown):
            if place or number:
                console.print()
            console.print(part)
        if plan.obeyed and plan.workload.assumed_size:
            console.print(
                "The log does not state the size of the machine. So the machine has only as many processors as were "
                f"held at one time, {plan.workload.processors:,}, and few jobs wait. State its size with --processors "
                "or --pools."
            )
