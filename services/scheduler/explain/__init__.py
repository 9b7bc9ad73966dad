"""Why a job waits, and what would start it sooner."""

from shadowtime.services.scheduler.explain.stage import Explaining, Following
