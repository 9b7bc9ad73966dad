"""What the build of the wheel does beside packing files: it makes the scripts by which shells complete commands.

If `SHADOWTIME_KERNELS` is set, it also compiles all kernels, for this Python and `x86-64-v3` (processors since 2015).
"""

import os
import platform
import subprocess
import sys
from pathlib import Path
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

COMPILE = """
from importlib import import_module
from pathlib import Path
from shadowtime.shared.kernels.decorator import load_all
for file in sorted(Path("shadowtime").glob("*/**/*.py")):
    if "\\n@kernel" in file.read_text():
        import_module(".".join(file.with_suffix("").parts))
load_all()
"""


class Completions(BuildHookInterface[Any]):
    """Put the folder `completions` into the wheel; an editable install makes scripts when they are asked for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the scripts, in another interpreter: this one is the build tool's."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        scripts = Path(self._folder.name, "completions")
        scripts.mkdir()
        self._run(MAKE, str(scripts))
        build_data["force_include"][str(scripts)] = "shadowtime/completions"
        if os.environ.get("SHADOWTIME_KERNELS"):
            self._compile(build_data)

    def _compile(self, build_data: dict[str, Any]) -> None:
        """Compile all kernels. Raise `SystemExit` if this is no Linux on x86-64."""
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise SystemExit("SHADOWTIME_KERNELS: expected Linux on x86-64; unset it to build without kernels")
        target = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "", "XDG_CACHE_HOME": self._folder.name}
        self._run(COMPILE, environment={name: os.environ[name] for name in os.environ if "NUMBA" not in name} | target)
        kernels = Path(self._folder.name, "shadowtime", "kernels")
        build_data["force_include"][str(kernels)] = "shadowtime/shared/kernels/prebuilt"
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data |= {"pure_python": False, "tag": f"{python}-{python}-linux_x86_64"}

    def _run(self, program: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
        subprocess.run([sys.executable, "-c", program, *arguments], cwd=self.root, check=True, env=environment)  # noqa: S603

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the scripts once they are packed."""
        if version != "editable":
            self._folder.cleanup()
