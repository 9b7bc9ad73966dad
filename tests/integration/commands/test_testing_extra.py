"""`shadowtime.testing` without its libraries."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["pytest", "hypothesis"])
def test_without_its_libraries_it_names_the_extra(library: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; import shadowtime.testing"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: shadowtime.testing needs {library}: pip install 'shadowtime[testing]'"
