"""Make `.env` for `docker compose` from `.env.example`, for whoever changes something in it.

Run as `python -m shadowtime.stack.compose.env`.

Nothing needs it to run: docker-compose.yml has the same values, and secrets are made by its first container. It takes
the standard library alone: whoever has Docker need not have the development environment.
"""

import argparse
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def main(folder: Path = CHECKOUT) -> int:
    """Write `.env`, for the owner's eyes only, unless there is one."""
    written = folder / ".env"
    try:
        written.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        sys.stdout.write(f"{written} is there already; it stays as it is\n")
        return 0

    written.write_text((folder / ".env.example").read_text())
    sys.stdout.write(f"wrote {written}\n")
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.env", description=__doc__).parse_args()
    sys.exit(main())
