"""`watch` over real Kafka: what it lets through, how it looks, and how it ends."""

import io
import re

import orjson
import pytest
from rich.console import Console

from shadowtime.services.processes.ask.words import ClusterWords
from shadowtime.services.processes.watch import MAX_RUNS, Filter, JsonLines, MessageFilter, SelectedMessage, Sentences
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.messages.decisions import Chosen as ChosenMember
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import Decided, Envelope, JobChanged, JobStarted
from shadowtime.shared.messages.predictions import WaitForecast
from shadowtime.shared.streaming.kafka.topic_follower import Message
from tests.support.watched import BACKFILLED, envelopes

TASK = number_of(2754, 12)
ALL = MessageFilter()
HOSTILE = "<b>\x1b[31m\nkth[/red]"


def let_through(wanted: MessageFilter, *more: Envelope) -> list[int]:
    """Return the sequence numbers of what a filter lets through."""
    choose = Filter(wanted)
    return [each.sequence for each in (*envelopes(), *more) if choose(message(each.to_bytes())) is not None]


def message(value: bytes) -> Message:
    return Message(value, {}, 0, 0)


@pytest.mark.parametrize(
    ("wanted", "sequences"),
    [
        (MessageFilter(), [0, 1, 2, 3, 4, 5, 6, 7]),
        (MessageFilter(cluster="kth"), [0, 1, 2, 3, 4, 5, 6, 7]),
        (MessageFilter(cluster="ctc"), []),
        (MessageFilter(run="kth/easy", kind="Decided"), [4, 7]),
        (MessageFilter(job="2"), [2, 4, 5, 6]),
        (MessageFilter(job="1"), [1]),
        (MessageFilter(user="8"), [2, 4, 5, 6]),
        (MessageFilter(user="7"), [1]),
        (MessageFilter(user="8", kind="JobEnded"), [6]),
        (MessageFilter(predictions=True), [1, 4]),
        (MessageFilter(predictions=True, user="8"), [4]),
        (MessageFilter(user="8", job="2"), [2, 4, 5, 6]),
        (MessageFilter(user="8", job="1"), []),
    ],
)
def test_filters(wanted: MessageFilter, sequences: list[int]) -> None:
    assert let_through(wanted) == sequences


def test_a_forecast_is_a_prediction() -> None:
    alone = envelopes()[2].model_copy(update={"sequence": 99, "forecast": WaitForecast(wait=60)})
    assert let_through(MessageFilter(predictions=True), alone) == [1, 4, 99]


def test_a_user_is_known_by_the_jobs_of_each_run() -> None:
    other = Envelope(run="other", sequence=99, event=JobStarted(time=10, job_number=2, processors=1))
    assert 99 not in let_through(MessageFilter(user="8"), other)


def test_what_is_no_envelope_is_shown_only_where_all_is() -> None:
    for line in (b"{not json", b"[]", b'{"event":3}', b'{"event":{"kind":"x"}}'):
        assert Filter(MessageFilter())(message(line)) == SelectedMessage(message(line))
        assert Filter(MessageFilter(cluster="kth"))(message(line)) is None


@pytest.mark.parametrize(
    "event",
    [
        b'{"kind":"JobSubmitted","user_id":7}',
        b'{"kind":"JobSubmitted","user_id":7,"job_number":[1]}',
        b'{"kind":"Decided","starts":[3]}',
        b'{"kind":"Decided","starts":[{}],"kills":null}',
        b'{"kind":"Decided","starts":7}',
    ],
)
def test_what_only_looks_like_an_envelope_is_not_wanted(event: bytes) -> None:
    line = b'{"run":"kth/easy","event":' + event + b"}"
    for wanted in (MessageFilter(user="7"), MessageFilter(job="1")):
        assert Filter(wanted)(message(line)) is None


def printed(*values: bytes, wanted: MessageFilter = ALL, width: int = 120) -> str:
    output = io.StringIO()
    console = Console(file=output, width=width, highlight=False, emoji=False)
    printer, choose = Sentences(console, "decisions"), Filter(wanted)
    messages = [message(value) for value in values]
    for each in messages:
        printer.note(each)
    printer.show([chosen for each in messages if (chosen := choose(each)) is not None])
    return output.getvalue()


