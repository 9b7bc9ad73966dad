"""The steps of a comparison: read logs, plan runs, replay, write files, print tables."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from shadowtime.replayer.arguments import (
    Preparation,
    configurations,
    origin_of,
    parse_changes,
    parse_pace,
    parse_speedup,
    parse_wait_bound,
    read_clusters,
    require_one_pool,
)
from shadowtime.replayer.commands.outputs import Targets, in_parts, print_tables, result_files
from shadowtime.replayer.commands.replay_options import Options
from shadowtime.replayer.comparison import (
    Observers,
    RunPlan,
    RunRecord,
    RunResult,
    as_json,
    baseline_of,
    carry_out,
    carry_out_paced,
    carry_out_streamed,
    cited,
    compiled_first,
    pays,
    replay_on_cores,
    with_progress,
)
from shadowtime.replayer.io import Interruption, Pace
from shadowtime.replayer.logs import BUNDLED, require_parquet
from shadowtime.replayer.presentation import predictions_plan
from shadowtime.replayer.reading_options import reading_of
from shadowtime.replayer.simulation import SOURCES, JobTraits
from shadowtime.services.catalogue import configure, files_of
from shadowtime.services.scheduler import OBJECTIVES
from shadowtime.shared.chance import require_seed
from shadowtime.shared.cli import say, start_logging
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import kept_kernels
from shadowtime.shared.messages import run_name

if TYPE_CHECKING:
    from shadowtime.shared.streaming import Settings


def compare_logs(options: Options) -> None:
    """Replay every log under every configuration, then write and print the results.

    Raises
    ------
    SettingsError
        If an option is invalid, or options exclude each other.
    TraceError
        If a log cannot be read, or no job of it can be replayed.
    ReplayError
        If a replay cannot continue, for example because waiting jobs can never start.
    OutputError
        If a result cannot be written.
    """
    chosen = configurations(options.mode, _policies(options), options.runtime, options.adjustment)
    baseline = baseline_of([label for label, _ in chosen], options.baseline)
    bounder = parse_wait_bound(options.wait_bound, options.mode)
    changes = parse_changes(options.capacity or ())
    traits = JobTraits(options.restartable == "yes", options.moldable == "yes", parse_speedup(options.speedup))
    interruption = Interruption()
    pace = parse_pace(options.speed, interruption.sleep)
    require_seed(options.seed)
    settings = read_stream_settings(options.transport, options.run, options.setting)
    logs = options.traces or [str(BUNDLED)]
    targets = Targets(options.decisions, options.schedule, options.json, options.report, options.results)
    reading = reading_of(options)
    targets.require_usable(
        logs, reading, one_run=len(logs) * len(chosen) == 1, side_by_side=settings is not None or pace is not None
    )

    if options.in_pieces and (targets.report or targets.schedule):
        raise SettingsError(
            "--in-pieces cannot be used with --report or --schedule, which need all jobs at once; leave one of them out"
        )
    clusters = read_clusters(
        logs,
        Preparation(
            options.processors,
            options.filter_,
            options.requests,
            options.jobs,
            reading,
            options.in_pieces,
            sizes=options.sizes,
            load=options.load,
        ),
        say,
        options.mode,
    )
    require_one_pool([cluster.workload for cluster in clusters], changes)
    require_parquet(targets.schedule, targets.results)
    plans = [
        RunPlan(
            label,
            run_name(cluster.name),
            cluster.workload,
            configuration,
            options.mode,
            bounder,
            options.seed,
            changes,
            traits,
        )
        for cluster in clusters
        for label, configuration in chosen
    ]
    wanted = options.predictions and plans[0].obeyed
    if wanted and (hindered := _hinders_predictions(options)):
        say(f"predictions at submission are not scored with {', '.join(hindered)}")
        wanted = False
    telling_plans = [predictions_plan(in_part[0]) for in_part in in_parts(plans, len(clusters))] if wanted else []
    with result_files(targets, plans) as files, nullcontext() if settings is not None else interruption:
        if settings is not None:
            carry_out_all = partial(stream, settings=settings, run=options.run, pace=pace)
        elif pace is None and not targets.decisions and not options.in_pieces:
            carry_out_all = partial(replay_embedded, interruption=interruption)
            if not (options.pipeline or targets.json or targets.schedule):
                carry_out_all = partial(compiled_first, carry_out_others=carry_out_all, interruption=interruption)
        else:
            carry_out_all = partial(replay, pace=pace, interruption=interruption)

        if settings is None and not any(kept_kernels()):
            say("compiling kernels, once for this user and machine: about a minute")
        observers = [*files.observers, *[[]] * len(telling_plans)]
        results = with_progress([*plans, *telling_plans], observers, carry_out_all, exact=pace is not None)
        results, predicted = results[: len(plans)], results[len(plans) :]
        by_cluster = in_parts(results, len(clusters))
        documents = []
        scores: Sequence[RunResult | None] = predicted or [None] * len(clusters)
        if targets.json or targets.report:  # only these two need documents, with the digest of each log
            of_clusters = in_parts(files.records, len(clusters)) if files.records else [[]] * len(clusters)
            documents = _documents(options, baseline, zip(by_cluster, scores, logs, of_clusters, strict=True))
        files.write(documents, results)

    if not targets.take_standard_output:
        print_tables(by_cluster, baseline, predicted=predicted, exact=options.seconds)
    if options.report is not None:
        say(f"wrote {options.report}")


def _policies(options: Options) -> list[str]:
    """Return the SPECs of the policies. The policy recommended for the objective is the last, unless it is in them.

    Raise `SettingsError` if a SPEC is invalid, or there is an objective although jobs start as recorded.
    """
    policies = options.policy or ["easy"]
    if options.objective is None:
        return policies
    if not SOURCES[options.mode].closed_loop:
        raise SettingsError(
            f"--objective {options.objective}: expected none in {options.mode} mode, where jobs start as recorded "
            "under every policy; leave it out"
        )
    others = [values[0] if values else None for values in (options.runtime, options.adjustment)]
    recommended = OBJECTIVES[options.objective]
    known = [configure(policy, *others) for policy in policies]
    return policies if configure(recommended, *others) in known else [*policies, recommended]


def _documents(
    options: Options,
    baseline: str | None,
    clusters: Iterable[tuple[Sequence[RunResult], RunResult | None, str, Sequence[RunRecord]]],
) -> list[dict[str, Any]]:
    """Return the document of each cluster, from its results, its scored predictions, its log and its records."""
    rewritten = {
        "requests": options.requests,
        "sizes": options.sizes,
        "filter": options.filter_,
        "load": f"{options.load:g}",
        "transport": options.transport,
        "speed": options.speed,
    }
    contents = _files(options)
    return [
        cited(
            as_json(results, rewritten, scored, baseline),
            origin_of(log),
            {**options.arguments, "traces": [log.encode(errors="replace").decode()]},
            contents,
            records,
        )
        for results, scored, log, records in clusters
    ]


def _files(options: Options) -> dict[str, str]:
    """Return the contents of the files that the SPECs name, by name."""
    specs = {
        "policy": _policies(options),
        "runtime": options.runtime,
        "adjustment": options.adjustment,
        "wait-bound": options.wait_bound,
    }
    return {
        name: content
        for option, typed in specs.items()
        for spec in typed or ()
        for name, content in files_of(option, spec).items()
    }


def _hinders_predictions(options: Options) -> list[str]:
    """Return the options of the user with which predictions at submission are not scored."""
    hinders = {
        "--runtime": options.runtime,
        "--adjustment": options.adjustment,
        "--wait-bound": options.wait_bound,
        "--in-pieces": options.in_pieces,
        "--transport kafka": options.transport == "kafka",
        "--speed": options.speed != "max",
    }
    return [option for option, chosen in hinders.items() if chosen]


def read_stream_settings(transport: str, run: str | None, flags: Sequence[str] | None) -> "Settings | None":
    """Return the settings of a replay over Kafka; None for an embedded replay.

    `flags` are texts `NAME=VALUE` of `--set`.

    Raise `SettingsError` if a flag is invalid, or an embedded replay has flags or the name of a run.
    """
    if transport == "kafka":
        from shadowtime.shared.streaming import read_settings

        return read_settings([f"--{option}" for option in flags or ()], "replayer")
    if run is not None or flags:
        raise SettingsError("--run and --set need --transport kafka")
    return None


def replay_embedded(plans: Sequence[RunPlan], observers: Observers, interruption: Interruption) -> list[RunResult]:
    """Replay all plans through the pipeline, on all cores if that pays."""
    if pays(plans):
        return replay_on_cores(plans, observers, interruption)
    return replay(plans, observers, None, interruption)


def replay(
    plans: Sequence[RunPlan], observers: Observers, pace: Pace | None, interruption: Interruption
) -> list[RunResult]:
    """Replay all plans in this process: one after another, or all at the same time if there is a `pace`."""
    observers = [[*those, interruption] for those in observers]
    if pace is None:
        return [carry_out(plan, those) for plan, those in zip(plans, observers, strict=True)]
    return carry_out_paced(plans, pace, observers)


def stream(
    plans: Sequence[RunPlan], observers: Observers, settings: "Settings", run: str | None, pace: Pace | None
) -> list[RunResult]:
    """Replay all plans over Kafka at the same time. If several fail, raise the error of the first."""
    start_logging(settings.log_format, level=logging.WARNING)
    try:
        import uvloop

        return uvloop.run(carry_out_streamed(plans, settings, run, pace, observers))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
