"""Kafka's topics, users and rights as in `stack/roles.py`: `python -m shadowtime.stack.compose.kafka_rights FOLDER`.

docker-compose.yml runs it on the loopback of Kafka's container. `FOLDER` has a file for each password, named as in the
roles. The administrator's password is among the settings. The command may run at any time, also beside workers.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import SaslAuthenticationFailed
from aiokafka.protocol.metadata import MetadataRequest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli import run_app
from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming import Settings, read_settings, topic_admin
from shadowtime.shared.streaming import clients as bus
from shadowtime.stack.roles import KAFKA, Binding, kafka_acls, roles
from shadowtime.stack.servers import grant

SCRAM = "SCRAM-SHA-512"


async def prepare(settings: Settings, passwords: Mapping[str, str], bindings: list[Binding]) -> None:
    """Create missing topics, set passwords and rights, and wait until the broker applies them.

    Raises
    ------
    BusError
        If the broker does not apply them within `connect_seconds`. The controller's changes reach it with a delay.
    ServerError
        If Kafka rejects them.
    """
    await topic_admin.prepare_topics(settings)
    login = bus.connection(settings)
    host, _, port = login.pop("bootstrap_servers").rpartition(":")
    await grant(host, int(port), login, passwords, bindings)
    try:
        async with asyncio.timeout(settings.connect_seconds):
            for user, password in passwords.items():
                name = {"sasl_mechanism": SCRAM, "sasl_plain_username": user, "sasl_plain_password": password}
                topics = {
                    binding.name
                    for binding in bindings
                    if (binding.principal, binding.resource) == (f"User:{user}", "TOPIC")
                }
                while not topics <= await _shown(host, int(port), login | name):
                    await asyncio.sleep(0.2)
    except TimeoutError:
        waited = f"after {settings.connect_seconds:g} s"
        raise BusError(f"Kafka at {host}:{port} has not applied user {user!r} and its rights {waited}") from None


async def _shown(host: str, port: int, login: Mapping[str, Any]) -> set[str]:
    """Return the topics that Kafka shows to a user with this login; none if Kafka rejects it."""
    try:
        connection = await create_conn(host, port, **login)
    except SaslAuthenticationFailed:
        return set()

    try:
        answer = await connection.send(MetadataRequest(None, allow_auto_topic_creation=False))
        return {name for code, name, *_ in answer.topics if not code}
    finally:
        await connection.close()


def main() -> None:
    """Set up all roles that use Kafka, except the administrator."""
    parser = argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.kafka_rights", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with a file for each password")
    folder: Path = parser.parse_args().folder
    users = [role for role in roles([stage.name for stage in STAGES]) if KAFKA in role.servers and not role.administers]
    passwords = {role.name: (folder / role.secret(KAFKA)).read_text() for role in users}
    bindings = kafka_acls(users)
    asyncio.run(prepare(read_settings(), passwords, bindings))
    sys.stdout.write(f"kafka: {len(users)} users, {len(bindings)} rights\n")


if __name__ == "__main__":
    run_app(main)
