"""A policy and a run-time predictor for Shadowtime."""
