"""Pin the images of docker-compose.yml by digest: `python -m shadowtime.stack.pin [FILE] [--registry URL]`.

Every registry is asked what the tags in FILE, by default `.env`, stand for now, and the digests are written behind
them: `KAFKA_VERSION=4.3.1@sha256:…`. From then on the engine takes no other image, whatever becomes of the
tag. Run again, it asks anew, and says which tags have moved. If one question stays without an answer, FILE stays as it
is and the exit status is 2.
"""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from shadowtime.shared.command_line import one_line, run_app
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.paths import ROOT
from shadowtime.stack.images import Image, read_images
from shadowtime.stack.registry import DOCKER_HUB, digest_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pins; return the exit status."""
    summary, *_ = (__doc__ or "").partition(":")
    parser = ArgumentParser("python -m shadowtime.stack.pin", description=f"{summary}.")
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / ".env", help="what holds the versions (.env)")
    parser.add_argument(
        "--registry", metavar="URL", default=DOCKER_HUB, help="whom to ask for images of Docker Hub: a mirror of it"
    )
    told = parser.parse_args(arguments)
    file = told.file.resolve()
    try:
        images = read_images(file)
        digests = {image: digest_of(image.name, image.tag, told.registry.rstrip("/")) for image in images}
        write_pins(file, digests)
    except (ShadowtimeError, OSError) as error:
        sys.stderr.write(f"error: {one_line(str(error))}; {file} stays as it is\n")
        return 2
    for image, digest in digests.items():
        moved = f" (was {image.digest})" if image.digest not in (None, digest) else ""
        sys.stdout.write(f"{image.reference} is {digest}{moved}\n")
    return 0


def write_pins(file: Path, digests: dict[Image, str]) -> None:
    """Write the digests behind the tags in `file`, all or none; it keeps its mode."""
    text = file.read_text()
    for image, digest in digests.items():
        text = re.sub(rf"^{image.variable}=.*$", f"{image.variable}={image.tag}@{digest}", text, flags=re.MULTILINE)
    with NamedTemporaryFile("w", dir=file.parent, prefix=f"{file.name}.", delete=False) as part:
        try:
            part.write(text)
            os.fchmod(part.fileno(), file.stat().st_mode & 0o777)
            part.flush()
            os.replace(part.name, file)
        except BaseException:
            os.unlink(part.name)
            raise


if __name__ == "__main__":
    run_app(lambda: sys.exit(main()))
