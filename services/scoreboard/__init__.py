"""The scoreboard: the scores of a run."""

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores import LOWER, StartErrors
from shadowtime.services.scoreboard.whole_log import PastJobs, PredictedJobs, scores_of_log
