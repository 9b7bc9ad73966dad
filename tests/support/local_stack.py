"""Servers and workers as `shadowtime stack` starts them, below a folder of a test."""

import subprocess
import sys
from pathlib import Path

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE

FLOW = tuple(stage.name for stage in STAGES)


def stack(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shadowtime", "stack", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


def new_plan(folder: Path, stages: tuple[str, ...] = FLOW) -> StackPlan:
    servers = (free_port(), free_port(), free_port())
    return StackPlan(str(folder), stages, 1, *servers, free_port(len(STAGES) + 1), free_port())


def options(plan: StackPlan) -> list[str]:
    ports = ("kafka_port", "redis_port", "victoria_metrics_port", "web_port", "live_port")
    return ["--folder", plan.folder, *(f"--{port.replace('_', '-')}={getattr(plan, port)}" for port in ports)]
