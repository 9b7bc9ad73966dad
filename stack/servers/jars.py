"""Kafka's jars, fetched by Maven and checked against `stack/kafka/SHA256SUMS`.

`python -m shadowtime.stack.servers.jars` rewrites that list from the jars that Maven downloads for
`stack/kafka/pom.xml`. Run it after a change of the pom, and review the diff before you commit it. It downloads all jars
from the repository and does not use Maven's own cache.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from shadowtime.shared.cli import ROOT, run_app
from shadowtime.stack.servers.checksums import faults, read_sums, sha256
from shadowtime.stack.servers.commands import run
from shadowtime.stack.servers.server import ServerError

SOURCE = Path(__file__).parents[1] / "kafka"
POM = SOURCE / "pom.xml"
SUMS = SOURCE / "SHA256SUMS"
HEAD = (
    "# The jars of pom.xml for `sha256sum --check`, each below its coordinates; "
    "made by python -m shadowtime.stack.servers.jars\n"
)


def kafka_version() -> str:
    """Return the version of Kafka that pom.xml pins. Raise `ServerError` if it pins none."""
    match = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", POM.read_text())
    if match is None:
        raise ServerError(f"{POM}: the property kafka.version is missing")
    return match[1]


def jar_folder() -> Path:
    """Return the folder of the broker's jars: below SHADOWTIME_SERVERS, else below `.servers` in the checkout."""
    servers = os.environ.get("SHADOWTIME_SERVERS") or ROOT / ".servers"
    return Path(servers).resolve() / f"kafka-{kafka_version()}"


def jar_faults(folder: Path) -> list[str]:
    """Return a line for each jar in `folder` that is missing, additional or differs from SHA256SUMS."""
    return faults(folder, read_sums(SUMS), ".jar")


def fetch_jars(folder: Path) -> None:
    """Fill `folder` with the jars of the broker, all of them or none.

    Raise `ServerError` if the jars cannot be downloaded or written, or if one differs from the list.
    """
    if not jar_faults(folder):
        return
    sys.stdout.write(f"kafka: fetching the jars of {kafka_version()} into {folder}\n")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, suffix=".part", ignore_cleanup_errors=True) as part:
            jars = Path(part) / folder.name
            _copy_jars(jars)
            if faults := jar_faults(jars):
                raise ServerError("\n".join([f"the jars that Maven fetched differ from {SUMS}:", *faults]))
            if folder.exists():
                folder.rename(Path(part) / "replaced")
            jars.rename(folder)
    except OSError as error:
        raise ServerError(f"cannot write {folder}: {error}") from error


def _copy_jars(folder: Path, *options: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError("kafka's jars are fetched by mvn, which is not on PATH (apt-get install maven)")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", *options, f"-DoutputDirectory={folder}"]
    run([maven, "--quiet", "--batch-mode", "--strict-checksums", "--file", str(POM), *goal])


def main(arguments: Sequence[str] = ()) -> int:
    """Write the list of digests. Return the exit status."""
    if arguments:
        sys.stderr.write(f"python -m shadowtime.stack.servers.jars takes no arguments: {' '.join(arguments)}\n")
        return 2
    try:
        with TemporaryDirectory() as name:
            jars, cache = Path(name) / "jars", Path(name) / "cache"
            _copy_jars(jars, "-Dmdep.useRepositoryLayout=true", f"-Dmaven.repo.local={cache}")
            lines = sorted(_line(jar, jars) for jar in jars.rglob("*.jar"))

        before = read_sums(SUMS) if SUMS.exists() else {}
        SUMS.write_text(HEAD + "".join(lines))
    except (ServerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1

    after = read_sums(SUMS)
    for jar in sorted(before.keys() | after.keys()):
        if before.get(jar) != after.get(jar):
            what = "changed" if jar in before and jar in after else "new" if jar in after else "gone"
            sys.stdout.write(f"{jar}: {what}\n")

    sys.stdout.write(f"{SUMS} names {len(after)} jars\n")
    return 0


def _line(jar: Path, repository: Path) -> str:
    *group, artifact, version, file = jar.relative_to(repository).parts
    return f"# {'.'.join(group)}:{artifact}:{version}\n{sha256(jar)}  {file}\n"


if __name__ == "__main__":
    run_app(lambda: sys.exit(main(sys.argv[1:])))
