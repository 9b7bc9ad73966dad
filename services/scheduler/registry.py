"""All policies by name, and the recommended configuration."""

from shadowtime.services.scheduler.policies import AllReserve, Conservative, Easy, EasySjbf, Fcfs, Guarded, Lwf, Wfp
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.probabilistic import Probabilistic
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.slurm import Slurm
from shadowtime.services.scheduler.tuned import Tuned
from shadowtime.shared.spec import Registry

CAUTIOUS = (
    "probabilistic:tau=1,criterion=gain,candidates=spf,accept_easy_safe=yes,patience=0.8,mass=censor,points=4,"
    "recalibrate=stated,runtime=empirical"
)

RECOMMENDED: dict[str, str] = {"best": "tuned:runtime=empirical", "cautious": CAUTIOUS}
"""SPECs that the project recommends, predictor included, by name. Chosen by the protocol of docs/choosing-best.md."""

OBJECTIVES: dict[str, str] = {"slowdown": "best", "wait": "best", "fairness": "cautious"}
"""The recommendation for each objective: mean bounded slowdown, mean wait, mean wait of the user who waits longest."""

AIMS: dict[str, str] = {"best": "", "cautious": " where requests must hold for the job at the head of the queue"}
"""Purpose of each recommendation."""

POLICIES: Registry[Policy] = Registry(
    "policy",
    [Fcfs, Lwf, Easy, EasySjbf, AllReserve, Conservative, Wfp, Probabilistic, Guarded, Tuned, Slurm],
    aliases=list(RECOMMENDED),
    common=["runtime", "adjustment"],
    group="policies",
    base=Policy,
    settings=PolicySettings,
)
