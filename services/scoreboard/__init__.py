"""The scoreboard: the scores of a run."""

from shadowtime.services.scoreboard.handler import Scoreboard
