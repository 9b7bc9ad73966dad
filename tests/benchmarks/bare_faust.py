"""A bare faust agent, the yardstick of the stages: every message of one topic goes to another, nothing else."""

import asyncio
import sys

import faust
import uvloop


def main(bootstrap: str, folder: str) -> None:
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    app = faust.App(
        "bare-faust",
        broker=f"kafka://{bootstrap}",
        value_serializer="raw",
        key_serializer="raw",
        store="memory://",
        datadir=folder,
        topic_disable_leader=True,
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=1.0,
        web_enabled=False,
        worker_redirect_stdouts=False,
    )
    source, sink = app.topic("bare-in"), app.topic("bare-out")

    @app.agent(source, concurrency=1)
    async def forward(stream: faust.StreamT[bytes]) -> None:
        async for event in stream.events():
            await sink.send(key=event.key, value=event.value, partition=event.message.partition)

    faust.Worker(app, loglevel="ERROR", redirect_stdouts=False, quiet=True).execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
