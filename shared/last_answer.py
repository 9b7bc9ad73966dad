"""An answer that is asked for twice: as a job is predicted, and as it is then observed."""

from collections.abc import Callable
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class LastAnswer(Generic[Question, Answer]):
    """A function of an object and of a state, which gives its last answer again while both stay as they are.

    Who changes the state calls `forget`. The question is known by its identity, so it must not change.

    >>> questions = []
    >>> last = LastAnswer(lambda question: questions.append(question) or len(questions))
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
