"""Option values, spelled as users type them."""

from typing import Literal

Oversized = Literal["drop", "align"]
Objective = Literal["slowdown", "wait", "fairness"]
"""Aim of a recommended policy."""

Requests = Literal["as-logged", "at-least-run", "actual", "doubled", "queue-maximum"]
Sizes = Literal["requested", "allocated"]
Purpose = Literal["waits", "schedule"]
"""The use of predicted run times: to forecast waits, or to decide by them."""

Transport = Literal["embedded", "kafka"]
YesNo = Literal["yes", "no"]

NO_FILE = "interrupted; no result file was written"
CELLS_KEPT = "interrupted; finished cells are kept; run the same command again to continue"
"""Messages after Ctrl-C: of a command that writes its results at the end, and of a campaign."""

DEFAULT_LOAD = 0.6
"""Default offered load of a generated log, as a share of the machine's capacity."""

KINDS = {
    "policies": "policy",
    "predictors": "runtime",
    "adjusters": "adjustment",
    "bounders": "wait-bound",
    "sources": "mode",
}
"""Kinds of components that a user can name, each with the option that selects a component of this kind."""
