"""What web servers write to the log: a line for a request that is none, without a traceback, and few of a kind."""

import logging

from aiohttp.http_exceptions import HttpProcessingError

from shadowtime.shared.logs import FewAMinute
from shadowtime.shared.wording import quoted


class NoTraceback(logging.Filter):
    """Has a request that is none make a line that says so, not a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            remote = record.args[0] if isinstance(record.args, tuple) and record.args else None
            record.msg, record.args = "no request: %s from %s", (quoted(" ".join(error.message.split())), remote)
            record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        return True


log = logging.getLogger("shadowtime.web")
log.addFilter(NoTraceback())
log.addFilter(FewAMinute())
