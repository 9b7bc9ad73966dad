"""The cells of a campaign. A cell is one replay, identified by a digest of all inputs that determine its result."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from shadowtime._version import __version__
from shadowtime.replayer.arguments import parse_speedup, require_different
from shadowtime.replayer.campaign.file import Campaign, PolicyEntry, of_seed
from shadowtime.replayer.campaign.logs import CampaignLog
from shadowtime.replayer.simulation import SOURCES, JobTraits
from shadowtime.services.catalogue import DEFAULTS, REGISTRIES, Configuration, canonical, configure
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import among, quote
from shadowtime.shared.spec import parse

# The version of a plug-in is the digest of its code: during development the code changes, but not the version number.


def code_of(loaded: type[object]) -> str | None:
    """Return the SHA-256 of the top-level package or module of a class; None for a class of this project."""
    package = loaded.__module__.partition(".")[0]
    return None if package == __name__.partition(".")[0] else _code_of(package)


@cache
def _code_of(package: str) -> str:
    module, digest = sys.modules[package], sha256()
    roots = [Path(folder) for folder in getattr(module, "__path__", ())] or [Path(str(module.__file__))]
    for root in sorted(roots):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc":
                contents = path.read_bytes()
                digest.update(f"{path.relative_to(root.parent)} {len(contents)}\n".encode(errors="surrogateescape"))
                digest.update(contents)

    return digest.hexdigest()


@dataclass(frozen=True)
class Cell:
    """One replay of the grid. Its `label` names its table row and does not affect the result.

    Copy 0 is the log itself, and month 0 is the whole log.
    """

    label: str
    log: CampaignLog
    configuration: Configuration
    wait_bound: str
    mode: str
    traits: JobTraits
    seed: int
    copy: int
    keeps_jobs: bool = False
    month: int = 0
    compiled: bool = False

    @property
    def name(self) -> str:
        """Name of the cell in messages."""
        draw = f", copy {self.copy}" if self.copy else ""
        month = f", month {self.month}" if self.month else ""
        return f"{self.log.label}{month}, {self.label}, seed {self.seed}{draw}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that the result of the cell depends on."""
        log, traits = self.log, self.traits
        settings = {
            "version": __version__,
            "log": log.sha256,
            "cluster": log.cluster,
            "processors": log.processors,
            "filter": log.filter,
            "requests": log.requests,
            "sizes": log.sizes,
            "jobs": log.jobs,
            "load": log.load,
            "copy": self.copy,
            "month": self.month,
            **self.configuration._asdict(),
            "wait_bound": self.wait_bound,
            "mode": self.mode,
            "restartable": traits.restartable,
            "moldable": traits.moldable,
            "speedup": None if traits.speedup is None else traits.speedup.model_dump(),
            "seed": self.seed,
        }
        if self.compiled:
            settings["compiled"] = True
        changes = {
            "skip": log.skip or None,
            "put_back": log.put_back,
            "completed": log.completed,
            "recorded": log.recorded or None,
        }
        settings |= {name: value for name, value in changes.items() if value is not None}
        if plug_ins := [code for component in self._classes() if (code := code_of(component)) is not None]:
            settings["plug_ins"] = plug_ins
        return sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def _classes(self) -> Iterator[type[Any]]:
        """Yield the classes of the components and of the event source of the replay."""
        specs = {**self.configuration._asdict(), "wait-bound": self.wait_bound}
        yield from (REGISTRIES[option].classes[parse(spec).name] for option, spec in specs.items())
        yield SOURCES[self.mode]

    @property
    def is_the_same_here(self) -> bool:
        """Whether this machine has the versions and plug-in code that the digest was computed with."""
        return replace(self).digest == self.digest


def grid_of(campaign: Campaign, logs: Sequence[CampaignLog]) -> list[Cell]:
    """Return the cells of a campaign in the order of its tables: by log, row, copy, seed and month.

    Raise `SettingsError` if two cells are the same, or a column's base or a paper's figure is of a row that does not
    exist.
    """
    labels = [label for label, *_ in _rows(campaign)]
    for column in campaign.columns:
        if column.base is not None and column.base not in labels:
            key = "of" if column.change_from is None else "change_from"
            unknown = f"unknown row {quote(column.base)}{among(column.base, labels)}"
            raise SettingsError(f"column {quote(column.heading)}: {key}: {unknown}")
    starred = any("*" in column.key for column in campaign.columns)  # then names of rows depend on the results
    for log, row in ((log, row) for log, rows in campaign.paper.items() for row in rows):
        if not starred and row not in labels:
            raise SettingsError(f"paper.{log}: unknown row {quote(row)}{among(row, labels)}")

    traits = JobTraits(campaign.restartable, campaign.moldable, parse_speedup(campaign.speedup))
    cells = [
        Cell(label, log, configuration, wait_bound, campaign.mode, traits, seed, copy, keeps, month, campaign.compiled)
        for trace in logs
        for label, entry, settings, wait_bound in _rows(campaign)
        for log in [trace if entry.requests is None else replace(trace, requests=entry.requests)]
        for copy in range(campaign.copies + 1)
        for seed in (entry.seeds or campaign.seeds)
        for month in (log.months or (0,))
        for configuration in [configure(of_seed(entry.spec, seed), *settings)]
        for keeps in [campaign.keep_jobs and (copy, seed, month) == (0, (entry.seeds or campaign.seeds)[0], 0)]
    ]
    require_different("cell", ((cell.name, cell.digest) for cell in cells))
    return cells


def _rows(campaign: Campaign) -> Iterator[tuple[str, PolicyEntry, tuple[str | None, str | None], str]]:
    """Yield the label, policy, other SPECs and wait bound of each table row. Labels name only what differs.

    The other SPECs are those of run-time predictor and adjustment.
    """
    bounds = campaign.wait_bound or (DEFAULTS["wait-bound"] if SOURCES[campaign.mode].closed_loop else "bmbp",)
    settings = (campaign.runtime or (None,), campaign.adjustment or (None,), bounds)
    for entry, runtime, adjustment, bound in product(campaign.policies, *settings):
        chosen = (runtime, adjustment, bound)
        varied = [name for name, several in zip(chosen, settings, strict=True) if name and len(several) > 1]
        if len(campaign.policies) > 1 or not varied:
            varied.insert(0, entry.called)
        yield ", ".join(varied), entry, (runtime, adjustment), canonical("wait-bound", bound)
