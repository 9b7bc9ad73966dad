"""Options that users choose from, spelled as users type them."""

from typing import Literal

Oversized = Literal["drop", "align"]
Requests = Literal["as-logged", "actual", "doubled"]
Transport = Literal["embedded", "kafka"]
YesNo = Literal["yes", "no"]

DEFAULT_LOAD = 0.6
"""Of a generated log, as a share of the machine."""

KINDS = {
    "policies": "policy",
    "predictors": "runtime",
    "adjusters": "adjustment",
    "bounders": "wait-bound",
    "sources": "mode",
}
"""Kinds of what a user can name, and the option that names one of each."""
