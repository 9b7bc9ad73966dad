"""What a site's Slurm is set to, in a file: TOML, a key of the policy `slurm` on each line, rows of tables in lists."""

import tomllib
from pathlib import Path

from shadowtime.shared.bounds import MAX_KEYS
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.spec import as_text, parse
from shadowtime.shared.wording import QUOTED, shortened

MAX_SIZE = 2**20
"""Bytes of such a file."""


def keys_of(text: str) -> dict[str, str]:
    """Return the keys that a site spells in a SPEC.

    >>> keys_of("(weight_age=1000,qos=1:0:1000)")
    {'weight_age': '1000', 'qos': '1:0:1000'}
    """
    return dict(parse(f"site{text}").keys)


def inline(text: str) -> str:
    """Return what a SPEC has in the place of a file: its keys in parentheses, and such as they are.

    Raises
    ------
    SettingsError
        If the file cannot be read, or is none of keys; names it.

    >>> inline("(weight_age=1000)")
    '(weight_age=1000)'
    """
    if text.startswith("("):
        return text
    name = shortened(text, QUOTED)
    try:
        with Path(text).open("rb") as file:
            contents = file.read(MAX_SIZE + 1)
        if len(contents) > MAX_SIZE:
            raise SettingsError(f"site {name}: larger than {MAX_SIZE:,} bytes")
        return spelled(tomllib.loads(contents.decode("utf-8-sig")))
    except OSError as error:
        raise SettingsError(f"site {name}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError, a name that no file can have
        raise SettingsError(f"site {name}: {shortened(str(error))}") from None


def spelled(keys: dict[str, object]) -> str:
    """Return keys as a SPEC has them in parentheses.

    Raises
    ------
    ValueError
        If a value is neither a plain one nor a list of rows; names the key.

    >>> spelled({"weight_age": 1000, "favor_small": True, "qos": [[1, 0, 1000], [2, 10, 500]]})
    '(weight_age=1000,favor_small=yes,qos=1:0:1000;2:10:500)'
    """
    if len(keys) > MAX_KEYS:
        raise ValueError(f"{len(keys)} keys; a SPEC takes {MAX_KEYS}")
    parts = []
    for key, value in keys.items():
        if isinstance(value, list):
            rows = [row for row in value if isinstance(row, list)]
            if len(rows) < len(value):
                raise ValueError(f"{key}: expected rows, each in brackets")
            text = ";".join(":".join(map(as_text, row)) for row in rows) or "none"
        elif isinstance(value, bool | int | float | str):
            text = as_text(value)
        else:
            raise ValueError(f"{key}: expected a number, a word, true, false or rows")
        if not set(text).isdisjoint("(),= \n"):
            raise ValueError(f"{key}: {shortened(text, QUOTED)!r} cannot be a value")
        parts.append(f"{key}={text}")
    return f"({','.join(parts)})"
