"""Policies that more than one test of parity replays."""

REPLANNED = "conservative:queue=R/L,guarantees=no,speculate=0.8,test_runs=yes,shape=half,widen=yes"
