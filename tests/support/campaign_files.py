"""Files of a campaign, good ones."""

from pathlib import Path

GOOD = 'name = "c"\ntitle = "t"\nlogs = ["KTH"]\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "c.toml"
    path.write_text(text)
    return path
