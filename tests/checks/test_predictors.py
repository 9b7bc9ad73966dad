"""Every predictor, adjuster and bounder keeps what such a one keeps; a new one is tested by being listed."""

from shadowtime.testing import conformance

TestPredictors = conformance("predictors")
TestAdjusters = conformance("adjusters")
TestBounders = conformance("bounders")
