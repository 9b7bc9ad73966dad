"""What a foreign container tries on one network, as JSON: each attempt and its end. It is told the network."""

import asyncio
import base64
import json
import socket
import sys
import urllib.error
import urllib.request
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.protocol.metadata import MetadataRequest

PATIENCE = 4.0
SCRAM: dict[str, Any] = {
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "replayer",
    "sasl_plain_password": "replayer",
}
PLAIN: dict[str, Any] = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "admin", "sasl_plain_password": "admin"}
STORE, GATE, GRAFANA = "http://victoria-metrics:8428", "http://vmauth:8427", "http://grafana:3000"
SAMPLE = b'{"metric":{"__name__":"fake"},"values":[1],"timestamps":[1]}'


async def kafka(port: int = 9092, **login: Any) -> str:
    """Ask for the topics: whoever may not even do that neither publishes nor reads."""
    security = {"security_protocol": "SASL_PLAINTEXT" if login else "PLAINTEXT", **login}
    try:
        async with asyncio.timeout(PATIENCE):
            connection = await create_conn("kafka", port, **security)
            answer = await connection.send(MetadataRequest(None, False))
            return f"DONE {len(answer.topics)} topics"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'hung up'}"


def redis(*lines: str) -> str:
    try:
        with socket.create_connection(("redis", 6379), PATIENCE) as connection, connection.makefile("rb") as stream:
            for line in lines:
                connection.sendall(line.encode() + b"\r\n")
                said = stream.readline().decode().strip()
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return said.removeprefix("-") if said.startswith("-") else f"DONE {said}"


def http(url: str, body: bytes | None = None, user: str | None = None) -> str:
    headers = {} if user is None else {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=PATIENCE) as answer:
            return f"DONE {answer.status}"
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return f"{type(error).__name__}: {error}"


ATTEMPTS: dict[str, dict[str, Any]] = {
    "kafka": {
        "publish and read, as nobody": lambda: asyncio.run(kafka()),
        "publish and read, as replayer with a guess": lambda: asyncio.run(kafka(**SCRAM)),
        "publish and read, as admin by PLAIN": lambda: asyncio.run(kafka(**PLAIN)),
        "the broker's own listener": lambda: asyncio.run(kafka(9094, **PLAIN)),
        "the controller": lambda: asyncio.run(kafka(9093, **PLAIN)),
    },
    "redis": {
        "FLUSHALL": lambda: redis("FLUSHALL"),
        "FLUSHALL, as scheduler with a guess": lambda: redis("AUTH scheduler scheduler", "FLUSHALL"),
        "KEYS *": lambda: redis("KEYS *"),
        "CONFIG GET *": lambda: redis("CONFIG GET *"),
    },
    "store": {
        "VictoriaMetrics: write a sample": lambda: http(f"{STORE}/api/v1/import", SAMPLE),
        "VictoriaMetrics: delete_series": lambda: http(f"{STORE}/api/v1/admin/tsdb/delete_series?match[]=up", b""),
        "VictoriaMetrics: query": lambda: http(f"{STORE}/api/v1/query?query=up"),
        "VictoriaMetrics: snapshot": lambda: http(f"{STORE}/snapshot/create"),
        "VictoriaMetrics: its own figures": lambda: http(f"{STORE}/metrics"),
    },
    "results": {
        "vmauth: write a sample": lambda: http(f"{GATE}/store/api/v1/import", SAMPLE),
        "vmauth: delete_series": lambda: http(f"{GATE}/api/v1/admin/tsdb/delete_series?match[]=up", b""),
        "vmauth: query": lambda: http(f"{GATE}/api/v1/query?query=up"),
        "vmauth: query, with a guess": lambda: http(f"{GATE}/api/v1/query?query=up", user="store-reader:store-reader"),
        "vmauth: read its configuration anew": lambda: http(f"{GATE}/-/reload"),
        "vmauth: flags": lambda: http(f"{GATE}/flags"),
        "Grafana: push to Live": lambda: http(f"{GRAFANA}/api/live/push/shadowtime", b"decision,run=x job=1i 1"),
        "Grafana: push to Live, admin:admin": lambda: http(
            f"{GRAFANA}/api/live/push/shadowtime", b"decision,run=x job=1i 1", "admin:admin"
        ),
        "Grafana: its API": lambda: http(f"{GRAFANA}/api/org"),
    },
    "front": {
        "Grafana, beside it": lambda: http(f"{GRAFANA}/api/health"),
        "the live page, beside it": lambda: http("http://live:6080/health"),
        "a way out": lambda: http("http://1.1.1.1/"),
    },
}
ATTEMPTS["scrape"] = ATTEMPTS["store"]

if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: attempt() for name, attempt in ATTEMPTS[sys.argv[1]].items()}))
