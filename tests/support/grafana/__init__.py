"""Panels as a person sees them: cells, colours and legends, worked out by Grafana's published front-end packages.

`panels.cjs` turns answers of the store into Grafana's frames, and applies the transformations and the field options of
each panel. `page.jsx` draws whole dashboards of big values, tables and time series in a browser.
`python -m tests.support.grafana` installs the packages, 600 MB, once for all checkouts of a user; `make test` does.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.patience import PATIENCE

HERE = Path(__file__).parent
LOCK = HERE / "package-lock.json"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shadowtime"
DIGEST = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
PACKAGES = Path(os.environ.get("SHADOWTIME_GRAFANA_PACKAGES") or CACHE / f"grafana-{DIGEST}")


class Cell(NamedTuple):
    """A value, as it is written and coloured."""

    value: Any
    text: str
    colour: str | None


class Column(NamedTuple):
    """A column of a table, or a series of a chart; `colour` is that of the series."""

    name: str
    kind: str
    colour: str | None
    in_legend: bool
    painted: str | None
    cells: list[Cell]


def missing() -> str | None:
    """Return the reason why panels cannot be read; None if they can."""
    if shutil.which("node") is None:
        return "node is not on PATH"
    if not (PACKAGES / "node_modules" / "@grafana" / "data").exists():
        return "Grafana's packages are not installed: run python -m tests.support.grafana"
    return None


def not_drawn() -> str | None:
    """Return the reason why dashboards cannot be drawn; None if they can."""
    if not all((PACKAGES / "node_modules" / name).exists() for name in ("@grafana/ui", ".bin/esbuild")):
        return "@grafana/ui and esbuild are not installed: run python -m tests.support.grafana"
    return missing()


def build_page(folder: Path) -> Path:
    """Build the page that draws dashboards in `folder`, and return its path."""
    modules = (PACKAGES / "node_modules").resolve()
    fonts = [f"--loader:.{kind}=empty" for kind in ("woff", "woff2", "ttf")]
    options = ["--bundle", f"--outfile={folder / 'page.js'}", "--loader:.svg=dataurl", "--log-level=error", *fonts]
    options += ['--define:process.env.NODE_ENV="production"', "--define:global=window"]
    command = [str(modules / ".bin" / "esbuild"), str(HERE / "page.jsx"), *options]
    subprocess.run(command, check=True, timeout=PATIENCE, env=os.environ | {"NODE_PATH": str(modules)})
    return Path(shutil.copy(HERE / "page.html", folder))


def read(questions: list[dict[str, Any]], theme: str = "dark") -> dict[str, list[list[Column]]]:
    """Return the frames of each panel, by its title, without the columns that nobody sees.

    Parameters
    ----------
    questions
        Each has a `panel` of a dashboard, and as `answers` the series of each of its queries.
    theme
        `dark` or `light`.
    """
    done = subprocess.run(
        ["node", HERE / "panels.cjs"],
        input=json.dumps(questions),
        env=os.environ | {"GRAFANA_PACKAGES": str(PACKAGES.resolve()), "GRAFANA_THEME": theme},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return {
        panel["title"]: [
            [
                Column(
                    field["name"],
                    field["type"],
                    field["colour"],
                    field["inLegend"],
                    field["painted"],
                    [Cell(**cell) for cell in field["cells"]],
                )
                for field in frame["fields"]
                if not field["hidden"]
            ]
            for frame in panel["frames"]
        ]
        for panel in json.loads(done.stdout)
    }
