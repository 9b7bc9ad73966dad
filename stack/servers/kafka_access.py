"""Set-up of Kafka's users and their rights: SCRAM credentials and ACLs, through its controller.

aiokafka has no client for users, so this module defines that request of the protocol. The set-up can be repeated: it
sets the passwords again, and removes obsolete rights.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.admin import CreateAclsRequest_v1, DeleteAclsRequest_v1, DescribeAclsRequest_v1
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactBytes, CompactString, Int8, Int16, Int32, Schema, TaggedFields

from shadowtime.stack.roles import Binding
from shadowtime.stack.servers.server import ServerError

ITERATIONS = 4_096
"""Kafka's minimum. More rounds add no protection, because the passwords have at least 128 random bits."""

SCRAM_SHA_512 = 2
RESOURCES = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4}
PATTERNS = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS = {"READ": 3, "WRITE": 4, "CREATE": 5, "DESCRIBE": 8}
ANY, ALLOW = 1, 3


class _UsersAltered(Response):  # type: ignore[misc]
    API_KEY = 51
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            CompactArray(
                ("user", CompactString("utf-8")),
                ("error_code", Int16),
                ("error_message", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _AlterUsers(RequestStruct):  # type: ignore[misc]
    """Kafka's request AlterUserScramCredentials."""

    FLEXIBLE_VERSION = True
    API_KEY = 51
    API_VERSION = 0
    RESPONSE_TYPE = _UsersAltered
    SCHEMA = Schema(
        (
            "deletions",
            CompactArray(("name", CompactString("utf-8")), ("mechanism", Int8), ("tags", TaggedFields)),
        ),
        (
            "upsertions",
            CompactArray(
                ("name", CompactString("utf-8")),
                ("mechanism", Int8),
                ("iterations", Int32),
                ("salt", CompactBytes),
                ("salted_password", CompactBytes),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _Made(Request[Any]):  # type: ignore[misc]
    """A request with a fixed version."""

    API_KEY = -1

    def __init__(self, request: RequestStruct) -> None:
        self._request = request

    def build(self, request_struct_class: type[Any]) -> RequestStruct:
        return self._request

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> RequestStruct:
        return self._request


async def grant(
    host: str, port: int, login: Mapping[str, Any], passwords: Mapping[str, str], acls: Sequence[Binding]
) -> None:
    """Set the users and the rights of a Kafka whose controller listens at `host` and `port`.

    Parameters
    ----------
    login
        Login at the controller, as keyword arguments of aiokafka's clients.
    passwords
        Passwords by user.
    acls
        All rights. Any other ACL is removed.

    Raise `ServerError` if Kafka cannot be reached, or rejects a request.
    """
    users = [_user(name, password) for name, password in passwords.items()]
    try:
        connection = await create_conn(host, port, **login)
        try:
            altered = await connection.send(_Made(_AlterUsers([], users, {})))
            refused = [(f"user {name}", code, reason) for name, code, reason, _ in altered.results if code]
            created = await connection.send(_Made(CreateAclsRequest_v1([_acl(acl) for acl in acls])))
            answers = zip(acls, created.creation_responses, strict=True)
            refused += [(f"ACL {' '.join(answer)}", code, reason) for answer, (code, reason) in answers if code]
            # Remove obsolete ACLs last, each by its exact value: running clients keep every right that stays.
            there = await connection.send(_Made(DescribeAclsRequest_v1(ANY, None, ANY, None, None, ANY, ANY)))
            rules = {(kind, name, pattern, *rule) for kind, name, pattern, some in there.resources for rule in some}
            if old := sorted(rules - {_acl(acl) for acl in acls}):
                deleted = await connection.send(_Made(DeleteAclsRequest_v1(old)))
                refused += [("removal of an ACL", code, reason) for code, reason, _ in deleted.filter_responses if code]
        finally:
            await connection.close()
    except (KafkaError, OSError, TimeoutError) as error:
        raise ServerError(f"kafka: users and rights cannot be set: {error}") from error

    for what, code, reason in refused:
        raise ServerError(f"kafka rejects {what}: {reason or for_code(code).__name__}")


def _user(name: str, password: str) -> tuple[Any, ...]:
    salt = secrets.token_bytes(32)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    return name, SCRAM_SHA_512, ITERATIONS, salt, salted, {}


def _acl(binding: Binding) -> tuple[Any, ...]:
    resource, pattern, operation = RESOURCES[binding.resource], PATTERNS[binding.pattern], OPERATIONS[binding.operation]
    return resource, binding.name, pattern, binding.principal, "*", operation, ALLOW
