"""An archive of a broker's classes, which brokers of `make test` start from: `python -m tests.support.class_archive`.

It is made once for each Java and each Kafka, in 15 s; of the 10 s that a broker takes to start it saves 6, some fifty
times. Prints the options for Java, in the form of JDK_JAVA_OPTIONS. They live for a minute or two, so that to compile
their code well is not worth while.
"""

import asyncio
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from shadowtime.shared.streaming.kafka.topic_admin import prepare_topics
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.jars import jar_folder
from shadowtime.stack.servers.servers import Kafka

FOR_A_MINUTE = "-XX:TieredStopAtLevel=1"


class Archiving(Kafka):
    """A broker that writes, as it ends, which classes it has loaded."""

    into = Path()

    def _command(self) -> list[str]:
        java, *rest = super()._command()
        return [java, f"-XX:ArchiveClassesAtExit={self.into}", FOR_A_MINUTE, *rest]


def archive() -> Path:
    """Return where the archive is; it is made if there is none."""
    place = jar_folder()
    java, *_ = Kafka(place).java_command()
    version = subprocess.run([java, "-version"], capture_output=True, check=True).stderr
    made = place.with_name(f"{place.name}-{sha256(version).hexdigest()[:12]}.jsa")
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            broker = Archiving(Path(folder) / "kafka")
            broker.into = Path(folder) / made.name
            with broker:
                asyncio.run(prepare_topics(Settings(kafka_bootstrap=broker.address)))
                broker.stop(within=120)
            broker.into.rename(made)
    return made


def java_options() -> str:
    """Return the options for Java; none where the archive cannot be made."""
    try:
        return f"{FOR_A_MINUTE} -XX:SharedArchiveFile={archive()}"
    except Exception as error:
        print(f"brokers start from their jars: {error}", file=sys.stderr)
        return ""


if __name__ == "__main__":
    print(java_options())
