"""Sweeps from Python: a frame with a row for each replay of a grid."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shadowtime.replayer.api.frames import require_pandas
from shadowtime.replayer.api.own import require_several
from shadowtime.replayer.logs import BUNDLED, Workload
from shadowtime.shared.errors import SettingsError, first_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("log", "row", "processors", "copy", "mean_bounded_slowdown", "mean_wait", "tail_mean_wait"),
    *("users.longest_mean_wait", "max_wait", "utilization", "schedule_sha256"),
)
"""Columns of a sweep's frame. The table of all cells has further scores."""


def sweep(
    log: str | PathLike[str] | None,
    policies: Sequence[str],
    *,
    processors: str | None = None,
    load: str | None = None,
    copies: int = 0,
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
) -> "pd.DataFrame":
    """Replay a grid of configurations in this process, and return a frame with a row for each replay.

    The policy `easy` is added. The frame has the columns `COLUMNS`, with times in seconds. `row` is the SPEC. `log` is
    the name of the log with its size and load.

    Parameters
    ----------
    log
        Path of a log, as LOG or LOG@PROCESSORS; None for the bundled one.
    policies
        SPECs with grids, such as `easy:queue={srf,saf},threshold={20h..100h step 10h}`.
    processors, load
        Sizes of the machine and factors of the load, such as `80..160 step 8` or `0.9,1.1`. None: those of the log.
    copies
        Number of perturbed copies of the log in addition to the log itself.
    jobs
        Replay only this number of jobs, the earliest submitted; None replays all.
    out
        Folder of the results. A replay whose result is already there is not repeated. None keeps no result.

    Raises
    ------
    ShadowtimeError
        If a grid is invalid, or the log cannot be read.
    ImportError
        If pandas is missing.

    Examples
    --------
    >>> frame = sweep(None, ["easy:queue={srf,saf}"], jobs=200)
    >>> frame["row"].tolist()
    ['easy', 'easy:queue=srf', 'easy:queue=saf']
    """
    require_pandas()
    stated: object = log
    if stated is not None and not isinstance(stated, str | PathLike):
        named = f" {stated.name}" if isinstance(stated, Workload) else f" of type {type(stated).__name__}"
        raise SettingsError(
            f"log{named}: a sweep reads its log for each machine size; give the path of the log, or None for the "
            "bundled one"
        )
    from shadowtime.replayer.campaign import HERE, How, replayed
    from shadowtime.replayer.sweep import Grid, campaign_of

    require_several(policies)
    for name, text in (("processors", processors), ("load", load)):
        if text is not None and not isinstance(text, str):
            raise SettingsError(f"{name}: expected a text, such as '80,96' or '0.8..1.2 step 0.1'; found {text!r}")
    path = str(BUNDLED) if log is None else fspath(log)
    try:
        campaign = campaign_of(Grid(path, policies, processors, load, copies, jobs))
    except ValidationError as error:
        raise SettingsError(first_of(error, "sweep")) from None
    with TemporaryDirectory() as folder:
        how = How(Path(path), Path(), Path(out or folder), None, HERE, None, None, None, None, kept=out is not None)
        done = replayed(campaign, how)
        import pandas as pd

        rows = [
            {"log": cell.log.label, "row": cell.label, **row} for cell, row in zip(done.cells, done.rows, strict=True)
        ]
        return pd.DataFrame(rows)[list(COLUMNS)]
