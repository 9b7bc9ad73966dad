"""Control of servers beyond start and stop: tests pause them, and let VictoriaMetrics show its samples."""

import os
import signal

from shadowtime.stack.servers.servers import Server, VictoriaMetrics


def pause(server: Server) -> None:
    """Suspend a server by SIGSTOP. Connections stay open, but requests are not answered."""
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def resume(server: Server) -> None:
    """Resume a paused server."""
    os.kill(server.pid, signal.SIGCONT)


def reset_rollup_cache(store: VictoriaMetrics) -> None:
    """Drop cached query results. This is needed after writing samples that are older than a few minutes."""
    store.get("/internal/resetRollupResultCache")


def flush(store: VictoriaMetrics) -> None:
    """Write every sample and its index to disk, so that they survive a kill, and make them visible to queries.

    Without this call it takes up to ten seconds. (`/internal/force_flush` leaves the index in memory; a snapshot
    does not.)
    """
    store.get("/internal/force_flush")
    store.get("/snapshot/create")
    store.get("/snapshot/delete_all")
