"""Every policy keeps what a policy keeps; a new one is tested by being listed."""

from shadowtime.testing import conformance

TestPolicies = conformance("policies")

TestOrders = conformance(
    "policies",
    "easy:queue=srf,candidates=saf,threshold=9,by=predicted,plan=requested",
    "easy:queue=gittins,candidates=R,by=expected",
    "probabilistic:queue=wfp3,threshold=9,tau=0.5,budget=0.9,patience=1,mass=censor,by=expected",
    "conservative:queue=saved,candidates=exp,guarantees=no,by=expected",
    "all-reserve:queue=unicep,candidates=lcfs,by=request",
)
"""Under orders that cross each other."""

TestRecalibrated = conformance("policies", "probabilistic:tau=1,criterion=gain,mass=censor,points=4,recalibrate=yes")
"""Where a policy decides by the recalibrated probability."""
