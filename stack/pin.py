"""Pin the images of docker-compose.yml by digest: `python -m shadowtime.stack.pin [FILE]`.

`skopeo` resolves every tag in FILE, by default `.env`, and its digest is written behind the tag:
`KAFKA_VERSION=4.3.1@sha256:…`. From then on the engine uses this image only, even if the tag moves. A second run
resolves the tags anew and reports those that have moved. If one tag cannot be resolved, FILE is not changed and the
exit status is 2.
"""

import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from shadowtime.shared.cli import ROOT, run_app
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.quoting import one_line, quote

IMAGE = re.compile(r"^\s*(?:image:|FROM)\s+(?!shadowtime)([a-z0-9][a-z0-9._/:-]*):\$\{(\w+)(?::-[^}]*)?\}", re.M)
"""An image from a registry and the variable of its version. Images with names that begin with `shadowtime` are built
here and are not matched."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
SECONDS = 60.0
MAX_SHOWN = 300
"""Number of the last characters of skopeo's errors that are shown."""


class PinError(ShadowtimeError):
    """An image's tag could not be resolved."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the digests into the file. Return the exit status."""
    summary, *_ = (__doc__ or "").partition(":")
    parser = ArgumentParser("python -m shadowtime.stack.pin", description=f"{summary}.")
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / ".env", help="file of the versions (.env)")
    file = parser.parse_args(arguments).file
    reports = []
    try:
        text = file.read_text()
        for variable, name in images().items():
            tag, before = version(text, variable)
            digest = resolve(f"{name}:{tag}")
            moved = f" (was {before})" if before not in ("", digest) else ""
            reports.append(f"{name}:{tag} is {digest}{moved}\n")
            text = re.sub(rf"^{variable}=.*$", f"{variable}={tag}@{digest}", text, flags=re.MULTILINE)

        file.write_text(text)
    except (ShadowtimeError, OSError) as error:
        sys.stderr.write(f"error: {one_line(str(error))}; {file} stays as it is\n")
        return 2

    sys.stdout.writelines(reports)
    return 0


def images() -> dict[str, str]:
    """Return the images that docker-compose.yml and the Dockerfiles pull from registries, by variable of `.env`."""
    files = [ROOT / "docker-compose.yml", *ROOT.glob("*/Dockerfile"), *ROOT.glob("*/*.Dockerfile")]
    return {variable: name for file in files for name, variable in IMAGE.findall(file.read_text())}


def version(env: str, variable: str) -> tuple[str, str]:
    """Return the tag and the digest of an image's version; the digest is empty if it is not pinned.

    Raise `PinError` if `env` has no line for the variable.

    >>> version("REDIS_VERSION=7.4", "REDIS_VERSION"), version("REDIS_VERSION=7.4@sha256:0", "REDIS_VERSION")
    (('7.4', ''), ('7.4', 'sha256:0'))
    """
    match = re.search(rf"^{variable}=([^\s@]+)(?:@(\S*))?$", env, re.MULTILINE)
    if match is None:
        raise PinError(f"expected a line {variable}=TAG and found none")
    return match[1], match[2] or ""


def resolve(image: str) -> str:
    """Return the current digest of an image's tag. For an image of several architectures it covers all of them.

    Raise `PinError` if skopeo is not on PATH, fails, or does not answer within `SECONDS`.
    """
    command = ["skopeo", "inspect", "--no-tags", "--format", "{{.Digest}}", f"docker://{image}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    except FileNotFoundError as error:
        raise PinError("skopeo is not on PATH (apt-get install skopeo, or see docs/supply-chain.md)") from error
    except subprocess.TimeoutExpired as error:
        raise PinError(f"skopeo found no digest of {image} within {SECONDS:.0f} s") from error

    return digest_in(image, done.returncode, done.stdout, done.stderr)


def digest_in(image: str, status: int, output: str, errors: str) -> str:
    """Return the digest of an image in the output of skopeo. Raise `PinError` if skopeo failed or printed none."""
    if status:
        reason = errors.strip()[-MAX_SHOWN:] or f"it ended with status {status}"
        raise PinError(f"skopeo found no digest of {image}: {reason}")
    digest = output.strip()
    if not DIGEST.fullmatch(digest):  # `errors` may have a warning, which is not the reason
        raise PinError(f"skopeo found no digest of {image}: expected sha256:…, found {quote(digest)}")
    return digest


if __name__ == "__main__":
    run_app(lambda: sys.exit(main()))
