"""The HTML page of a campaign: its tables, the frontier of each log, and paired job differences if jobs are kept."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shadowtime._version import __version__
from shadowtime.replayer.campaign.cell_run import Figures
from shadowtime.replayer.campaign.columns import Column
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.campaign.store import Store
from shadowtime.replayer.campaign.tables import (
    TOTAL,
    LogTable,
    figure_of,
    heading,
    labels_of,
    reasons_of,
    remarks_of,
)
from shadowtime.replayer.comparison import baseline_of
from shadowtime.replayer.report import cell as shown
from shadowtime.replayer.report import escape, figures, paired, table, tables, whole
from shadowtime.replayer.simulation import SOURCES
from shadowtime.shared.chance import key_of

DIGESTS = "SHA-256 of the decision log of each cell; of its starts and ends if the campaign is compiled."
FRONTIER = ("max_wait", "mean_bounded_slowdown")


def page(
    campaign: Campaign, cells: Sequence[Cell], rows: Sequence[Figures], of_logs: Sequence[LogTable], store: Store
) -> str:
    """Return the page of a campaign as HTML.

    `rows` has the figures of each cell, `of_logs` the tables in the order of `tables_of`, and `store` the kept jobs.
    """
    by_log: dict[str, list[tuple[Cell, Figures]]] = {}
    for cell, row in zip(cells, rows, strict=True):
        by_log.setdefault(cell.log.label, []).append((cell, row))
    if campaign.total:
        by_log[TOTAL] = []
    sections = [
        _section(campaign, place, of_cells, of_log, store)
        for place, (of_cells, of_log) in enumerate(zip(by_log.values(), of_logs, strict=True))
    ]
    links = "".join(f'<li><a href="#log-{place}">{escape(name)}</a></li>' for place, name in enumerate(by_log))
    remarks = "".join(f"<p class=note>{escape(remark)}</p>" for remark in remarks_of(campaign))
    contents = f'{links}<li><a href="#repeat">To repeat this</a></li>'
    return whole(campaign.title, contents, f"{remarks}{''.join(sections)}{_repeat(campaign, cells, rows)}")


def _section(
    campaign: Campaign, place: int, of_cells: Sequence[tuple[Cell, Figures]], of_log: LogTable, store: Store
) -> str:
    parts = [
        f'<section aria-labelledby="log-{place}"><h2 id="log-{place}">{escape(of_log.title)}</h2>',
        log_section(campaign, of_log),
        _differences(of_cells, store) if campaign.keep_jobs else "",
        _frontier(of_cells) if SOURCES[campaign.mode].closed_loop else "",
    ]
    return "".join([*parts, "</section>"])


def log_section(campaign: Campaign, of_log: LogTable) -> str:
    """Return the table of a log as HTML, with the reasons for figures that differ from a paper's."""
    columns = campaign.columns
    body = [
        [
            escape(row.label),
            *(
                shown(figure.mean, figure.text(column.digits))
                for figure, column in zip(row.figures, columns, strict=True)
            ),
        ]
        for row in of_log.rows
    ]
    head = ["", *(heading(column.heading, column.shown_unit) for column in columns)]
    reasons = "".join(f"<p class=note>{escape(reason)}</p>" for reason in reasons_of(campaign, of_log))
    return table(head, body, of_log.title) + reasons


def _frontier(of_cells: Sequence[tuple[Cell, Figures]]) -> str:
    """Return the chart of mean slowdown against longest wait, both means over draws; empty for fewer than two rows."""
    by_label: dict[str, list[Figures]] = {}
    for cell, row in of_cells:
        by_label.setdefault(cell.label, []).append(row)
    points: list[Mapping[str, Any]] = []
    for label, draws in by_label.items():
        means = {key: figure_of(Column(key=key), draws, "", {}).mean for key in FRONTIER}
        if all(means.values()):
            points.append({"policy": label} | means)

    if len(points) < 2:
        return ""
    return f'<div class="figures">{figures.frontier(points)}</div>'


def _differences(of_cells: Sequence[tuple[Cell, Figures]], store: Store) -> str:
    """Return paired differences of each row's jobs to the baseline, for the unperturbed log; empty for a single row."""
    kept = [cell for cell, _ in of_cells if cell.keeps_jobs]
    if len(kept) < 2:
        return ""
    baseline = baseline_of([result.label for result in kept])
    first, *others = sorted(kept, key=lambda cell: cell.label != baseline)
    jobs, key = store.jobs(first), key_of(first.seed, first.log.cluster)
    pairs = [(f"{other.label} against {first.label}", paired(jobs, store.jobs(other), key)) for other in others]
    return f"<h3>Each job against itself</h3>{tables.differences(pairs, baseline)}"


def _repeat(campaign: Campaign, cells: Sequence[Cell], rows: Sequence[Figures]) -> str:
    digests = [
        [escape(cell.name), f"<code>{row.get('decisions_sha256') or row['schedule_sha256']}</code>"]
        for cell, row in zip(cells, rows, strict=True)
    ]
    logs = {cell.log.label: cell.log.sha256 for cell in cells}
    read = [[escape(label), f"<code>{sha256}</code>"] for label, sha256 in logs.items()]
    settings = json.dumps(campaign.model_dump(exclude_defaults=True), indent=2, ensure_ascii=False)
    settings = "\n".join(map(escape, settings.splitlines()))
    labels = [[escape(label), f"<code>{escape(spec)}</code>"] for label, spec in labels_of(campaign)]
    return (
        '<section aria-labelledby="repeat"><h2 id="repeat">To repeat this</h2>'
        f"{table(['label', 'SPEC'], labels, 'Labels', 'What each label stands for.') if labels else ''}"
        f"<pre tabindex=0>{settings}</pre>"
        f'<p class="faint">Shadowtime {__version__}.</p>'
        f"{table(['log', 'file'], read, 'Logs', 'SHA-256 of the bytes of each log.')}"
        f"{table(['cell', 'digest'], digests, 'Digests', DIGESTS)}</section>"
    )
