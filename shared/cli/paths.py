"""Where commands find and put their own files."""

from pathlib import Path

_BESIDE = Path(__file__).parents[3]

ROOT = _BESIDE if (_BESIDE / "pyproject.toml").is_file() else Path.cwd()
"""The checkout; the working directory where the package is installed."""
