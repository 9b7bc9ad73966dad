"""An `Explanation` in sentences, for terminals, the live page and readers of the JSON."""

from collections.abc import Callable, Iterator

from shadowtime.shared.formatting import clock, counted, duration, percent
from shadowtime.shared.messages import (
    Ahead,
    Ending,
    Endings,
    Explanation,
    Outcome,
    Refused,
    Shadow,
    Sooner,
    StartOutlook,
)
from shadowtime.shared.quoting import plain
from shadowtime.shared.text.events import ENDS
from shadowtime.shared.text.reasons import RunContext, describe_reason, procs

SHOWN = 5
"""Maximum number of jobs that one sentence names."""

UNITS = {"processors": "procs", "memory": "MiB of memory", "gpus": "GPUs"}


NamesJob = Callable[[int], str]
"""Function that returns the id of a job, as its cluster writes it, from its number in the log."""


def sentences_of(why: Explanation, job_id: NamesJob = str) -> list[str]:
    """Return an explanation as sentences. Times on the day of the explanation have no date.

    >>> sentences_of(Explanation(cluster="kth", run="r", sequence=9, time=7200, unix_start=0, obeyed=True,
    ...     policy="easy", job_number=7, state="ended", processors=4, since=0, started=600, ended=4200, run_time=3600,
    ...     outcome="completed"))
    ['Job 7 completed at 01:10:00 after 1.0 h on 4 procs; it had waited 10.0 min.']
    """
    return list(_Words(why, job_id).all())


def reasons_of(why: Explanation, job_id: NamesJob = str) -> list[str]:
    """Return the reasons why a job waits, one sentence each.

    The job's state and the predictions at its submission are left out.
    """
    return list(_Words(why, job_id).reasons())


def brief_of(why: Explanation, job_id: NamesJob = str) -> str:
    """Return the main reason why a job waits, in one sentence; an empty text if it does not wait."""
    if why.state == "starting":
        return "It starts now."
    return "" if why.waits_for is None else _Words(why, job_id).waits_for()


