"""All tables and figures of the papers in one document: `shadowtime reproduce --all --logs FOLDER`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from shadowtime._version import __version__
from shadowtime.replayer.campaign.file import Campaign, read_campaign
from shadowtime.replayer.campaign.page import log_section
from shadowtime.replayer.campaign.run import How, Replayed, replayed
from shadowtime.replayer.campaign.studies import STUDIES, Findings, print_findings, section_of
from shadowtime.replayer.campaign.tables import NEAR, LogTable, labels_of, print_tables, remarks_of
from shadowtime.replayer.report import escape, table, whole
from shadowtime.shared.cli import say
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.formatting import duration
from shadowtime.shared.output import require_places, result_file

RESULTS = Path("reproduced")
"""Default folder of the results. It has the cells of all campaigns, and one folder for each campaign."""


class Agreement(NamedTuple):
    """The number of figures within 5 % of a paper's (`near`), and of all figures compared with a paper's."""

    near: int
    compared: int

    def __str__(self) -> str:
        return f"{self.near} of {self.compared}" if self.compared else "-"


def agreement_of(campaign: Campaign, tables: Sequence[LogTable]) -> Agreement:
    """Return how many figures of a campaign are within 5 % of the paper's."""
    near = [
        figure.near_paper(column.digits)
        for log_table in tables
        for row in log_table.rows
        for figure, column in zip(row.figures, campaign.columns, strict=True)
        if figure.paper is not None and figure.mean is not None
    ]
    return Agreement(sum(near), len(near))


def reproduce_all(campaigns: Mapping[str, Path], how: How) -> None:
    """Carry out every campaign and study whose logs are there. Print their tables, and write the page of `how`, if any.

    `campaigns` maps names to files. Campaigns and studies without their logs are reported with the reason.

    Raises
    ------
    SettingsError
        If `how` names files that only one campaign can have, or no campaign has its logs.
    ShadowtimeError
        If a cell cannot be replayed, or the page cannot be written.
    """
    if how.csv is not None or how.latex is not None:
        raise SettingsError(
            "--csv and --latex are of one campaign, not of --all; leave them out, or name a page: --report FILE.html"
        )
    folder = how.out or RESULTS
    require_places((how.report,), (how.logs,))
    done: list[Replayed] = []
    missing: dict[str, str] = {}
    for name, path in campaigns.items():
        try:
            of_one = replace(how, file=path, out=folder / name, shared=folder, report=None)
            done.append(replayed(read_campaign(path), of_one))
        except TraceError as error:
            missing[name] = str(error)
    if not done:
        raise SettingsError(f"--logs {how.logs}: it has none of the logs of the papers; {next(iter(missing.values()))}")

    studied: dict[str, Findings] = {}
    for name, study in STUDIES.items():
        try:
            studied[name] = study.carry_out(how.logs, how.first)
        except TraceError as error:
            missing[name] = str(error)
    for name, reason in missing.items():
        say(f"{name}: left out: {reason}")
    if how.report is not None:
        with result_file(how.report) as file:
            file.write(document(done, missing, studied).encode())
    for reproduction in done:
        print_tables(reproduction.campaign, reproduction.tables)
    for name, findings in studied.items():
        print_findings(STUDIES[name], findings)
    _print_summary(done)


def _print_summary(done: Sequence[Replayed]) -> None:
    summary = Table(title=f"Figures within {NEAR:.0%} of the papers'", title_justify="left")
    for heading in ("", "near", "replays"):
        summary.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    for row in _summary(done):
        summary.add_row(*map(plain, row))
    Console(highlight=False, emoji=False).print(summary)


def _summary(done: Sequence[Replayed]) -> list[tuple[str, str, str]]:
    """Return name, agreement and time of each campaign, and of all together."""
    agreements = [agreement_of(reproduction.campaign, reproduction.tables) for reproduction in done]
    rows = [
        (reproduction.campaign.name, str(agreement), duration(reproduction.seconds))
        for reproduction, agreement in zip(done, agreements, strict=True)
    ]
    both = Agreement(sum(one.near for one in agreements), sum(one.compared for one in agreements))
    return [*rows, ("all", str(both), duration(sum(reproduction.seconds for reproduction in done)))]


def document(done: Sequence[Replayed], missing: Mapping[str, str], studied: Mapping[str, Findings]) -> str:
    """Return the document as HTML: a summary, then the tables of each campaign and of each study.

    `missing` maps each campaign or study that was left out to the reason.
    """
    titles = {one.campaign.name: one.campaign.title for one in done} | {name: STUDIES[name].title for name in studied}
    links = "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in titles.items())
    head = ["", f"within {NEAR:.0%}", "time of the replays"]
    summary = table(head, [list(map(escape, row)) for row in _summary(done)], "Summary")
    left_out = (
        table(["", "reason"], [list(map(escape, item)) for item in missing.items()], "Left out") if missing else ""
    )
    sections = "".join(map(_campaign, done)) + "".join(
        f'<section aria-labelledby="{escape(name)}"><h2 id="{escape(name)}">{escape(STUDIES[name].title)}</h2>'
        f"{section_of(STUDIES[name], findings)}</section>"
        for name, findings in studied.items()
    )
    return whole(
        "The five papers, reproduced",
        f'<li><a href="#summary">Summary</a></li>{links}',
        f'<section aria-labelledby="summary"><h2 id="summary">Summary</h2>{summary}{left_out}'
        f'<p class="faint">Shadowtime {__version__}.</p></section>{sections}',
    )


def _campaign(done: Replayed) -> str:
    campaign, name = done.campaign, escape(done.campaign.name)
    logs = "".join(log_section(campaign, log_table) for log_table in done.tables)
    remarks = "".join(f"<p class=note>{escape(remark)}</p>" for remark in remarks_of(campaign))
    labels = [[escape(label), f"<code>{escape(spec)}</code>"] for label, spec in labels_of(campaign)]
    specs = table(["label", "SPEC"], labels, "Labels", "What each label stands for.") if labels else ""
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(campaign.title)}</h2>'
        f"{remarks}{logs}{specs}</section>"
    )
