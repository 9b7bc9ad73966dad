"""All policies by name, and the one that the project recommends."""

from services.scheduler.easy import Easy, EasySjbf
from services.scheduler.fcfs import Fcfs
from services.scheduler.policy import Policy
from services.scheduler.probabilistic import Probabilistic
from shared.spec import Registry

POLICIES: Registry[Policy] = Registry(
    "policy", [Fcfs, Easy, EasySjbf, Probabilistic], aliases=["best"], common=["runtime", "adjustment"]
)

BEST = "easy-sjbf:runtime=last-two(fallback=request)"
"""What `--policy best` stands for: the recommended configuration, predictor included."""
