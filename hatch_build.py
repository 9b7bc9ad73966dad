"""What the build of the wheel does beside packing files: it makes the scripts by which shells complete commands."""

import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MAKE = """
import sys
from pathlib import Path
from shadowtime.completion import SHELLS
from shadowtime.completion_scripts import script
for shell in SHELLS:
    Path(sys.argv[1], f"shadowtime.{shell}").write_text(script(shell))
"""


class Completions(BuildHookInterface[Any]):
    """Put the folder `completions` into the wheel; an editable install makes scripts when they are asked for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the scripts, in another interpreter: this one is the build tool's."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        subprocess.run([sys.executable, "-c", MAKE, self._folder.name], cwd=self.root, check=True)  # noqa: S603
        build_data["force_include"][self._folder.name] = "shadowtime/completions"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the scripts once they are packed."""
        if version != "editable":
            self._folder.cleanup()
