"""Command line that follows a live cluster: `shadowtime follow SOURCE --cluster NAME`.

It has only the options. Other modules are imported when the command runs, so that help is fast.
"""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote

DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def seconds_of_history(text: str) -> int:
    """Return the length of a time span in seconds. A month has 30 days, a year 365.

    Raise `SettingsError` if the text is not a span.

    >>> seconds_of_history("12months"), seconds_of_history("1week"), seconds_of_history("0")
    (31104000, 604800, 0)
    """
    match = re.fullmatch(r"([0-9]{1,4})\s*(day|week|month|year)s?", text.strip())
    if match is None:
        if text.strip() == "0":
            return 0
        raise SettingsError(f"--history {quote(text)}: expected 0, or a span such as 12months, 2weeks or 90days")
    return int(match[1]) * DAYS[match[2]] * 86_400


def words_of(command: str) -> tuple[str, ...]:
    """Return the words of a command. Raise `SettingsError` if a quotation mark or an escape is not closed.

    >>> words_of("ssh -p 2222 'login node'")
    ('ssh', '-p', '2222', 'login node')
    """
    try:
        return tuple(shlex.split(command))
    except ValueError:
        reason = "expected words as in a shell, found an open quotation mark or escape"
        raise SettingsError(f"--via {quote(command)}: {reason}") from None


def token_of(path: Path) -> str:
    """Return the bearer token in a file. Raise `SettingsError` if there is no valid one."""
    from shadowtime.shared.streaming import bearer_token, read_secret

    try:
        return bearer_token(read_secret(path))
    except ValueError as error:
        raise SettingsError(f"--token-file: {error}") from None


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def follow(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Kind of source: slurm, pbs, lines.")],
    cluster: Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")],
    run: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the run; a known run continues. CLUSTER/live by default."),
    ] = None,
    history: Annotated[
        str, typer.Option(metavar="SPAN", help="History to publish before the present: 0, or a span such as 90days.")
    ] = "12months",
    policy: Annotated[
        str, typer.Option(metavar="SPEC", help="Policy; its decisions are the advice.")
    ] = "cautious:queue=priority,forecast=yes",
    runtime: Annotated[str, typer.Option(metavar="SPEC", help="Run-time predictor, if the policy names none.")] = (
        "experts"
    ),
    adjustment: Annotated[
        str, typer.Option(metavar="SPEC", help="Walltime adjustment, if the policy names none.")
    ] = "auto",
    wait_bound: Annotated[str, typer.Option(metavar="SPEC", help="Bounds on waits.")] = "bmbp",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random numbers.")] = 0,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=5, help="Interval of polls of the cluster.")] = 15.0,
    place: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="pbs, lines: file or folder that the cluster writes.")
    ] = None,
    pools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="pbs, lines: pools of the machine, as for replay.")
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="pbs: time zone of the server, such as Europe/Berlin; UTC by default."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="lines: file with a token; also accept lines over HTTP.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="slurm: time limit of a query; 20 times as long for accounting."),
    ] = 60.0,
    patience: Annotated[
        int,
        typer.Option(
            metavar="SECONDS", min=0, help="slurm: longest wait for facts from accounting; then they are guessed."
        ),
    ] = 600,
    via: Annotated[
        str, typer.Option(metavar="COMMAND", help="slurm: command that runs Slurm's commands, such as 'ssh login'.")
    ] = "",
    rest: Annotated[
        str | None,
        typer.Option(metavar="URL", help="slurm: address of slurmrestd: http(s)://HOST:PORT or unix:/path."),
    ] = None,
    rest_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="slurm: the token for slurmrestd, read anew for each request.")
    ] = None,
    rest_user: Annotated[
        str | None, typer.Option(metavar="NAME", help="slurm: owner of the token; by default the user of the process.")
    ] = None,
    slurm_cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="slurm: follow this cluster of slurmdbd, not the one of slurm.conf."),
    ] = None,
    jobcomp: Annotated[
        str | None, typer.Option(metavar="HOST:PORT/TOPIC", help="slurm: poll at once when jobcomp/kafka writes there.")
    ] = None,
    jobcomp_access: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="slurm: login of that Kafka, a settings file; by default none."),
    ] = None,
    names_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with a key: store names as hashes with this key.")
    ] = None,
) -> None:
    """Follow a cluster: publish its past, then its events. Nothing is ever written to the cluster.

    The stages work as in a recorded replay. Their decisions are advice.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.services.catalogue import canonical, configure
        from shadowtime.services.follower.io import FOLLOWED, follow_source
        from shadowtime.services.follower.options import FollowOptions
        from shadowtime.shared.accounting import read_key
        from shadowtime.shared.chance import require_seed
        from shadowtime.shared.cli import start_logging
        from shadowtime.shared.messages import ClusterOpened, run_name
        from shadowtime.shared.streaming import read_settings

    if source not in FOLLOWED:
        raise SettingsError(f"unknown source {quote(source)}; known: {', '.join(FOLLOWED)}")
    require_seed(seed)
    settings = read_settings(context.args, "follow")
    start_logging(settings.log_format, "follow")
    source_of = FOLLOWED[source]
    options = FollowOptions(
        history=seconds_of_history(history),
        every=every,
        timeout=timeout,
        patience=patience,
        via=words_of(via),
        rest=rest,
        rest_token_file=rest_token_file,
        rest_user=rest_user,
        slurm_cluster=slurm_cluster,
        jobcomp=jobcomp,
        jobcomp_access=jobcomp_access,
        place=place,
        pools=pools,
        time_zone=time_zone,
        token=None if token_file is None else token_of(token_file),
        key=None if names_key is None else read_key(names_key),
    )
    options.require_only(source, source_of.takes)
    configuration = configure(policy, runtime, adjustment)
    opened = ClusterOpened(
        time=0,
        cluster=cluster,
        processors=1,
        mode="recorded",
        policy=configuration.policy,
        runtime=configuration.runtime,
        adjustment=configuration.adjustment,
        wait_bound=canonical("wait-bound", wait_bound),
        seed=seed,
        sample_every=settings.sample_seconds or None,
        name="live",
    )
    asyncio.run(follow_source(run or run_name(cluster, "live"), opened, source_of(options), settings))


def main() -> None:
    """Run the command line."""
    run_app(app)
