"""The tables of a campaign, one per log. A row is a policy with settings. A figure is a mean with its interval."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shadowtime.replayer.campaign.cell_run import Figures
from shadowtime.replayer.campaign.columns import Column
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.shared.formatting import counted
from shadowtime.shared.quoting import one_line
from shadowtime.shared.statistics import half_width

NEAR = 0.05
"""The largest share of a paper's figure by which ours may differ without a mark."""

MARK = "≠"


class Figure(NamedTuple):
    """A mean over seeds, copies and months. `half` is half the width of its 95 % interval; 0 is not shown.

    `paper` is the published figure, `bold` whether the paper prints it in bold. A `signed` figure is a change in per
    cent. To be near the paper's, 100 plus this change must be near 100 plus the paper's.
    """

    mean: float | None
    half: float | None = None
    paper: float | None = None
    signed: bool = False
    bold: bool = False

    def text(self, digits: int) -> str:
        """Return the figure as text for a table, with `MARK` if it is far from the paper's.

        >>> Figure(1234.5, 6.78, 1200).text(1), Figure(7.0, paper=9.0).text(1), Figure(None, paper=1, bold=True).text(1)
        ('1,234.5 ± 6.8 (1,200)', '7.0 (9) ≠', '- (**1**)')
        >>> Figure(2.0, paper=-1.5, signed=True).text(1)
        '+2.0 (-1.5)'
        """
        sign, bold = "+" if self.signed else "", "**" if self.bold else ""
        mean = "-" if self.mean is None else f"{self.mean:{sign}z,.{digits}f}"
        half = "" if not self.half else f" ± {self.half:,.{digits}f}"
        paper = "" if self.paper is None else f" ({bold}{self.paper:{sign},g}{bold})"
        return f"{mean}{half}{paper}{'' if self.near_paper(digits) else f' {MARK}'}"

    def near_paper(self, digits: int) -> bool:
        """Return whether the figure is near the paper's, or one of them is missing.

        Near means a difference of at most the share `NEAR` of the paper's, or of half of the last shown digit.

        >>> Figure(1.04, paper=1.0).near_paper(1), Figure(None, paper=1.0).near_paper(1)
        (True, True)
        """
        if self.mean is None or self.paper is None:
            return True
        size = abs(self.paper + 100 * self.signed)
        return math.isclose(self.mean, self.paper, rel_tol=0, abs_tol=max(NEAR * size, 0.5 * 10**-digits))


class Row(NamedTuple):
    """One row: its label, a figure for each column, and why figures differ from the paper's, if that is known."""

    label: str
    figures: tuple[Figure, ...]
    reason: str | None = None


class LogTable(NamedTuple):
    """The rows of one log, and its footnote."""

    title: str
    rows: tuple[Row, ...]
    note: str | None = None


def tables_of(campaign: Campaign, cells: Sequence[Cell], rows: Sequence[Figures]) -> list[LogTable]:
    """Return a table for each log, in the order of the file. With `campaign.total`, the last table is over all logs.

    A log without cells follows the other logs, with the paper's figures alone. If the paper has none, it has no table.
    """
    figures: dict[str, dict[str, list[Figures]]] = {}
    for cell, row in zip(cells, rows, strict=True):
        figures.setdefault(cell.log.label, {}).setdefault(cell.label, []).append(row)
    here = {
        log: LogTable(_title(log, by_label), tuple(rows_of(campaign, by_label, log)), campaign.notes.get(log))
        for log, by_label in figures.items()
    }
    missing = {
        entry.called: LogTable(
            f"{entry.called}: no log here, the paper's figures alone",
            tuple(_of_paper(campaign, entry.called)),
            campaign.notes.get(entry.called),
        )
        for entry in campaign.logs
        if entry.called in campaign.paper and entry.called not in here
    }
    total = [total_of(campaign, figures)] if campaign.total else []
    return [*here.values(), *missing.values(), *total]


def _of_paper(campaign: Campaign, log: str) -> Iterator[Row]:
    """Yield the rows that the paper has for a log that is not here."""
    for name in campaign.paper[log]:
        nothing = [Figure(None)] * len(campaign.columns)
        yield Row(_label(campaign, log, name), tuple(_beside_paper(campaign, log, name, nothing)))


def _label(campaign: Campaign, log: str, name: str) -> str:
    return campaign.labels.get(log, {}).get(name, name)


