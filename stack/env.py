"""Make `.env` for `docker compose` from `.env.example`, with fresh passwords: `python -m stack.env`."""

import secrets
import sys
from pathlib import Path

from stack.worker import CHECKOUT

SECRETS = ("REDIS_PASSWORD", "GRAFANA_ADMIN_PASSWORD")


def with_secrets(example: str) -> str:
    """Return the text of `.env.example` with a password wherever one is missing.

    >>> len(with_secrets("REDIS_PASSWORD="))
    47
    >>> with_secrets("GRAFANA_PORT=3000")
    'GRAFANA_PORT=3000'
    """
    empty = {f"{name}=" for name in SECRETS}
    return "\n".join(line + secrets.token_hex(16) if line in empty else line for line in example.split("\n"))


def main(folder: Path = CHECKOUT) -> int:
    """Write `.env`, for the owner's eyes only, unless there is one."""
    written = folder / ".env"
    try:
        written.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        sys.stdout.write(f"{written} is there already; it stays as it is\n")
        return 0
    written.write_text(with_secrets((folder / ".env.example").read_text()))
    sys.stdout.write(f"wrote {written}; Grafana's user is admin, its password is in there\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
