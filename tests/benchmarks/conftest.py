"""A log for the tests of benchmarks, which is called what it is."""

from pathlib import Path

import pytest

from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate


@pytest.fixture
def generated_log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a small generated log."""
    path: Path = tmp_path_factory.mktemp("logs") / "generated.swf.gz"
    write_swf(path, *generate(jobs=200, processors=16, seed=1))
    return str(path)