def test_what_happened_is_told_in_sentences() -> None:
    """Nothing of the scheduling point and of the empty decision."""
    shown = printed(*(each.to_bytes() for each in envelopes()), width=160)
    assert {line[:20] for line in shown.splitlines()} == {
        f" 1 Jan 00:00:{second} kth " for second in ("00", "10", "40")
    }
    assert [line[20:].rstrip() for line in shown.splitlines()] == [
        "the run begins: 16 procs; easy",
        "job 1 (16 procs) is submitted: asks for 10.0 min; expected to run 1.5 min",
        "job 2 (2 procs) is submitted: asks for 1.0 min",
        "job 2 (2 procs) starts now: backfilled, ends by 00:15:00, when job 1 can start by requests",
        "job 2 (2 procs) started, for 1.0 min at most",
        "job 2 completed after 30 s",
    ]


def test_a_line_fits_a_narrow_terminal() -> None:
    shown = printed(*(each.to_bytes() for each in envelopes()), width=80)
    assert max(map(len, shown.splitlines())) <= 80
    assert " ".join(shown.split()).count("can start") == 1


def test_without_the_beginning_days_are_counted() -> None:
    assert printed(envelopes()[2].to_bytes()).startswith("   0 d 00:00:10 kth")


def test_two_runs_of_a_cluster_are_told_apart() -> None:
    first, second = (envelopes(run)[6].to_bytes() for run in ("kth/easy/1", "kth/easy/2"))
    assert [line.split()[3] for line in printed(first, second, first).splitlines()] == [
        "kth",
        "kth/easy/2",
        "kth/easy/1",
    ]


def test_two_long_names_of_runs_are_told_apart() -> None:
    """Both were `mycluster/shado…`."""
    runs = [f"mycluster/shadow/{policy}" for policy in ("easy", "best", "wfp")]
    shown = printed(*(envelopes(run, "mycluster")[6].to_bytes() for run in runs))
    assert "…" not in shown
    words = "".join(line[16:32] for line in shown.splitlines()).replace(" ", "")
    assert all(run in words for run in runs[1:])  # the first is the only one so far, named by its cluster


def test_sentences_of_one_job() -> None:
    shown = printed(*(each.to_bytes() for each in envelopes()), wanted=MessageFilter(job="1"))
    assert "submitted" in shown
    assert "backfilled" not in shown


def test_sentences_of_one_user() -> None:
    """A decision is about jobs of several; the user's have ended by the time at which the lines are printed."""
    log = envelopes()
    starts = tuple(Start(job_number=number, processors=2, reason=BACKFILLED) for number in (1, 2, 3))
    log[4] = log[4].model_copy(update={"event": Decided(time=10, starts=starts)})
    shown = printed(*(each.to_bytes() for each in log), wanted=MessageFilter(user="8"), width=160)
    assert re.findall(r"job (\d) (?:\(|completed)", shown) == ["2"] * 4


def test_advice_on_a_job_that_goes_on_waiting_is_shown_once_a_minute() -> None:
    start = Start(job_number=7, processors=2, reason=BACKFILLED)
    told = [
        Envelope(run="mine/live", cluster="mine", sequence=time, event=Decided(time=time, starts=(start,)))
        for time in range(130)
    ]
    shown = printed(*(each.to_bytes() for each in told), width=200)
    assert shown.count("job 7 ") == 3
    assert shown.count("also 59 times in the minute before") == 2


def test_of_each_run_it_is_told_when_another_member_begins_to_decide() -> None:
    chosen = [ChosenMember(member=name, jobs=300, standings=()) for name in ("a", "a", "b", "a")]
    told = [
        Envelope(run=run, cluster=run, sequence=place, event=Decided(time=place, chosen=each))
        for place, each in enumerate(chosen)
        for run in ("r", "s")
    ]
    shown = printed(*(each.to_bytes() for each in told))
    assert re.findall(r"([rs]) +(\w) decides", shown) == [(run, name) for name in "aba" for run in "rs"]