def shares(share: float) -> str:
    """Return a probability as percent. Only exactly 0 and 1 are shown as 0 % and 100 %.

    >>> shares(0.1234), shares(1.0), shares(0.99999), shares(0.00001)
    ('12.3 %', '100 %', 'more than 99.9 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if 0.999 < share < 1 else percent(share, ".3g")


SOURCES = {
    "site": "by what the site expects",
    "releases": "by the expected ends of running jobs",
    "forecast": "by the forecast",
    "bounds": "by bounds on waits",
}


def start_range(start: StartOutlook, at: Callable[[int], str]) -> str:
    """Return the interval of a start in words; empty if neither end is known. `at` formats a second of the log.

    >>> start_range(StartOutlook(expected=60, earliest=30, latest=90), str)
    '30 to 90'
    >>> start_range(StartOutlook(expected=60, latest=90), str), start_range(StartOutlook(earliest=30), str)
    ('by 90', '30 or later')
    """
    if start.earliest is not None and start.latest is not None:
        return f"{at(start.earliest)} to {at(start.latest)}"
    if start.latest is not None:
        return f"by {at(start.latest)}"
    return "" if start.earliest is None else f"{at(start.earliest)} or later"


def starts_of(why: Explanation) -> str:
    """Return in one sentence when a waiting job starts; empty if nothing is known, or if the next pass starts it."""
    return "" if why.starts is None else describe_start(why.starts, why.time, why.unix_start)


def describe_start(start: StartOutlook, now: int, unix_start: int) -> str:
    """Return in one sentence when a job starts; empty if nothing is known, or if the next pass starts it.

    >>> describe_start(StartOutlook(source="forecast", expected=7200, earliest=5400, latest=9000), 3600, 0)
    'It is expected to start at about 02:00 (01:30 to 02:30), by the forecast.'
    >>> describe_start(StartOutlook(passed=1800), 3600, 0)
    'It is later than predicted: the last time that was predicted, 00:30, has passed 30.0 min ago.'
    """

    def at(second: int) -> str:
        return clock(second, unix_start, now)[:-3]

    if start.passed is not None:
        ago = duration(now - start.passed)
        return (
            f"It is later than predicted: the last time that was predicted, {at(start.passed)}, has passed {ago} ago."
        )
    interval, source = start_range(start, at), SOURCES.get(start.source or "")
    if source is None:
        return ""
    if start.expected is None:
        return f"It is expected to start {interval}, {source}." if interval else ""
    around = f" ({interval})" if interval else ""
    return f"It is expected to start at about {at(start.expected)}{around}, {source}."


def start_in(starts: StartOutlook, now: int) -> str:
    """Return in a few words in how long a job starts; empty if nothing is known.

    >>> start_in(StartOutlook(source="forecast", expected=7200, earliest=2400, latest=21600), 0)
    'likely to start in 2.0 h (80 %: 40.0 min to 6.0 h)'
    >>> start_in(StartOutlook(source="bounds", latest=3600), 0), start_in(StartOutlook(passed=60), 120)
    ('starts within 1.0 h, with 90 %', 'later than predicted')
    >>> start_in(StartOutlook(source="releases", expected=5), 5)
    'likely to start now'
    """
    if starts.passed is not None:
        return "later than predicted"
    if starts.expected is None:
        return "" if starts.latest is None else f"starts within {duration(starts.latest - now)}, with 90 %"
    expected = "now" if starts.expected <= now else f"in {duration(starts.expected - now)}"
    if starts.earliest is not None and starts.latest is not None:
        expected += f" (80 %: {duration(starts.earliest - now)} to {duration(starts.latest - now)})"
    elif starts.latest is not None:
        expected += f" (90 %: within {duration(starts.latest - now)})"
    return f"likely to start {expected}"


class _Words:
    def __init__(self, why: Explanation, job_id: NamesJob) -> None:
        self.why, self.job_id = why, job_id

    def at(self, second: int) -> str:
        return clock(second, self.why.unix_start, self.why.time)

    def all(self) -> Iterator[str]:
        why = self.why
        job = f"Job {self.job_id(why.job_number)}"
        if why.state == "ended" and why.started is not None and why.ended is not None:
            outcome: Outcome = why.outcome or "completed"
            ran = f"after {duration(why.run_time)} on {procs(why.processors)}"
            waited = duration(why.started - why.since)
            yield f"{job} {ENDS[outcome]} at {self.at(why.ended)} {ran}; it had waited {waited}."
            return

        if why.state in ("running", "suspended") and why.started is not None:
            limit = "" if why.requested_time is None else f", for {duration(why.requested_time)} at most"
            waited = duration(why.started - why.since)
            verb = "runs" if why.state == "running" else "is suspended; it started"
            since = f"since {self.at(why.started)}" if why.state == "running" else f"at {self.at(why.started)}"
            yield f"{job} {verb} {since} on {procs(why.processors)}{limit}, having waited {waited}."
            yield from self.decided()
            return

        asks = "" if why.requested_time is None else f" for {duration(why.requested_time)}"
        yield f"{job} asks for {procs(why.processors)}{asks}, and has waited for {duration(why.time - why.since)}."
        if why.state == "starting":
            yield "It starts now."
            yield from self.decided()
            return

        if why.decided is not None:
            yield from self.decided()
        if when := starts_of(why):
            yield when
        yield from self.reasons()

    def reasons(self) -> Iterator[str]:
        why = self.why
        if why.ahead is not None:
            yield ahead(why.ahead, self.job_id)
        if why.waits_for is not None:
            yield self.waits_for()
        if why.site_reason is not None and why.waits_for != "site":
            yield f"The site's own scheduler gives the reason {plain(why.site_reason)}."
        if why.shadow is not None:
            yield self.shadow(why.shadow)
        if why.ends is not None:
            yield from self.ends(why.ends)
        for refusal in why.refused:
            yield self.refused(refusal)
        yield from map(self.sooner, why.sooner)
        if why.tried and not why.sooner:
            yield "No shorter request, and no fewer processors, would start it in a pass now."

    def decided(self) -> Iterator[str]:
        why = self.why
        if why.decided is None or why.reason is None:
            return
        context = RunContext(why.unix_start, job_id=self.job_id)
        verb = "It was decided to start it" if why.obeyed else "The policy first advised to start it"
        yield f"{verb} at {self.at(why.decided)}: {describe_reason(why.reason, context, why.time)}."

    def waits_for(self) -> str:
        why = self.why
        match why.waits_for:
            case "site":
                if why.site_reason is None:
                    return "The site does not let it start for now, for its own reason such as a limit on its user."
                return f"The site does not let it start for now: {plain(why.site_reason)}."
            case "pass" if why.obeyed:
                return "It fits, and the next pass starts it, unless something comes before that."
            case "pass":
                return "It fits, and the policy would start it; decisions are advice here, and the machine has not."
            case "head" if why.ahead is not None and not why.ahead.told:
                return "It fits into what is free, but the policy, which has a rule of its own, does not start it yet."
            case "head" if why.shadow is not None:
                head = self.job_id(why.shadow.head)
                return f"It fits into what is free, but job {head} goes first and must not be delayed."
            case "head":
                return "It fits into what is free, but jobs before it go first."

        unit = "GPU" if why.resource == "gpus" and why.asked == 1 else UNITS[why.resource or "processors"]
        if why.resource == "gpus" and why.gpu_types:
            unit = f"{unit} of any type" if why.of_type is None else f"{plain(why.of_type)} {unit}"
        needs = f"It needs {why.asked:,} {unit}"
        if why.waits_for == "capacity":
            return f"{needs}, more than there are just now."
        free = max(why.free or 0, 0)
        return f"{needs}, and {free:,} {'is' if free == 1 else 'are'} free."

    def shadow(self, shadow: Shadow) -> str:
        if shadow.shadow_time is None:
            head = self.job_id(shadow.head)
            return f"As the policy plans it, job {head} does not fit even when all running jobs have ended."
        by = " by requests" if shadow.plan == "requested" else ""
        head = f"As the policy plans it{by}, job {self.job_id(shadow.head)} can start at {self.at(shadow.shadow_time)}"
        extra = f"leaving {procs(max(shadow.extra_processors, 0))}"
        end = shadow.planned_end
        ends = "may run on without end" if end is None else f"would run until {self.at(end)}"
        return f"{head}, {extra}; started now, this one {ends} on {procs(self.why.processors)}."

    def ends(self, ends: Endings) -> Iterator[str]:
        who = "it" if ends.job_number == self.why.job_number else f"job {self.job_id(ends.job_number)}"
        names = "; ".join(self.ending(job, ends.time) for job in ends.named[:SHOWN])
        more = f"; and {ends.jobs - SHOWN:,} more" if ends.jobs > SHOWN else ""
        verb = "is" if ends.jobs == 1 else "are"
        count = counted(ends.jobs, "running job")
        first = f"For {who} to find room, {count} must end, which {verb} expected by {self.at(ends.time)}"
        yield f"{first}: {names}{more}."
        if ends.probability is not None and ends.probability < 1:
            likely = f"Enough processors are free by then with at least {shares(ends.probability)}"
            quantiles = ", ".join(f"by {self.at(time)} with {shares(share)}" for share, time in ends.quantiles)
            yield f"{likely}{', ' * bool(quantiles)}{quantiles}, if no other job starts."

    def ending(self, ending: Ending, by: int) -> str:
        when = f"at {self.at(ending.expected_end)}" + (" by its prediction" if ending.predicted else " by its limit")
        by_then = ""
        if ending.probability is not None and (ending.predicted or ending.probability < 1):
            sure = "surely" if ending.probability == 1 else f"with {shares(ending.probability)}"
            by_then = f", ended by {self.at(by)} {sure}"
        return f"job {self.job_id(ending.job_number)} ({procs(ending.processors)}) {when}{by_then}"

    def refused(self, refused: Refused) -> str:
        exact, head = shares(refused.probability), self.job_id(refused.head)
        if refused.recalibrated is not None:
            exact = f"{shares(refused.recalibrated)} (raw {exact})"
        sentence = f"At {self.at(refused.time)} a pass weighed it and did not start it: it would delay job {head}"
        match refused.criterion:
            case "paper":
                rule = f", by the paper's bound {shares(refused.bound)}; less than {shares(refused.tau)} is asked"
            case "gain":
                times = "" if refused.tau == 1 else f"{refused.tau:g} times "
                rule = f"; by its rule, that job must be expected to lose less than {times}what this one gains"
            case "exact":
                rule = f"; less than {shares(refused.tau)} is asked, within what is left of the budget"

        return f"{sentence} with {exact}{rule}."

    def sooner(self, sooner: Sooner) -> str:
        if sooner.processors is not None:
            return f"On {procs(sooner.processors)}, with the same request, a pass now would start it."
        cut = ""
        if sooner.cut is not None:
            cut = f"; it runs longer than that with {shares(sooner.cut)}"
        return f"With a request of {clock(sooner.requested_time or 0, today=0)} a pass now would start it{cut}."


def ahead(ahead: Ahead, job_id: NamesJob = str) -> str:
    """Return the jobs before a job, in words.

    >>> ahead(Ahead(order="fcfs", told=True, jobs=2, processors=40, job_numbers=(3, 5)))
    'Before it in the order of the queue (fcfs): 2 jobs, which request 40 procs in all: 3, 5.'
    """
    if not ahead.told:
        first = "The policy serves the queue by a rule of its own"
        if not ahead.jobs:
            return f"{first}; of those that wait, none came before it."
        start = f"{first}. Came before it"
    elif not ahead.jobs:
        return f"It is the first in the order of the queue ({plain(ahead.order)})."
    else:
        start = f"Before it in the order of the queue ({plain(ahead.order)})"

    more = ", …" if ahead.jobs > SHOWN else ""
    asks = "requests" if ahead.jobs == 1 else "request"
    named = ", ".join(map(job_id, ahead.job_numbers[:SHOWN]))
    jobs = counted(ahead.jobs, "job")
    return f"{start}: {jobs}, which {asks} {procs(ahead.processors)} in all: {named}{more}."
