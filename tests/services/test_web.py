"""What is served on the loopback is for this machine alone: no page from elsewhere reads it by a name of its own."""

import asyncio
import inspect

import aiohttp
import pytest
from aiohttp import web

from services import __main__ as commands
from services import ask, metrics
from services.answers import Answers
from services.live import LivePage
from services.live_view import LiveRuns
from services.metrics_health import MetricsHealth
from services.pipeline import STAGES
from services.web import address_of, listening
from stack.plan import Plan
from tests.services.test_ask import STAGE
from tests.shared.test_run_follower import MemoryReader

ELSEWHERE = ("evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "0.0.0.0", "[", "[::1", "")
HERE = ("127.0.0.1", "127.0.0.1:99", "LOCALHOST", "localhost:6080", "[::1]:6080")


async def _there() -> None:
    pass


APPLICATIONS = {
    "ask": lambda: ask.application(Answers(STAGE, MemoryReader()), _there),
    "live": lambda: LivePage(LiveRuns()).application(),
    "metrics": lambda: metrics.application(MetricsHealth()),
}


async def answers(application: web.Application, listens: str, hosts: tuple[str, ...]) -> list[tuple[int, str]]:
    async with listening(application, listens, 0) as runner, aiohttp.ClientSession() as session:
        port = address_of(runner).rstrip("/").rpartition(":")[2]
        found = []
        for host in hosts:
            async with session.get(f"http://127.0.0.1:{port}/health", headers={"Host": host}) as response:
                found.append((response.status, await response.text()))
        return found


@pytest.mark.parametrize("name", APPLICATIONS)
def test_on_the_loopback_it_answers_to_localhost_alone(name: str) -> None:
    told = asyncio.run(answers(APPLICATIONS[name](), "127.0.0.1", ELSEWHERE + HERE))
    assert [status for status, _ in told] == [421] * len(ELSEWHERE) + [200] * len(HERE)
    assert all("this is for this machine alone" in text for _, text in told[: len(ELSEWHERE)])


@pytest.mark.parametrize("name", APPLICATIONS)
def test_elsewhere_it_answers_to_any_name(name: str) -> None:
    told = asyncio.run(answers(APPLICATIONS[name](), "0.0.0.0", ("shadowtime.example", "10.0.0.5:6080")))
    assert [status for status, _ in told] == [200, 200]


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_what_listens_gets_in_nobodys_way_by_default(workers: int) -> None:
    plan = Plan("/tmp/stack", tuple(stage.name for stage in STAGES), workers)
    asked = inspect.signature(commands.ask).parameters["port"].default
    assert inspect.signature(commands.live).parameters["port"].default == plan.live_port
    ports = [*(worker.port for worker in plan.make_workers()), plan.live_port, asked]
    assert len(ports) == len(set(ports))
