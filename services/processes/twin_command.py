"""Command line that compares a cluster with its shadows, from their state in Redis: `shadowtime twin CLUSTER`."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app, say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.output import print_json
from shadowtime.shared.quoting import listed

if TYPE_CHECKING:
    from shadowtime.services.processes import ClusterWords
    from shadowtime.services.shadows import StoredShadow

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def twin(
    context: typer.Context,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The cluster, or its real run as CLUSTER/live.")],
    users: Annotated[bool, typer.Option("--users", help="Also show each user.")] = False,
    classes: Annotated[bool, typer.Option("--classes", help="Also show jobs by requested time and size.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with all users and classes, not tables.")] = False,
) -> None:
    """Compare a cluster with each of its shadows: other policies on the same jobs."""
    with lasting_imports():
        import asyncio
        import time

        import orjson
        from rich.console import Console

        from shadowtime.services.processes import NAMES_OF, WordReader
        from shadowtime.services.shadows import STORE, StoredShadowCache, none_of, shadows_beside, tables
        from shadowtime.shared.streaming import read_settings, reading

    settings = read_settings(context.args, "ask")

    async def ask() -> "tuple[Sequence[StoredShadow], ClusterWords, bool]":
        async with reading(settings, STORE) as reader, reading(settings, NAMES_OF) as names:
            every = await StoredShadowCache(reader).shadows()
            chosen = shadows_beside(cluster, every)
            if not chosen:
                raise SettingsError(none_of(cluster, every))
            if others := sorted({shadow.real for shadow in every if shadow.of(cluster)} - {chosen[0].real}):
                say(f"these are the shadows of {chosen[0].real}; for those of other runs, name one: {listed(others)}")
            reader_of_names, real = WordReader(names), chosen[0].real
            words = await reader_of_names.of(chosen[0].cluster, real)
            return chosen, words, real in await reader_of_names.followed()

    chosen, words, follows = asyncio.run(ask())
    if json:
        documents = {shadow.name: shadow.compared.model_dump(mode="json") for shadow in chosen}
        numbers = {user.user for shadow in chosen for user in shadow.compared.users if user.user is not None}
        known = {number: words.name("user", number) for number in sorted(numbers)} if words.known else {}
        document = {"cluster": chosen[0].cluster, "users": known, "shadows": documents}
        print_json(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS))
        return

    console = Console(highlight=False, markup=False, emoji=False)
    shown = {shadow.name: shadow.compared for shadow in chosen}
    first = chosen[0]
    now = time.time() if follows else None
    name_of = partial(words.name, "user") if users else None
    for table in tables(first.cluster, shown, first.unix_start, name_of=name_of, classes=classes, now=now):
        console.print(table)


def main() -> None:
    """Run the command line."""
    run_app(app)
