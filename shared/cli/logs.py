"""Log lines, as text or as JSON, with fields for the run, sequence, partition and offset that they concern."""

import logging
import math
import re
import sys
from collections import OrderedDict

import orjson

FIELDS = ("stage", "run", "sequence", "partition", "offset")


class StructuredFormatter(logging.Formatter):
    """Formatter of log records that adds those of `FIELDS` that were passed as `extra`, and `stage` to each record."""

    def __init__(self, *, json: bool, stage: str | None = None) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._json = json
        self._stage = stage

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as one line. In text, a traceback follows the line; in JSON, it is a field."""
        about = {"stage": self._stage} | {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        about = {name: value for name, value in about.items() if value is not None}
        if not self._json:
            line = super().format(record)
            text = _printable(" ".join(f"{name}={value}" for name, value in about.items()))
            return f"{line} {text}" if about else line

        fields = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(fields | about).decode()

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line without its traceback."""
        return _printable(super().formatMessage(record))


def _printable(text: str) -> str:
    r"""Return a text with line breaks and control characters escaped: names come from untrusted sources.

    >>> print(_printable("kth\x1b[2J\n"))
    kth\x1b[2J\n
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def start_logging(log_format: str, stage: str | None = None, level: int = logging.INFO) -> None:
    """Write log records of `level` and above to standard error: as JSON if `log_format` is `json`, else as text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(StructuredFormatter(json=log_format == "json", stage=stage))
    handler.addFilter(of_use)
    handler.addFilter(OnceAMinute())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("aiokafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))


def of_use(record: logging.LogRecord) -> bool:
    """Return whether a record is of use to a user. Retriable errors of Kafka's client are not.

    A broker answers with such an error while a topic or a group is being created. The client logs it and retries.
    """
    arguments = record.args if isinstance(record.args, tuple) else ()
    again = any(getattr(error, "retriable", False) and getattr(error, "errno", None) is not None for error in arguments)
    return not (again and record.name.startswith("aiokafka"))


MAX_REMEMBERED = 1_000
"""Maximum number of different log lines that are remembered."""

_ADDRESS = re.compile(r"(?<=:|,) ?\d+|0x[0-9a-f]+")
"""Ports and addresses of objects. Lines that differ only in these are equal."""


class OnceAMinute(logging.Filter):
    """Filter that writes equal lines once a minute, with the number of lines left out. Tracebacks always pass.

    Examples
    --------
    >>> once = OnceAMinute()
    >>> at = lambda time: logging.makeLogRecord({"created": time, "msg": "Kafka is away"})
    >>> [record.getMessage() for record in (at(0), at(1), at(59), at(60), at(70)) if once.filter(record)]
    ['Kafka is away', 'Kafka is away (and 2 times in the last minute)']
    """

    def __init__(self) -> None:
        super().__init__()
        self._written: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written. The number of left-out records may be added to it."""
        if record.exc_info:
            return True
        key = record.name, _ADDRESS.sub("", record.getMessage())
        written, left_out = self._written.get(key, (-math.inf, 0))
        if 0 <= record.created - written < MINUTE:
            self._written[key] = written, left_out + 1
            return False
        if left_out:
            _add(record, f"and {left_out} times in the last minute")
        self._written[key] = record.created, 0
        self._written.move_to_end(key)
        if len(self._written) > MAX_REMEMBERED:
            self._written.popitem(last=False)
        return True


MINUTE = 60.0

MAX_LINES = 20
"""Maximum lines per minute of a logger that input from outside can trigger. Further lines are only counted."""


class FewAMinute(logging.Filter):
    """Filter that limits the lines of each minute, and reports the number of lines left out.

    Examples
    --------
    >>> few = FewAMinute(1)
    >>> at = lambda time: logging.makeLogRecord({"created": time, "msg": "refused"})
    >>> records = [at(0), at(1), at(2), at(3), at(60)]
    >>> for record in records:
    ...     if few.filter(record):
    ...         print(record.getMessage())
    refused
    refused (further lines of this minute are only counted)
    refused (2 lines before this one were left out)
    """

    def __init__(self, most: int = MAX_LINES) -> None:
        super().__init__()
        self._most = most
        self._minute = -1.0
        self._passed = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written. A remark about left-out lines may be added to it."""
        left_out = 0
        if (minute := record.created // 60) != self._minute:
            left_out, self._minute, self._passed = max(0, self._passed - self._most - 1), minute, 0
        self._passed += 1
        if left_out:
            _add(record, f"{left_out} lines before this one were left out")
        elif self._passed == self._most + 1:
            _add(record, "further lines of this minute are only counted")

        return self._passed <= self._most + 1


def _add(record: logging.LogRecord, remark: str) -> None:
    record.msg, record.args = f"{record.getMessage()} ({remark})", ()
