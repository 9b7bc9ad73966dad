"""The health checks of containers: `python -m shadowtime.stack.compose.health URL` asks a page whether all is well.

What it says is in `docker inspect`: the page's own words, or that nothing answers yet. It runs every few seconds in
every container, and so takes the standard library alone.
"""

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

PATIENCE = 9.0
"""Seconds; docker-compose.yml gives the whole check 10."""


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the page answers with status 200, else 1."""
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
