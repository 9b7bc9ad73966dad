"""Figures of the last picture under the names and labels of common Slurm exporters (docs/slurm-exporters.md).

Only names with the same meaning as in these exporters are here. The values count rows of `squeue -a -r`, as there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from shadowtime.services.follower.cluster.observation import JobObservation

STATES = {"waiting": "pending", "running": "running", "suspended": "suspended"}
"""The name in Slurm of each state of a job in a picture."""

OWNERS = ("user", "account")


class ExporterFigure(NamedTuple):
    """A metric: its name, its meaning, the name of its label ("" for none), and the value for each label value."""

    name: str
    meaning: str
    label: str
    values: dict[str, int]


def exporter_figures(picture: Iterable[JobObservation], shown: Callable[[str, str], str]) -> Iterator[ExporterFigure]:
    """Yield the figures of a picture. O(jobs).

    Parameters
    ----------
    picture
        All jobs of the picture. Jobs that are over do not count.
    shown
        Function of a kind and a name that returns the text to show: the name itself, or its hash.
    """
    jobs: dict[tuple[str, str], Counter[str]] = {}
    processors: dict[str, Counter[str]] = {kind: Counter() for kind in OWNERS}
    for observation in picture:
        state = STATES.get(observation.state)
        if state is None:
            continue
        for kind in ("", "partition", *OWNERS):
            name = shown(kind, getattr(observation, kind)) if kind else ""
            jobs.setdefault((kind, state), Counter())[name] += 1
            if kind in OWNERS and state == "running":
                processors[kind][name] += observation.processors

    for state in STATES.values():
        total = jobs.get(("", state), Counter())[""]
        yield ExporterFigure(f"slurm_queue_{state}", f"Jobs that are {state}.", "", {"": total})
    for kind in ("partition", *OWNERS):
        for state in STATES.values():
            if (kind, state) != ("partition", "suspended"):
                meaning = f"Jobs of a {kind} that are {state}."
                yield ExporterFigure(f"slurm_{kind}_jobs_{state}", meaning, kind, dict(jobs.get((kind, state), {})))
    for kind in OWNERS:
        yield ExporterFigure(
            f"slurm_{kind}_cpus_running", f"Processors of running jobs of a {kind}.", kind, dict(processors[kind])
        )
