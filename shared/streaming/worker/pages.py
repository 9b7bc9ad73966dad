"""The pages of every worker: `/health` for supervisors, `/metrics` for scraping."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def worker_pages(health: Callable[[], tuple[bool, dict[str, Any]]], registry: CollectorRegistry) -> web.Application:
    """Return the HTTP application of the pages.

    Parameters
    ----------
    health
        Returns whether the process is healthy (status 200, else 503), and the content of the page.
    registry
        The metrics to scrape.
    """

    async def healthy(request: web.Request) -> web.Response:
        well, text = health()
        return web.json_response(text, status=200 if well else 503, headers=SAFE)

    async def scrape(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers=SAFE | {"Content-Type": CONTENT_TYPE_LATEST})

    made = web.Application(middlewares=[_on_one_line])
    made.add_routes([web.get("/health", healthy), web.get("/metrics", scrape)])
    return made


@web.middleware
async def _on_one_line(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.Response(status=error.status, text=f"{error.reason}\n", headers=SAFE)