def _beside_paper(campaign: Campaign, log: str, name: str, figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield the figure of each column with the paper's beside it."""
    published, bold = campaign.paper.get(log, {}).get(name, {}), campaign.bold.get(log, {}).get(name, ())
    for column, figure in zip(campaign.columns, figures, strict=True):
        heading = column.heading
        yield figure._replace(paper=published.get(heading), bold=heading in bold)


def _title(log: str, by_label: Mapping[str, Sequence[Figures]]) -> str:
    draws = next(iter(by_label.values()))
    processors, first = draws[0]["processors"], (draws[0].get("seed"), draws[0]["copy"])
    jobs = sum(row["jobs"] for row in draws if (row.get("seed"), row["copy"]) == first)  # of all months
    return f"{log}: {counted(jobs, 'job')} on {processors:,} processors"


def rows_of(campaign: Campaign, by_label: Mapping[str, Sequence[Figures]], log: str) -> Iterator[Row]:
    """Yield the rows of a log: one for each label and each text that a `*` matches in the keys of its figures."""
    reasons = campaign.reasons.get(log, {})
    for label, draws in by_label.items():
        # Texts that `*` matches, in the order of the cells. A column without `*` adds the empty text.
        stars = dict.fromkeys(
            star
            for column in campaign.columns
            for key in dict.fromkeys(key for row in draws for key in row)
            if (star := column.matches(key)) is not None
        )
        for star in stars or [""]:
            name = " ".join(part for part in (label if len(by_label) > 1 or not star else "", star) if part)
            figures = [figure_of(column, draws, star, by_label) for column in campaign.columns]
            yield Row(
                _label(campaign, log, name), tuple(_beside_paper(campaign, log, name, figures)), reasons.get(name)
            )


def figure_of(column: Column, draws: Sequence[Figures], star: str, by_label: Mapping[str, Sequence[Figures]]) -> Figure:
    """Return the mean of a column over draws, with half of its 95 % interval if there are several draws.

    Seeds of one copy share the submissions of the copy, so they are not independent. With several copies, a draw is the
    mean over the seeds of a copy. The same holds for months. A share of another row is computed in each draw, from the
    mean over its seeds there.

    Parameters
    ----------
    draws
        The figures of the cells of one label: one for each seed, copy and month.
    star
        Text that replaces the `*` in the column's key.
    by_label
        Draws of all labels, for a column that is a share of another row's figure.

    >>> figure_of(Column(key="mean_wait"), [{"mean_wait": 1.0, "copy": 0}, {"mean_wait": 3.0, "copy": 1}], "", {})
    Figure(mean=2.0, half=12.706204736174694, paper=None, signed=False, bold=False)
    """
    return _mean_of(column, draws_of(column, draws, star, by_label))


def draws_of(
    column: Column, draws: Sequence[Figures], star: str, by_label: Mapping[str, Sequence[Figures]]
) -> list[float]:
    """Return the figure of a column in each draw, in its unit. See `figure_of` for draws and arguments.

    If the column has a base, the figure is in per cent of the base's figure in that draw. A draw without the figure, or
    with a base of 0 or none, is left out.
    """
    key = column.key.replace("*", star)
    bases: dict[tuple[int, int], list[float]] = {}
    for row in by_label.get(column.base, ()) if column.base is not None else ():
        if (value := row.get(key)) is not None:
            bases.setdefault((row["copy"], row.get("month", 0)), []).append(value)
    figures: dict[tuple[int, int], list[float]] = {}
    for row in draws:
        draw = row["copy"], row.get("month", 0)
        base = fmean(bases.get(draw, [0.0])) if column.base is not None else 1.0
        if base and (value := row.get(key)) is not None:
            figures.setdefault(draw, []).append(value / base * column.factor)
    of_draws = [*figures.values()]
    return of_draws[0] if len(of_draws) == 1 else list(map(fmean, of_draws))


def _mean_of(column: Column, values: Sequence[float]) -> Figure:
    signed = column.change_from is not None
    if not values:
        return Figure(None, signed=signed)
    mean = fmean(values) - 100 * signed
    if len(values) < 2:
        return Figure(mean, signed=signed)
    return Figure(mean, half_width(values), signed=signed)


TOTAL = "Total"


def total_of(campaign: Campaign, figures: Mapping[str, Mapping[str, Sequence[Figures]]]) -> LogTable:
    """Return the table over all logs: for each draw, the geometric means of shares and changes over the logs.

    A paper's figure is the geometric mean of its figures of the same logs. The reasons are those of the logs.

    Parameters
    ----------
    figures
        The figures of all draws by log and label.
    """
    labels = list(dict.fromkeys(label for by_label in figures.values() for label in by_label))
    rows = []
    for label in labels:
        over_logs = []
        for column in campaign.columns:
            by_log = [draws_of(column, by_label.get(label, ()), "", by_label) for by_label in figures.values()]
            if column.base is None or not all(by_log):
                by_log = []
            elif len({len(values) for values in by_log}) > 1:
                by_log = [[fmean(values)] for values in by_log]
            figure = _mean_of(column, [_geometric(draw) for draw in zip(*by_log, strict=True)])
            paper = [
                campaign.paper.get(log, {}).get(label, {}).get(column.heading, math.nan) + 100 * figure.signed
                for log in figures
            ]
            if by_log and all(share > 0 for share in paper):
                figure = figure._replace(paper=round(geometric_mean(paper) - 100 * figure.signed, column.digits))
            over_logs.append(figure)
        reasons = (campaign.reasons.get(log, {}).get(label) for log in figures)
        rows.append(Row(label, tuple(over_logs), "; ".join(dict.fromkeys(filter(None, reasons))) or None))
    return LogTable(f"{TOTAL}: geometric means over {', '.join(figures)}", tuple(rows))


def _geometric(values: Sequence[float]) -> float:
    """Return the geometric mean, also of zeros, which `geometric_mean` refuses."""
    return geometric_mean(values) if all(values) else 0.0


# The tables of a campaign on a terminal, and as LaTeX.


def heading(name: str, unit: str) -> str:
    """Return the heading of a column with its unit.

    >>> heading("mean wait", "min"), heading("slowdown", "")
    ('mean wait, min', 'slowdown')
    """
    return f"{name}, {unit}" if unit else name


def remarks_of(campaign: Campaign) -> list[str]:
    """Return explanations of the figures: the intervals and the numbers in parentheses."""
    remarks = []
    seeds = any(len(policy.seeds or campaign.seeds) > 1 for policy in campaign.policies)
    if campaign.copies or seeds or any(log.months for log in campaign.logs):
        remarks.append("±: half of the 95 % interval of the mean over seeds, copies and months.")
    if campaign.paper:
        remarks.append(f"In parentheses: the paper's. {MARK}: ours differs by more than {NEAR:.0%}.")
    if campaign.bold:
        remarks.append("**: bold in the paper.")
    return [*remarks, *campaign.remarks]


def reasons_of(campaign: Campaign, table: LogTable) -> list[str]:
    """Return the footnote of a log, and a line for each row with a marked figure: why it differs, if that is known."""
    footnote = [table.note] if table.note else []
    return footnote + [
        f"{MARK} {row.label}: {row.reason or 'not explained'}"
        for row in table.rows
        if not all(
            figure.near_paper(column.digits) for figure, column in zip(row.figures, campaign.columns, strict=True)
        )
    ]


def labels_of(campaign: Campaign) -> list[tuple[str, str]]:
    """Return each policy label that differs from its SPEC, with the SPEC."""
    return [(policy.label, policy.spec) for policy in campaign.policies if policy.label not in (None, policy.spec)]


def print_tables(campaign: Campaign, tables: Sequence[LogTable]) -> None:
    """Print a table for each log, then the explanations of figures and labels."""
    console = Console(highlight=False, emoji=False)
    console.print(escape(one_line(campaign.title)))
    for log_table in tables:
        table = Table(title=escape(one_line(log_table.title)), title_justify="left")
        table.add_column("", overflow="fold", min_width=9)
        for column in campaign.columns:
            table.add_column(
                escape(one_line(heading(column.heading, column.shown_unit))), justify="right", overflow="fold"
            )

        for row in log_table.rows:
            cells = (figure.text(column.digits) for figure, column in zip(row.figures, campaign.columns, strict=True))
            table.add_row(escape(one_line(row.label)), *cells)
        console.print(table)
        for reason in reasons_of(campaign, log_table):
            console.print(one_line(reason), markup=False)

    for remark in remarks_of(campaign):
        console.print(remark)
    for label, spec in labels_of(campaign):
        console.print(one_line(f"{label}: {spec}"), markup=False)


_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        character: rf"\text{name}{{}}"
        for character, name in {"~": "asciitilde", "^": "asciicircum", "\\": "backslash"}.items()
    }
    | {character: rf"\text{name}{{}}" for character, name in {"<": "less", ">": "greater", "|": "bar"}.items()}
    | {"±": r"$\pm$", MARK: r"$\neq$"}
)


def as_latex(campaign: Campaign, tables: Sequence[LogTable]) -> str:
    r"""Return the tables as LaTeX, for the package `booktabs`."""
    columns, lines = campaign.columns, []
    for table in tables:
        head = ["", *(heading(column.heading, column.shown_unit) for column in columns)]
        body = [
            [row.label, *(figure.text(column.digits) for figure, column in zip(row.figures, columns, strict=True))]
            for row in table.rows
        ]
        lines += [
            f"% {campaign.name}: {one_line(table.title)}",
            rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"\toprule",
            _line(head),
            r"\midrule",
            *map(_line, body),
            r"\bottomrule",
            r"\end{tabular}",
            *(one_line(reason).translate(_SPECIAL) + r" \\" for reason in reasons_of(campaign, table)),
            "",
        ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(one_line(cell).translate(_SPECIAL) for cell in cells) + r" \\"
