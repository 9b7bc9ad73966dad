"""How long will it run, how long will it wait, may it start now: answers for a batch machine, live."""

__version__ = "0.1.0"
