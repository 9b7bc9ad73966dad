"""Exponential backoff: the pauses between retries."""


class Backoff:
    """Pauses in seconds that double from the first to the largest one.

    >>> backoff = Backoff(first=0.5, largest=1.5)
    >>> [backoff.pause() for _ in range(4)]
    [0.5, 1.0, 1.5, 1.5]
    >>> backoff.reset()
    >>> backoff.pause()
    0.5
    """

    def __init__(self, first: float, largest: float) -> None:
        self._first = first
        self._largest = largest
        self._next = first

    def pause(self) -> float:
        """Return the pause in seconds. The next pause is twice as long, up to the largest."""
        pause, self._next = self._next, min(2 * self._next, self._largest)
        return pause

    def reset(self) -> None:
        """Begin with the first pause again, after a success."""
        self._next = self._first
