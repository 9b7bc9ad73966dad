"""The interface of every online estimator: predict before the outcome, learn as soon as a cluster would know it."""

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
    the jobs in the system. It does not grow with the number of all jobs so far, unless a setting asks for that.
    """

    def predict_one(self, x: X) -> P | None:
        """Return the prediction for `x` from what has been learned so far; None if nothing is known."""
        ...

    def learn_one(self, x: X, y: Y) -> None:
        """Learn from the outcome `y` of `x`."""
        ...

    def observe(self, event: Event) -> None:
        """Observe an event of the run, after it was answered. Most predictors ignore it."""
        return  # a predictor need not override it

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        ...

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        ...


class Passthrough:
    """A predictor that never predicts anything; each stage has one under a name of its own."""

    name: ClassVar[str] = "none"
    Settings: ClassVar[type[SpecSettings]] = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        del settings

    def predict_one(self, x: object) -> None:
        """Return None."""

    def learn_one(self, x: object, y: object) -> None:
        """Learn nothing."""

    def observe(self, event: object) -> None:
        """Ignore the event."""

    def snapshot(self) -> Any:
        """Return None: there is no state."""
        return None

    def restore(self, state: Any) -> None:
        """Do nothing: there is no state."""


# A cache for an answer that is needed twice: when a job is predicted, and when it is then observed.

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class LastValue(Generic[Question, Answer]):
    """A function of one object that caches its last answer.

    It returns the cached answer if the next question is the same object. Questions are compared by identity, so they
    must not change. Call `forget` when anything else changes on which the answer depends.

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
        """Return the answer, from the cache if the question is the same as the last one."""
        if self._last is None or self._last[0] is not question:
            self._last = question, self._answer(question)
        return self._last[1]

    def forget(self) -> None:
        """Drop the cached answer."""
        self._last = None
