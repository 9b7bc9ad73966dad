"""The seam of every online estimator: predict before the fact, learn once it would be known live."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from shadowtime.shared.messages import Event
from shadowtime.shared.spec import SpecSettings

X = TypeVar("X", contravariant=True)
Y = TypeVar("Y", contravariant=True)
P = TypeVar("P", covariant=True)


class Predictor(Protocol[X, Y, P]):
    """An online estimator, after river's convention.

    State changes only in `learn_one` and `observe`; `predict_one` is pure and works before any learning: it returns
    None when nothing is known. Memory is bounded by the number of users, groups or classes, by a window of time, or by
    the jobs in the system; never, unless a setting asks for it, by all jobs so far.
    """

    def predict_one(self, x: X) -> P | None:
        """Return the prediction for `x` from what has been learned so far."""
        ...

    def learn_one(self, x: X, y: Y) -> None:
        """Take in the outcome `y` of `x`."""
        ...

    def observe(self, event: Event) -> None:
        """Take notice of an event of the run, after it was answered; most need not."""
        return  # not abstract

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        ...

    def restore(self, state: Any) -> None:
        """Take on the state that `snapshot` returned."""
        ...


class Passthrough:
    """A predictor that never says anything; each stage has one under a name of its own."""

    name: ClassVar[str] = "none"
    Settings: ClassVar[type[SpecSettings]] = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        del settings

    def predict_one(self, x: object) -> None:
        """Return None."""

    def learn_one(self, x: object, y: object) -> None:
        """Learn nothing."""

    def observe(self, event: object) -> None:
        """Take no notice."""

    def snapshot(self) -> Any:
        """Return None: there is no state."""
        return None

    def restore(self, state: Any) -> None:
        """Take on no state."""


# An answer that is asked for twice: as a job is predicted, and as it is then observed.

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class LastValue(Generic[Question, Answer]):
    """A function of an object and of a state, which gives its last answer again while both stay as they are.

    Who changes the state calls `forget`. The question is known by its identity, so it must not change.

    >>> questions = []
    >>> last = LastValue(lambda question: questions.append(question) or len(questions))
    >>> asked = object()
    >>> last(asked), last(asked), len(questions)
    (1, 1, 1)
    >>> last.forget()
    >>> last(asked), last(object())
    (2, 3)
    """

    def __init__(self, answer: Callable[[Question], Answer]) -> None:
        self._answer = answer
        self._last: tuple[Question, Answer] | None = None

    def __call__(self, question: Question) -> Answer:
        """Return the answer."""
        if self._last is None or self._last[0] is not question:
            self._last = question, self._answer(question)
        return self._last[1]

    def forget(self) -> None:
        """Work out the next answer anew."""
        self._last = None
