"""The folder in which commands find and put their own files."""

from pathlib import Path

_BESIDE = Path(__file__).parents[3]

ROOT = _BESIDE if (_BESIDE / "pyproject.toml").is_file() else Path.cwd()
"""The root of the checkout. If Shadowtime runs from an installed package, the working directory."""
