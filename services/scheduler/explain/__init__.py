"""Explanations of waiting jobs: the reasons of a wait, and requests that would start the job sooner."""

from shadowtime.services.scheduler.explain.stage import Explaining, Following
