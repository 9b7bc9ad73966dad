"""Log lines that name the run, sequence, partition and offset they are about, as text or as JSON."""

import logging
import sys

import orjson

FIELDS = ("stage", "run", "sequence", "partition", "offset")


class StructuredFormatter(logging.Formatter):
    """Formats a record with the fields that were given as `extra`."""

    def __init__(self, *, json: bool, stage: str | None = None) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._json = json
        self._stage = stage

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a traceback follows it, or is a field of it."""
        about = {"stage": self._stage} | {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        about = {name: value for name, value in about.items() if value is not None}
        if not self._json:
            line = super().format(record)
            told = _printable(" ".join(f"{name}={value}" for name, value in about.items()))
            return f"{line} {told}" if about else line
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
    r"""Return a text with line breaks, and whatever else a terminal would obey, written out: names come from anywhere.

    >>> print(_printable("kth\x1b[2J\n"))
    kth\x1b[2J\n
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def start_logging(log_format: str, stage: str | None = None, level: int = logging.INFO) -> None:
    """Send everything from `level` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(StructuredFormatter(json=log_format == "json", stage=stage))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("aiokafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
