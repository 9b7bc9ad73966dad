"""Install Grafana's packages, as the lock file names them: `python -m tests.support.grafana`."""

import os
import shutil
import subprocess

from shadowtime.stack.packages import consent, install_packages
from tests.support import grafana


def main() -> None:
    """Install them, unless they are there."""
    if grafana.not_drawn() is None:
        return
    install_packages({"node": "nodejs", "npm": "npm"}, consent(os.environ, yes=False))
    print(f"installing Grafana's packages into {grafana.PACKAGES}, once …", flush=True)
    grafana.PACKAGES.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("package.json", grafana.LOCK.name):
        shutil.copy(grafana.HERE / name, grafana.PACKAGES)
    command = ["npm", "ci", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=grafana.PACKAGES, check=True)


if __name__ == "__main__":
    main()
