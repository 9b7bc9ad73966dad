"""Scores, one module for each kind of prediction."""

from shadowtime.services.scoreboard.scores.backfill_calibration import Calibration
from shadowtime.services.scoreboard.scores.bound_coverage import LOWER, BoundKind, StartsBy, WaitBoundCoverage
from shadowtime.services.scoreboard.scores.capacity import Capacity
from shadowtime.services.scoreboard.scores.event_probabilities import SaidProbabilities
from shadowtime.services.scoreboard.scores.portfolio import MemberRecord
from shadowtime.services.scoreboard.scores.prediction_workload import PredictionWorkload
from shadowtime.services.scoreboard.scores.reliability import BINS, ReliabilityTable
from shadowtime.services.scoreboard.scores.request_accuracy import WalltimeAccuracy
from shadowtime.services.scoreboard.scores.run_time_distributions import RunTimeDistributionScores
from shadowtime.services.scoreboard.scores.run_time_errors import RunTimeErrors
from shadowtime.services.scoreboard.scores.site_expectations import ExpectedStarts, StartErrors
from shadowtime.services.scoreboard.scores.start_distributions import StartDistributions
from shadowtime.services.scoreboard.scores.wait_forecasts import WaitForecastErrors
from shadowtime.services.scoreboard.scores.waits_and_utilization import WaitScores
