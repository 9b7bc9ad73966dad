"""Advice and bounds for people: sentences about the job, and tables."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, RunTime
from shadowtime.services.processes.ask.alternatives import Alternative, AlternativeShape
from shadowtime.services.processes.ask.questions import Answer, Offers, OffersQuestion, Question, age_line
from shadowtime.shared.formatting import counted, duration, hours_minutes, percent, utc_clock
from shadowtime.shared.messages import WITHOUT_CONFIDENCE, WaitBound
from shadowtime.shared.quoting import one_line
from shadowtime.shared.stages import HIGH
from shadowtime.shared.text import HEADINGS, YOUNG, range_rows

SHOWN = (0.5, 0.9)
"""Probabilities of a start. For each, a column has the time within which the job starts with this probability."""


def advice_table(question: AdviceQuestion, advice: Advice) -> RenderableType:
    """Return the advice for people: lines about the job, and the table of alternatives."""
    lines = [
        advised_line(question, advice),
        run_time_line(advice.run_time, question.requested_time),
        *(
            f"bound ({wait_bound.grouping}): {_limit_of(wait_bound)}"
            for wait_bound in advice.bounds
            if wait_bound.queue is None and wait_bound.grouping in ("ensemble", "conformal")
        ),
    ]
    reasons = dict.fromkeys(alternative.reason for alternative in advice.alternatives if alternative.reason is not None)
    lines += [f"no start is forecast: {reason}" for reason in reasons]
    if advice.note is not None:
        lines.append(advice.note)
    states = ", ".join(
        f"{state.stage} {utc_clock(state.time, state.unix_start)} (event {state.sequence})" for state in advice.as_of
    )
    run = f"cluster {one_line(advice.cluster)}, run {one_line(advice.run)}; as of: {states}"
    lines += age_line(advice.log_age)
    caption = (
        f"*: ends earliest with a risk of at most {percent(question.risk, 'g')} of being cut (longer requests: half of "
        "it); +: none ends as early with as small a risk. Size: processors, for the same work. Waits if no other job "
        "arrives."
    )
    return Group(*lines, alternatives_table(advice.alternatives, caption), run)


def advised_line(question: AdviceQuestion, advice: Advice) -> str:
    """Return the advice in one sentence, or why there is none."""
    advised = next((alternative for alternative in advice.alternatives if alternative.advised), None)
    if advised is None:
        return f"No request is advised: {advice.unadvised or advice.run_time.reason}."
    shape = AlternativeShape(advised.processors, advised.requested_time)
    size = "" if shape.processors == question.processors else f" on {counted(shape.processors, 'processor')}"
    asked = hours_minutes(question.requested_time)
    what = (
        f"Keep your request of {asked}"
        if shape == (question.processors, question.requested_time)
        else f"Request {hours_minutes(shape.requested_time)}{size} in place of {asked}"
    )
    start = "" if advised.mean_wait is None else f" and starts in {duration(advised.mean_wait)} on average"
    return f"{what}: the job is cut with probability {advised.cut or 0.0:.3f}{start}."


def run_time_line(run_time: RunTime, requested_time: int) -> str:
    """Return the predicted run time of the job in words, or why there is none."""
    if run_time.mean is None or run_time.cut is None:
        return f"run time: {run_time.reason}"
    median, longest = (hours_minutes(round(dict(run_time.quantiles)[share])) for share in (0.5, 0.95))
    return (
        f"run time: at most {median} with probability 0.5, {longest} with 0.95; longer than your "
        f"{hours_minutes(requested_time)} with {run_time.cut:.3f} (from {counted(run_time.observations, 'job')})"
    )


def _limit_of(bound: WaitBound) -> str:
    if bound.bound is None:
        return f"none: {bound.reason}"
    return f"95 % of such jobs wait no longer than {duration(bound.bound)}"


def alternatives_table(alternatives: tuple[Alternative, ...], caption: str) -> Table:
    """Return a table with one row per alternative."""
    table = Table(caption=caption, caption_justify="left")
    for heading in (
        "",
        "size",
        "request",
        "cut",
        "mean wait",
        *(f"{percent(share, 'g')} start in" for share in SHOWN),
    ):
        table.add_column(heading, justify="right")

    table.add_column("mean end", justify="right")
    for alternative in alternatives:
        within = dict(alternative.starts_within)
        table.add_row(
            "*" if alternative.advised else "+" if alternative.pareto_best else "",
            str(alternative.processors),
            hours_minutes(alternative.requested_time),
            "-" if alternative.cut is None else f"{alternative.cut:.3f}",
            "-" if alternative.mean_wait is None else duration(alternative.mean_wait),
            *("-" if share not in within else duration(within[share]) for share in SHOWN),
            "-" if alternative.mean_end is None else duration(alternative.mean_end),
        )

    return table


# Bounds on the wait of a job, for people.


def answer_table(question: Question, answer: Answer) -> Table:
    """Return the table of bounds for people."""
    starts = [
        f"{_scope(wait_bound, question)}: starts with probability "
        + ", ".join(f"{share:g} within {duration(seconds)}" for share, seconds in wait_bound.starts_within)
        for wait_bound in answer.bounds
        if wait_bound.starts_within
    ]
    starts += _unsure(answer.bounds)
    starts += [YOUNG] if any(wait_bound.young for wait_bound in answer.bounds) else []
    cluster, run = one_line(answer.cluster), one_line(answer.run)
    state = f"cluster {cluster}, run {run}, at {utc_clock(answer.time, answer.unix_start)}"
    table = Table(
        title=f"{state}: {_stated(question, answer.bounds)}",
        caption="\n".join([*age_line(answer.log_age), *starts]),
    )
    for heading in ("queue", "grouping", "wait", "waits behind it"):
        table.add_column(heading, justify="right" if heading.startswith("wait") else "left")
    outwaited = dict(enumerate(answer.outwaited))
    if any(outwaited.values()):
        table.add_column(f"outwaited, of {answer.waiting:,} waiting", justify="right")
    explained = any(wait_bound.reason for wait_bound in answer.bounds)
    if explained:
        table.add_column("why none")
    for place, wait_bound in enumerate(answer.bounds):
        row: list[str | Text] = [_scope(wait_bound, question), wait_bound.grouping, _wait(wait_bound)]
        row.append(str(wait_bound.observations))
        if any(outwaited.values()):
            row.append(_outwaited(outwaited.get(place), answer.waiting))
        table.add_row(*row, wait_bound.reason) if explained else table.add_row(*row)

    return table


def _outwaited(count: int | None, waiting: int) -> Text:
    """Return the cell with the number of waiting jobs that have waited longer than a bound.

    The number is red if it is at least the share `HIGH` of `waiting`. The cell of an unknown number (None) is `-`.
    """
    if count is None:
        return Text("-")
    return Text(f"{count:,}", "red" if count >= HIGH * waiting else "")


def ranges_table(answer: Answer) -> Table:
    """Return the table of the ranges of processors behind an answer."""
    table = Table(title="processors: ranges with similar waits, and the site's own", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading == "waits" else "left")
    for row in range_rows(answer.ranges):
        table.add_row(*row)
    return table


def offers_table(question: OffersQuestion, offers: Offers) -> Table:
    """Return the table of clusters and queues for people, the shortest wait first."""
    bounds = [offer.bound for offer in offers.offers if offer.bound is not None]
    table = Table(title=_stated(question, bounds), caption="\n".join(_unsure(bounds)) or None)
    for heading in ("cluster", "queue", "wait", "grouping", "waits behind it"):
        table.add_column(heading, justify="right" if heading.startswith("wait") else "left")
    explained = any(offer.reason for offer in offers.offers)
    if explained:
        table.add_column("why none")
    for offer in offers.offers:
        bound = offer.bound
        shown = ("none", "", "") if bound is None else (_wait(bound), _of(bound), str(bound.observations))
        row = one_line(offer.cluster), "all" if offer.queue is None else one_line(str(offer.queue)), *shown
        table.add_row(*row, offer.reason and one_line(offer.reason)) if explained else table.add_row(*row)

    return table


def _of(bound: WaitBound) -> str:
    return bound.grouping if bound.queue is not None else f"{bound.grouping}, all queues"


def _stated(question: Question | OffersQuestion, bounds: Iterable[WaitBound]) -> str:
    """Return the statement of the bounds of an answer. Its confidence is left out if no bound has one."""
    share, confidence = f"{question.quantile:.6g}", f"with confidence {question.confidence:g}"
    groupings = {bound.grouping for bound in bounds}
    if groupings and groupings.issubset(WITHOUT_CONFIDENCE):
        return f"estimated: {share} of such jobs wait no longer than"
    if question.side == "lower":
        return f"{confidence} at most {share} of such jobs wait no longer than"
    if question.side == "both":
        return f"{confidence} the wait that {share} of such jobs do not exceed is from … to"
    return f"{confidence} at least {share} of such jobs wait no longer than"


def _unsure(bounds: Iterable[WaitBound]) -> list[str]:
    """Return a line that names the bounds without a confidence, if others have one."""
    groupings = dict.fromkeys(bound.grouping for bound in bounds)
    without = [grouping for grouping in groupings if grouping in WITHOUT_CONFIDENCE]
    return [f"{', '.join(without)}: without a confidence"] if 0 < len(without) < len(groupings) else []


def _wait(bound: WaitBound) -> str:
    limits = [duration(limit) for limit in (bound.lower, bound.bound) if limit is not None]
    return " to ".join(limits) if limits and bound.reason is None else "none"


def _scope(bound: WaitBound, question: Question) -> str:
    return "all" if bound.queue is None else one_line(question.queue or str(bound.queue))
