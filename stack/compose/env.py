"""Make `.env` for `docker compose` from `.env.example`, for users who want to change a value.

Run as `python -m shadowtime.stack.compose.env`.

Compose also runs without `.env`: docker-compose.yml has the same values, and its first container makes the secrets.
This module needs only the standard library, so that it runs without the development environment.
"""

import argparse
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def main(folder: Path = CHECKOUT) -> int:
    """Write `.env`, readable by its owner only, unless it exists. Return the exit status, which is 0."""
    written = folder / ".env"
    try:
        written.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        sys.stdout.write(f"{written} exists already; it was not changed\n")
        return 0

    written.write_text((folder / ".env.example").read_text())
    sys.stdout.write(f"wrote {written}\n")
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.env", description=__doc__).parse_args()
    sys.exit(main())
