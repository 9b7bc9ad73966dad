"""A log line is one line, whatever somebody called a run."""

import logging

import orjson
import pytest
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)

from shadowtime.shared.cli.logs import StructuredFormatter, start_logging

HOSTILE = "kth\n2026-01-01 ERROR forged\x1b[2J\x9b31m\u202e"


def record_of(run: str) -> logging.LogRecord:
    record = logging.LogRecord("shadowtime", logging.ERROR, "", 0, "dead letter: %s", (f"of {run}",), None)
    record.run = run
    return record


def test_names_forge_no_lines_and_reach_no_terminal() -> None:
    line = StructuredFormatter(json=False, stage="scheduler").format(record_of(HOSTILE))
    assert line.isprintable()
    assert line.count(r"kth\n2026-01-01 ERROR forged\x1b[2J\x9b31m\u202e") == 2
    assert "stage=scheduler" in line


@pytest.mark.parametrize("json", [False, True])
def test_what_can_be_printed_is_printed_as_it_is(json: bool) -> None:
    line = StructuredFormatter(json=json).format(record_of("kth/easy ü"))
    assert "run=kth/easy ü" in line or orjson.loads(line)["run"] == "kth/easy ü"


@pytest.mark.parametrize(
    ("logger", "error", "told"),
    [
        ("aiokafka.consumer.fetcher", NotLeaderForPartitionError(), False),
        ("aiokafka.consumer.group_coordinator", GroupCoordinatorNotAvailableError(), False),
        ("aiokafka.consumer.group_coordinator", GroupCoordinatorNotAvailableError, False),
        ("aiokafka.consumer.fetcher", TopicAuthorizationFailedError(), True),
        ("aiokafka", KafkaConnectionError("refused"), True),
        ("shadowtime.worker", NotLeaderForPartitionError(), True),
    ],
)
def test_what_kafka_asks_to_be_asked_again_for_is_no_error(
    logger: str, error: object, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """As while a topic or a group is being made; that Kafka is away, or refuses, a user should know."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        start_logging("text")
        logging.getLogger(logger).error("Failed fetch offsets from %s: %s", 1, error)
    finally:
        root.handlers[:], root.level = before
    assert bool(capsys.readouterr().err) == told
