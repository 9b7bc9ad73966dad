"""Plot the tournament from its table in results.md: `python docs/tournament.py`."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

HERE = Path(__file__).parent
HEAD = "| policy | KTH |"
INK, MUTED, MARKED = (
    "#1b2430",
    "#7a8594",
    {"tuned": "#0b6e4f", "cautious": "#1f5fbf", "guarded": "#9a5b00", "ceiling": "#8a2c5d"},
)
PLACES = {
    "guarded": (-6, -14, "right"),
    "tuned": (2, -14, "left"),
    "saved": (-6, 3, "right"),
    "saf": (7, 9, "left"),
    "f3": (6, 1, "left"),
    "f2": (-6, 1, "right"),
    "area": (-6, -1, "right"),
    "gittins": (-6, 1, "right"),
    "f1": (-6, -8, "right"),
    "f4": (7, 3, "left"),
    "sqf": (1, -12, "right"),
    "lcfs": (6, -2, "left"),
}
"""Where names stand whose points are close to others: points to the right, up, and which side is next to them."""

SHOWN = 160
"""Per cent of EASY's longest wait beyond which a policy is not shown."""


def points() -> list[tuple[str, float, float]]:
    """Return name, slowdown and longest wait of each policy, geometric means over four logs in per cent of EASY's."""
    lines = (HERE / "results.md").read_text().split(HEAD)[1].splitlines()[2:]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]
    return [(row[0], float(row[7]), float(row[9])) for row in rows]


def plot(path: Path) -> None:
    """Draw slowdown against longest wait."""
    mpl.rcParams |= {"svg.hashsalt": "tournament", "font.family": "sans-serif", "font.size": 9}
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for name, slowdown, longest in points():
        if longest > SHOWN:
            continue
        colour = MARKED.get(name, MUTED)
        place = PLACES.get(name, (5, 3, "left"))
        axes.plot(slowdown, longest, "o", color=colour, markersize=7 if name in MARKED else 4.5)
        axes.annotate(
            name,
            (slowdown, longest),
            xytext=place[:2],
            ha=place[2],
            textcoords="offset points",
            color=colour if name in MARKED else INK,
            fontweight="bold" if name in MARKED else "normal",
            fontsize=8,
        )

    axes.axhline(100, color=MUTED, linewidth=0.6)
    axes.set_xlabel("mean bounded slowdown, per cent of EASY's")
    axes.set_ylabel("longest wait, per cent of EASY's")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    plot(HERE / "tournament.svg")
