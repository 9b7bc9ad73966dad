"""The tables of a campaign on a terminal, and as LaTeX."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.tables import LogTable
from shadowtime.shared.command_line import one_line


def heading(name: str, unit: str) -> str:
    """Return what stands above a column.

    >>> heading("mean wait", "min"), heading("slowdown", "")
    ('mean wait, min', 'slowdown')
    """
    return f"{name}, {unit}" if unit else name


def remarks_of(campaign: Campaign) -> list[str]:
    """Return what is to be said of the figures: intervals, and those in parentheses."""
    remarks = []
    if campaign.copies or any(len(each.seeds or campaign.seeds) > 1 for each in campaign.policies):
        remarks.append("±: half of the 95 % interval of the mean over seeds and copies.")
    if campaign.paper:
        remarks.append("In parentheses: the paper's.")
    return remarks


def labels_of(campaign: Campaign) -> list[tuple[str, str]]:
    """Return each label of a policy and the SPEC that it stands for."""
    return [(each.label, each.spec) for each in campaign.policies if each.label not in (None, each.spec)]


def print_tables(campaign: Campaign, tables: Sequence[LogTable]) -> None:
    """Print a table for each log, and beneath them what their words stand for."""
    console = Console(highlight=False)
    console.print(escape(one_line(campaign.title)))
    for each in tables:
        table = Table(title=escape(one_line(each.title)), title_justify="left")
        table.add_column("", overflow="fold", min_width=9)
        for column in campaign.columns:
            table.add_column(
                escape(one_line(heading(column.heading, column.shown_unit))), justify="right", overflow="fold"
            )
        for row in each.rows:
            cells = (figure.text(column.digits) for figure, column in zip(row.figures, campaign.columns, strict=True))
            table.add_row(escape(one_line(row.label)), *cells)
        console.print(table)
    for remark in remarks_of(campaign):
        console.print(remark)
    for label, spec in labels_of(campaign):
        console.print(one_line(f"{label}: {spec}"), markup=False)


_SPECIAL = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"}
    | {each: rf"\text{name}{{}}" for each, name in {"~": "asciitilde", "^": "asciicircum", "\\": "backslash"}.items()}
    | {each: rf"\text{name}{{}}" for each, name in {"<": "less", ">": "greater", "|": "bar"}.items()}
    | {"±": r"$\pm$"}
)


def as_latex(campaign: Campaign, tables: Sequence[LogTable]) -> str:
    r"""Return the tables as LaTeX, for the package `booktabs`."""
    columns, lines = campaign.columns, []
    for each in tables:
        head = ["", *(heading(column.heading, column.shown_unit) for column in columns)]
        body = [
            [row.label, *(figure.text(column.digits) for figure, column in zip(row.figures, columns, strict=True))]
            for row in each.rows
        ]
        lines += [
            f"% {campaign.name}: {one_line(each.title)}",
            rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"\toprule",
            _line(head),
            r"\midrule",
            *map(_line, body),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(one_line(cell).translate(_SPECIAL) for cell in cells) + r" \\"
