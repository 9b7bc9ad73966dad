"""Comparisons of policies from Python: a grid of logs, perturbed copies, policies and predictors."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shadowtime.replayer.api.api import Log, replay, workload_of
from shadowtime.replayer.api.frames import require_pandas
from shadowtime.replayer.api.own import require_several
from shadowtime.replayer.api.result import Result
from shadowtime.replayer.arguments import require_used
from shadowtime.replayer.logs import perturbed
from shadowtime.replayer.report import by_user, escape, table, tables
from shadowtime.replayer.simulation import SOURCES, Machine
from shadowtime.services.catalogue import chooses
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.formatting import counted, percent
from shadowtime.shared.quoting import among
from shadowtime.shared.statistics import Interval, half_width

if TYPE_CHECKING:
    import pandas as pd

MAX_COPIES = 1_000

FIGURES = ("mean_wait", "mean_bounded_slowdown", "max_wait", "worst_user", "utilization")
"""Figures of a row: four of `PolicyScores`, and the longest mean wait of a user with 20 jobs or more, in seconds."""


class Draw(NamedTuple):
    """One replay of a comparison: the log, the number of its copy (0: the log itself), the policy, and the result."""

    log: str
    copy: int
    policy: str
    result: Result


class Compared:
    """Replays of the same logs under several policies. Frames need the extra `frames` (pandas).

    Attributes
    ----------
    draws
        All replays: by log, then by copy, then by policy, in the order of the arguments.
    """

    def __init__(self, draws: Sequence[Draw]) -> None:
        self.draws = tuple(draws)

    def __repr__(self) -> str:
        logs, policies = (
            list(dict.fromkeys(names)) for names in zip(*((d.log, d.policy) for d in self.draws), strict=True)
        )
        copies = len({draw.copy for draw in self.draws})
        between = "; " if any(", " in policy for policy in policies) else ", "
        return f"<Compared: {between.join(policies)} on {', '.join(logs)}, {counted(copies, 'draw')} each>"

    @property
    def rows(self) -> "pd.DataFrame":
        """A row per replay: log, number of the copy (0: the log itself), policy and `FIGURES`. Times are in seconds."""
        require_pandas()
        import pandas as pd

        return pd.DataFrame(list(self._figures()), columns=["log", "copy", "policy", *FIGURES])

    @property
    def table(self) -> "pd.DataFrame":
        """A row per log and policy: the mean of each figure over the log and its copies."""
        rows = self.rows
        return rows.drop(columns="copy").groupby(["log", "policy"], sort=False).mean()

    def relative(self, to: str | None = None, *, interval: bool = False) -> "pd.DataFrame":
        """Return the ratio of each figure to that of a policy on the same copy: geometric means over copies and logs.

        The frame has a row per policy. A ratio of two zeros, or of a figure that a replay lacks, is unknown. The means
        do not include it.

        Parameters
        ----------
        to
            Name of a policy of the comparison; by default the first one.
        interval
            Whether each figure has three columns: `mean`, `low` and `high`. The last two are a 95 % interval (Student's
            t) over the copies. The copies with the same number, one of each log, are one draw. Without copies, `low`
            and `high` are missing.

        Raises
        ------
        SettingsError
            If the comparison has no such policy.
        """
        return self._relative(self.rows, self.draws[0].policy if to is None else to, interval=interval)

    @staticmethod
    def _relative(rows: "pd.DataFrame", base: str, *, interval: bool) -> "pd.DataFrame":
        import pandas as pd

        if base not in set(rows["policy"]):
            raise SettingsError(f"unknown policy {base!r}{among(base, dict.fromkeys(rows['policy']))}")
        figures = list(FIGURES)
        of_base = rows[rows["policy"] == base].set_index(["log", "copy"])[figures].astype("float64")
        keys = list(zip(rows["log"], rows["copy"], strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.log(rows[figures].to_numpy("float64") / of_base.loc[keys].to_numpy("float64"))
        draws = pd.DataFrame(logarithms, columns=figures).groupby([rows["policy"], rows["copy"]], sort=False).mean()
        means = draws.groupby(level="policy", sort=False).mean()
        if not interval:
            return means.apply(np.exp)
        half = draws.groupby(level="policy", sort=False).agg(_half_of_known)
        columns = {"mean": means, "low": means - half, "high": means + half}
        return pd.concat(columns, axis=1).swaplevel(axis=1)[figures].apply(np.exp)

    def report(self, path: str | PathLike[str], log: str | None = None) -> None:
        """Write the page that compares the policies on the log of this name, by default on the first log.

        With copies, the page has a table of `relative(interval=True)` of this log. All else is of the unchanged log.

        Raises
        ------
        OutputError
            If the file cannot be written.
        SettingsError
            If the comparison has no such log.
        """
        name = self.draws[0].log if log is None else log
        of_log = {draw.policy: draw.result for draw in self.draws if draw.log == name and draw.copy == 0}
        if not of_log:
            raise SettingsError(f"unknown log {name!r}{among(name, dict.fromkeys(d.log for d in self.draws))}")
        first, *others = of_log.values()
        first.report_as(path, others, [*of_log], self._table_of_draws(name))

    def _table_of_draws(self, log: str) -> str:
        """Return an HTML table of the ratios of figures on a log and its copies; empty without copies."""
        copies = max(draw.copy for draw in self.draws)
        base = self.draws[0].policy
        if not copies:
            return ""
        rows = self.rows
        ratios = self._relative(rows[rows["log"] == log], base, interval=True)

        def shown(of_row: Any, figure: str) -> str:
            mean, low, high = (float(of_row[figure, part]) for part in ("mean", "low", "high"))
            if not np.isfinite(mean):
                return "-"
            return tables.interval_cell(Interval(mean, *((low, high) if np.isfinite(low) else (None, None))), percent)

        body = [
            [escape(str(policy)), *(shown(of_row, figure) for figure in FIGURES)]
            for policy, of_row in ratios.iterrows()
            if policy != base
        ]
        of_it = "a perturbed copy" if copies == 1 else f"{copies} perturbed copies"
        note = (
            f"Means over the log and {of_it} of it, as shares of {base}, with 95 % confidence intervals in brackets. "
            "All else on this page is about the log itself, which is one draw."
        )
        heads = ["policy", "mean wait", "bounded slowdown", "longest wait", "worst user", "utilization"]
        return table(heads, body, "On copies of the log", note)

    def _figures(self) -> Iterator[tuple[Any, ...]]:
        for draw in self.draws:
            scores, jobs = draw.result.scores.policy, draw.result.record.jobs
            of_scores = (scores.mean_wait, scores.mean_bounded_slowdown, scores.max_wait)
            worst = max(by_user(jobs.wait, jobs.user_id), default=None)
            yield draw.log, draw.copy, draw.policy, *of_scores, worst, scores.utilization


def _half_of_known(values: "pd.Series[float]") -> float:
    return half_width(values.dropna().tolist())


def compare(
    logs: Log | Sequence[Log], policies: Sequence[Any], *, runtime: Any = None, copies: int = 0, **options: Any
) -> Compared:
    """Replay logs, and perturbed copies of them, under several policies and with several predictors.

    The replays run one after another in this process, so policies may be classes, objects and functions of a notebook.

    Parameters
    ----------
    logs
        A workload from `read_log` or the path of a log, or a list or tuple of them.
    policies
        SPECs, classes, objects or functions, as for `replay`. By default, `relative` compares with the first.
    runtime
        A predictor of run times, as for `replay`, or a list of them. With a list, each policy is replayed with each
        predictor, as row `POLICY, PREDICTOR`. A SPEC that chooses its own predictor, such as `easy:runtime=requested`
        or `best`, is replayed once.
    copies
        Number of perturbed copies of each log beside the log itself. In a copy, every submission is moved by up to a
        minute (docs/campaigns.md). So the differences between copies show how much is chance.
    options
        Further arguments of `replay`, the same for all: `adjustment`, `wait_bound`, `seed` and others.

    Raises
    ------
    SettingsError
        If an argument is out of its range, no policy would use `runtime`, two rows or two logs have the same name, or
        there are several rows in a mode in which jobs start as recorded.
    TraceError
        If a log cannot be read.
    ReplayError
        If waiting jobs can never start.

    Examples
    --------
    >>> from shadowtime import read_log
    >>> def in_order(now, queue, running, free):
    ...     return [row for row, taken in enumerate(queue.processors.cumsum()) if taken <= free]
    >>> compared = compare(read_log(jobs=300), ["easy", in_order], copies=1)
    >>> compared
    <Compared: easy, in-order on bundled, 2 draws each>
    >>> bool(compared.relative().loc["in-order", "mean_wait"] > 1)
    True
    >>> compare(read_log(jobs=300), ["easy:runtime=requested", "lwf"], runtime=["last-two", "empirical"])
    <Compared: easy:runtime=requested; lwf, last-two; lwf, empirical on bundled, 1 draw each>

    References
    ----------
    docs/campaigns.md (Tsafrir 2006, for perturbed copies).
    """
    if not isinstance(copies, int) or not 0 <= copies <= MAX_COPIES:
        raise SettingsError(f"copies: expected a whole number from 0 to {MAX_COPIES:,}, found {copies!r}")
    require_several(policies)
    if not policies:
        raise SettingsError(f"policies: expected a list of policies, found {policies!r}")
    several: Sequence[Any] = logs if isinstance(logs, list | tuple) else [logs]
    if not several:
        raise SettingsError("logs: expected at least one log")
    mode = options.get("mode", Machine.name)
    workloads = [workload_of(log, mode) for log in several]
    predictors = runtime if isinstance(runtime, list | tuple) else [runtime]
    if not predictors:
        raise SettingsError("runtime: expected at least one predictor")
    own = [isinstance(policy, str) and chooses(policy, "runtime") for policy in policies]
    if runtime is not None and all(own):
        require_used("runtime", "runtime", str(predictors[0]), policies)
    grid = [
        (policy, predictor)
        for policy, has_predictor in zip(policies, own, strict=True)
        for predictor in ([None] if has_predictor else predictors)
    ]
    if len(grid) > 1 and not SOURCES[mode].closed_loop:
        raise SettingsError(
            f"expected one policy and one predictor in {mode} mode, where jobs start as recorded under every policy; "
            f"found {len(grid)} rows; replay each predictor with mode={mode!r}"
        )
    _require_different("log", [workload.name for workload in workloads])
    draws: list[Draw] = []
    for workload in workloads:
        for copy in range(copies + 1):
            moved = perturbed(workload, copy)
            results = [replay(moved, policy, runtime=predictor, **options) for policy, predictor in grid]
            names = [
                _row_of(result, predictor if predictors is runtime else None)
                for (_, predictor), result in zip(grid, results, strict=True)
            ]
            _require_different("policy", names)
            draws += [Draw(workload.name, copy, *pair) for pair in zip(names, results, strict=True)]

    return Compared(draws)


def _row_of(result: Result, predictor: Any) -> str:
    """Return the name of a row, with the predictor unless it is None: its SPEC as written, or that of an object."""
    label = result.record.plan.label
    if predictor is None:
        return label
    return f"{label}, {predictor if isinstance(predictor, str) else result.configuration.runtime}"


def _require_different(kind: str, names: Sequence[str]) -> None:
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise SettingsError(f"{kind} {twice[0]!r} occurs twice; give each {kind} a unique name")