def test_a_hostile_name_is_only_text() -> None:
    shown = printed(envelopes(cluster=HOSTILE)[1].to_bytes(), b"\x1b[2J{")
    assert "\x1b" not in shown
    assert "<b>" in shown
    assert "not an envelope" in shown


def test_what_it_remembers_is_bounded() -> None:
    output = io.StringIO()
    printer = Sentences(Console(file=output), "decisions")

    def shown(run: str, cluster: str) -> str:
        output.truncate(output.seek(0))
        printer.show([SelectedMessage(message(envelopes(run, cluster)[6].to_bytes()))])
        return output.getvalue()

    for number in range(MAX_RUNS + 5):
        each = message(envelopes(f"r{number}", f"c{number}")[0].to_bytes())
        printer.note(each)
        printer.show([SelectedMessage(each)])
        decided = Decided(time=0, chosen=ChosenMember(member="easy"))
        printer.show([SelectedMessage(message(Envelope(run=f"x{number}", sequence=0, event=decided).to_bytes()))])
    oldest = MAX_RUNS // 2 + 5  # of the two runs of each turn
    assert "0 d 00:00:40" in shown(f"r{oldest - 1}", f"c{oldest - 1}")
    assert "1 Jan 00:00:40" in shown(f"r{oldest}", f"c{oldest}")
    assert " other " in shown("other", f"c{MAX_RUNS + 4}")
    assert " c0 " in shown("other", "c0")  # of which another run was seen long ago


def test_json_lines_are_what_came() -> None:
    output = io.BytesIO()
    JsonLines(output, "decisions").show([SelectedMessage(Message(b'{"a":1}', {"trace": "x"}, 0, 0))])
    JsonLines(output, "dead-letters").show([SelectedMessage(Message(b"\xff{", {"stage": "scheduler"}, 0, 0))])
    assert output.getvalue() == '{"a":1}\n{"stage":"scheduler","value":"\ufffd{"}\n'.encode()


def test_json_lines_are_json_and_a_line_each_whatever_came() -> None:
    output = io.BytesIO()
    came = (b'{\n "a": "\xc3\xbc"\r\n}', b"[1]\x1b[2J\nx", b"", b'{"a": 1}')
    JsonLines(output, "jobs").show([SelectedMessage(message(value)) for value in came])
    assert [orjson.loads(line) for line in output.getvalue().splitlines()] == [
        {"a": "ü"}, {"value": "[1]\x1b[2J\nx"}, {"value": ""}, {"a": 1},
    ]  # fmt: skip
    assert output.getvalue().endswith(b'\n{"a": 1}\n')


NAMES = ClusterWords({"user:alice": b"8", "partition:gpu": b"1"})


@pytest.mark.parametrize(
    ("wanted", "sequences"),
    [
        (MessageFilter(user="alice"), [2, 4, 5, 6]),
        (MessageFilter(user="8"), [2, 4, 5, 6]),
        (MessageFilter(user="bob"), []),
        (MessageFilter(job="2754_12"), [97]),
        (MessageFilter(job="2754[12]"), [97]),
        (MessageFilter(job=str(TASK)), [97]),
    ],
)
def test_a_filter_takes_the_words_of_the_cluster(wanted: MessageFilter, sequences: list[int]) -> None:
    task = Envelope(run="kth/easy", sequence=97, event=JobStarted(time=10, job_number=TASK, processors=1))
    choose = Filter(wanted, lambda run: NAMES)
    assert [each.sequence for each in (*envelopes(), task) if choose(message(each.to_bytes()))] == sequences


def test_sentences_have_the_words_of_the_cluster() -> None:
    changed = JobChanged(time=10, job_number=TASK, user_id=8, queue_number=1)
    output = io.StringIO()
    lines = Sentences(Console(file=output, width=120), "jobs", lambda run: NAMES)
    lines.show([SelectedMessage(message(Envelope(run="mine/live", sequence=1, event=changed).to_bytes()))])
    assert "job 2754_12 changes: user alice; partition gpu" in output.getvalue()
