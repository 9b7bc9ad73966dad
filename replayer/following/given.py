"""What a user says of the cluster to follow."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Given:
    """How a cluster is asked, and what of it is told.

    Parameters
    ----------
    history
        Seconds of its past that are told first.
    every
        Seconds between two pictures.
    timeout
        Seconds after which a command that has not answered is ended; twenty times as many for the past.
    patience
        Seconds for which the log waits for what is not known.
    via
        A command before every other, as in ssh login.
    key
        With one, names of users, accounts, … are hidden: they are stored as keyed hashes.
    """

    history: int = 0
    every: float = 15.0
    timeout: float = 60.0
    patience: int = 600
    via: tuple[str, ...] = ()
    key: bytes | None = None
