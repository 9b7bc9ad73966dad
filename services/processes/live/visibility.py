"""The jobs of a run that a visitor sees, and the state of the page without the others."""

from typing import Any

from shadowtime.services.processes.ask import ClusterWords, Viewer
from shadowtime.services.processes.live.queue_rows import Sees, everything
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.shared.errors import Unanswerable


def seen_by(viewer: Viewer, view: LiveView, words: ClusterWords) -> Sees:
    """Return which jobs of a run a visitor sees. A user whose jobs the run does not know sees none."""
    if viewer.sees == "all":
        return everything
    try:
        number = words.number("user", viewer.user, "user")
    except Unanswerable:
        number = None
    if number is None:
        return lambda story: False
    accounts: set[int | None] = set()
    if viewer.sees == "account":
        jobs = (view.stories[job].job for job in view.of_user.get(number, ()))
        accounts = {job.group_id for job in jobs} - {None}
    return lambda story: story.job.user_id == number or story.job.group_id in accounts


def restricted(state: dict[str, Any], view: LiveView, sees: Sees, rows: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the state of a page without the rows of jobs that are not seen. Sums over all jobs stay."""

    def known(number: object) -> bool:
        return isinstance(number, int) and number in view.stories and sees(view.stories[number])

    return state | {
        "queue": rows,
        "running": {number: row for number, row in state["running"].items() if known(number)},
        "decisions": {number: row for number, row in state["decisions"].items() if known(row[1])},
        "blocks": {key: row for key, row in state["blocks"].items() if known(row[0])},
        "planned": [row for row in state["planned"] if known(row[0])],
    }
