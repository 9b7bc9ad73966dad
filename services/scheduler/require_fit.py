"""What a policy decides must fit: it may be a plug-in, and nothing else asks before a machine is told."""

from collections.abc import Sequence

from shadowtime.services.scheduler.job_table import SIZE, START, Queue, Running
from shadowtime.services.scheduler.policy import Output
from shadowtime.shared.decisions import Kill, Start


def require_fit(
    policy: str,
    decisions: Sequence[Output],
    queue: Queue,
    running: Running,
    free: int,
    where: str,
    units: Sequence[str],
) -> None:
    """See that jobs that are started wait, and fit beside each other into what is free and what killed jobs give back.

    Parameters
    ----------
    policy, where
        What messages call the policy and its pool.
    free
        Idle processors.
    units
        What messages call each resource.

    Raises
    ------
    ValueError
        If one does not; names the policy, the job and the numbers.
    """
    left = running.free(free).tolist()
    for each in decisions:
        if isinstance(each, Kill) and (row := running.row(each.job_number)) is not None:
            held = row[SIZE], *row[START + 1 :]
            left = [free + size for free, size in zip(left, held, strict=True)]
        elif isinstance(each, Start):
            if (row := queue.row(each.job_number)) is None:
                raise ValueError(f"policy {policy!r} starts job {each.job_number}, which does not wait in {where}")
            asked = each.processors, *row[START:]
            for size, free, unit in zip(asked, left, units, strict=True):
                if size > max(free, 0):
                    raise ValueError(
                        f"policy {policy!r} starts job {each.job_number} on {size} {unit}; {where} has {free} free"
                    )
            left = [free - size for free, size in zip(left, asked, strict=True)]
