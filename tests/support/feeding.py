"""The source that docs/feeding.md shows, and its run of three jobs."""

import re
import subprocess
import sys
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE

PAGE = (ROOT / "docs" / "feeding.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(EVENTS,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def feed(folder: Path, bootstrap: str, events: str = EVENTS) -> None:
    """Send events as the run `mine`, by the program of the page."""
    (folder / "feed.py").write_text(CODE)
    command = [sys.executable, "feed.py", "mine", bootstrap]
    subprocess.run(command, cwd=folder, input=events, text=True, check=True, timeout=PATIENCE, capture_output=True)
