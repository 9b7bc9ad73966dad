"""The health checks of containers: `python -m shadowtime.stack.compose.health URL` requests a health page.

`docker inspect` shows the output: the page's text, or that nothing answers yet. The check runs every few seconds in
every container, so it needs only the standard library.
"""

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

PATIENCE = 9.0
"""Timeout in seconds. docker-compose.yml allows 10 for the whole check."""


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0 if the page answers with success, 1 if not, 2 for wrong arguments."""
    if len(arguments) != 1 or not arguments[0].startswith("http://"):
        sys.stderr.write("usage: python -m shadowtime.stack.compose.health http://HOST:PORT/PATH\n")
        return 2
    (url,) = arguments
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:  # noqa: S310
            text, well = page.read().decode(), True
    except urllib.error.HTTPError as error:
        text, well = error.read().decode(), False
    except OSError as error:
        text, well = f"starting: nothing answers at {url} yet: {getattr(error, 'reason', error)}", False

    sys.stdout.write(f"{text}\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
