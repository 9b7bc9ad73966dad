"""Bounds on the wait of a job, for people."""

from rich.table import Table

from shadowtime.services.ask.questions import Answer, Question
from shadowtime.shared.command_line import one_line
from shadowtime.shared.formatting import clock, duration
from shadowtime.shared.predictions import WaitBound


def answer_table(question: Question, answer: Answer) -> Table:
    """Return the answer for people."""
    starts = [
        f"{_scope(each)}: starts with probability "
        + ", ".join(f"{share:g} within {duration(seconds)}" for share, seconds in each.starts_within)
        for each in answer.bounds
        if each.starts_within
    ]
    cluster, run = one_line(answer.cluster), one_line(answer.run)
    table = Table(
        title=f"cluster {cluster}, run {run}, at {clock(answer.time)}: with confidence {question.confidence:g}"
        f" at least {question.quantile:.6g} of such jobs wait no longer than",
        caption="\n".join(starts),
    )
    for heading in ("queue", "grouping", "wait", "waits behind it"):
        table.add_column(heading, justify="right" if heading.startswith("wait") else "left")
    explained = any(each.reason for each in answer.bounds)
    if explained:
        table.add_column("why none")
    for each in answer.bounds:
        wait = "none" if each.bound is None else duration(each.bound)
        row = _scope(each), each.grouping, wait, str(each.observations)
        table.add_row(*row, each.reason) if explained else table.add_row(*row)
    return table


def _scope(bound: WaitBound) -> str:
    return "all" if bound.queue is None else str(bound.queue)
