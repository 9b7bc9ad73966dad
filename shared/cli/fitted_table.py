"""Tables that fit the terminal: the least important columns are left out, and the best of a column is marked."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shadowtime.shared.quoting import one_line
from shadowtime.shared.spec import Spelled
from shadowtime.shared.text import NOTHING, TableColumn

BEST = "bold green"
MAX_LEGEND = 1_000
"""Maximum characters of each key of a SPEC in the legend; `--json` has the whole key."""

WIDE = 10_000
"""Width of a terminal on which every table fits, in characters."""


class FittedTable:
    """A table of names and figures, with notes and a legend beneath.

    Parameters
    ----------
    title
        Title above the table.
    names
        Columns of names by their headings. They are always shown. A name that does not fit is folded.
    columns
        Columns of figures, the most important first. The last columns are left out until the table fits. The first
        column always stays; any other column without figures is not shown.
    notes
        Lines beneath the table.
    legend
        Meanings of names in the table. Of a SPEC, the keys at their defaults are left out, as `--json` has them. A SPEC
        that then equals its name is left out.
    ends
        Indices of the rows that end a section.
    """

    def __init__(
        self,
        title: str,
        names: Mapping[str, Sequence[str]],
        columns: Sequence[TableColumn],
        notes: Sequence[str] = (),
        legend: Mapping[str, Spelled | str] | None = None,
        ends: Collection[int] = (),
    ) -> None:
        self._title = title
        self._names = names
        self._columns = [*columns[:1], *(column for column in columns[1:] if set(column.cells) != {NOTHING})]
        self._notes = notes
        self._legend = {
            name: of for name, of in (legend or {}).items() if not (isinstance(of, Spelled) and of.short == name)
        }
        self._ends = ends

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield title, table, notes and legend for rich."""
        coloured = console.color_system is not None and not console.no_color
        shown = self._columns
        while len(shown) > 1 and self._width(console, options, shown, coloured=coloured) > options.max_width:
            shown = shown[:-1]
        yield Text(one_line(self._title), style="bold")
        yield self._table(shown, coloured=coloured)
        for note in self._all_notes(shown, coloured=coloured):
            yield Text(one_line(note))
        if self._legend:
            yield Padding(self._spelled_out(), (1, 0, 0, 0))

    def _width(
        self, console: Console, options: ConsoleOptions, columns: Sequence[TableColumn], *, coloured: bool
    ) -> int:
        roomy = options.update(width=WIDE)
        return Measurement.get(console, roomy, self._table(columns, coloured=coloured)).maximum

    def _table(self, columns: Sequence[TableColumn], *, coloured: bool) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for heading in self._names:
            table.add_column(heading, overflow="fold")  # a long name takes several lines, and no figure is cut
        for column in columns:
            table.add_column(f"{column.heading}\n{column.unit}", justify="right", no_wrap=True)
        for row, names in enumerate(zip(*self._names.values(), strict=True)):
            figures = [_figure(column, row, coloured=coloured) for column in columns]
            table.add_row(*(Text(one_line(name)) for name in names), *figures, end_section=row in self._ends)
        return table

    def _all_notes(self, shown: Sequence[TableColumn], *, coloured: bool) -> Iterator[str]:
        meanings = [column.note for column in shown if column.note]
        if any(column.best for column in shown):
            meanings.append("green: best of its column" if coloured else "*: best of its column")
        if meanings:
            yield "; ".join(meanings)
        if left_out := [column.heading for column in self._columns[len(shown) :]]:
            yield f"columns left out at this width: {', '.join(left_out)}"
        yield from self._notes

    def _spelled_out(self) -> Table:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, stands_for in self._legend.items():
            grid.add_row(Text(one_line(name)), _meaning(stands_for))
        return grid


def _figure(column: TableColumn, row: int, *, coloured: bool) -> Text:
    if row not in column.best:
        return Text(column.cells[row])
    return Text(column.cells[row], style=BEST) if coloured else Text(f"*{column.cells[row]}")


def _meaning(stands_for: Spelled | str) -> Text:
    """Return a meaning for the legend. A SPEC gets spaces at which its line may break; in quotes it is still valid."""
    if isinstance(stands_for, str):
        return Text(one_line(stands_for))
    keys = [_cut(one_line(key)).replace(",", ", ") for key in stands_for.chosen]
    return Text(f"{stands_for.name}({', '.join(keys)})" if keys else stands_for.name)


def _cut(key: str) -> str:
    return key if len(key) <= MAX_LEGEND else f"{key[:MAX_LEGEND]}…"
