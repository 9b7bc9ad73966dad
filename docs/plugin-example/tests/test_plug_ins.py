"""The policy and the predictor keep what those of Shadowtime keep."""

from shadowtime.testing import conformance

TestPolicy = conformance("policies", "first-fit")
TestPredictor = conformance("predictors", "usual-share")
