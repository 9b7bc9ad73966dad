"""Command line that plays other policies beside a live run: `shadowtime shadow --cluster NAME --policy SPEC`.

It has only the options. Other modules are imported when the command runs, so that help is fast.
"""

from enum import StrEnum
from typing import Annotated

import typer

from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote


class Since(StrEnum):
    """Time from which shadows decide."""

    BEGINNING = "beginning"
    NOW = "now"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def shadow(
    context: typer.Context,
    cluster: Annotated[str, typer.Option(metavar="NAME", help="Cluster whose jobs the shadows run.")],
    policy: Annotated[list[str], typer.Option(metavar="SPEC", help="Policy of a shadow; repeatable.")],
    of: Annotated[str | None, typer.Option(metavar="RUN", help="The real run. CLUSTER/live by default.")] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--by-predictions",
            help="Wait for run times that are not known yet, or never lag, with wrong mean waits. Default: --exact; of "
            "a known run, as before.",
        ),
    ] = None,
    since: Annotated[
        Since, typer.Option(metavar="WHEN", help="Time from which shadows decide: beginning (of the real run), now.")
    ] = Since.BEGINNING,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Part of the names of the shadows' runs, CLUSTER/NAME/SPEC. Known runs continue."
        ),
    ] = "shadow",
    runtime: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Run-time predictor; that of the real run by default.")
    ] = None,
    adjustment: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Walltime adjustment; that of the real run by default.")
    ] = None,
    wait_bound: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Bounds on waits; those of the real run by default.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of all random numbers; that of the real run by default.")
    ] = None,
) -> None:
    """Play other policies beside a run, each on a simulated machine that gets the same jobs.

    Each shadow is a run: stages predict and score it, and you can watch it like any other run.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.services.catalogue import configure
        from shadowtime.services.shadows.io import play
        from shadowtime.services.shadows.options import ShadowOf, ShadowOptions
        from shadowtime.shared.chance import require_seed
        from shadowtime.shared.cli import start_logging
        from shadowtime.shared.messages import run_name
        from shadowtime.shared.streaming import read_settings

    if repeated := [spec for spec in policy if policy.count(spec) > 1]:
        raise SettingsError(f"--policy {quote(repeated[0])} is given twice; give each policy once")
    if seed is not None:
        require_seed(seed)
    for spec in policy:
        configure(spec, runtime, adjustment)
    settings = read_settings(context.args, "shadow")
    start_logging(settings.log_format, "shadow")
    real = of or run_name(cluster, "live")
    wanted = [
        ShadowOptions(
            ShadowOf(
                cluster, real, run_name(cluster, name, policy_spec), settings, exact=exact, from_now=since is Since.NOW
            ),
            policy_spec,
            runtime=runtime,
            adjustment=adjustment,
            wait_bound=wait_bound,
            seed=seed,
        )
        for policy_spec in policy
    ]
    asyncio.run(play(wanted))


def main() -> None:
    """Run the command line."""
    run_app(app)
