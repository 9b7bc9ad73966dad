"""The broker's jars are those of the pom, and the list of their sums is one that others can read."""

import re
import subprocess
from pathlib import Path

import pytest

from shadowtime.stack.servers import Kafka, ServerError
from shadowtime.stack.servers.checksums import read_sums
from shadowtime.stack.servers.jars import POM, SUMS, jar_folder
from tests.support.real_servers import require


def test_the_list_of_jars_is_that_of_the_pom() -> None:
    pinned = dict(re.findall(r"<([a-z0-9]+)\.version>([^<]+)<", POM.read_text()))
    assert set(pinned) == {"kafka", "log4j"}
    sums = read_sums(SUMS)
    assert {f"kafka_2.13-{pinned['kafka']}.jar", f"log4j-core-{pinned['log4j']}.jar"} <= set(sums)
    others = [name for name in sums if name.startswith(("kafka", "log4j"))]
    assert all(name.endswith((f"-{pinned['kafka']}.jar", f"-{pinned['log4j']}.jar")) for name in others)


def test_sha256sum_reads_the_list() -> None:
    require(Kafka)
    command = ["sha256sum", "--check", "--strict", "--quiet", str(SUMS)]
    done = subprocess.run(command, cwd=jar_folder(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("line", ["abc  a.jar", f"{'0' * 64}  ../a.jar", f"{'0' * 64}  a.jar\n{'1' * 64}  a.jar"])
def test_a_list_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"# jars\n{line}\n")
    with pytest.raises(ServerError, match=r"SHA256SUMS, line [23]: expected a SHA-256 and a new file name, found "):
        read_sums(tmp_path / "SHA256SUMS")
