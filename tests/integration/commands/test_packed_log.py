"""Reading a packed log takes little memory."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.log_rows import MIB, written


@pytest.mark.nightly
def test_finding_12_memory_does_not_grow_with_what_is_packed(tmp_path: Path) -> None:
    bomb = written(tmp_path / "bomb.swf.gz", *[(b" " * 60_000 + b"\n") * 17] * 900)
    code = f"from shadowtime.replayer.logs.swf import read_swf\nread_swf({str(bomb)!r})"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (600 * MIB, 600 * MIB))

    ended = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert ended.stderr.splitlines()[-1].endswith("bomb.swf.gz: it has no job line; expected lines of 18 numbers")
