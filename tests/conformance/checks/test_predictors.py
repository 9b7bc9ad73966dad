"""Every predictor, adjuster and bounder keeps what such a one keeps; a new one is tested by being listed."""

from shadowtime.testing import conformance

TestPredictors = conformance("predictors")
TestAdjusters = conformance("adjusters")
TestBounders = conformance("bounders")

TestPublished = conformance("bounders", *(f"bmbp:publish={name}" for name in ("nodes", "ensemble", "conformal")))
"""Where one bound is published."""
