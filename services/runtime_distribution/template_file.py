"""Template sets in files: one template on each line, as in a SPEC; what follows a `#` is a remark."""

import re
from pathlib import Path

from shadowtime.services.runtime_distribution.template import DEFAULT, MAX_TEMPLATES, PREDICTIONS, spelled
from shadowtime.shared.bounds import MAX_TEMPLATE_FILE_SIZE
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.wording import QUOTED, shortened

_TEMPLATES = re.compile(rf"\s*({'|'.join((DEFAULT, *PREDICTIONS))})\s*([(;]|$)")

MAX_LINE_LENGTH = 2000
"""Characters; a whole set on one line has fewer."""


def spelled_out(text: str) -> str:
    """Return the templates that a text spells, or the file does that it names, as a SPEC has them.

    Raises
    ------
    SettingsError
        If the file cannot be read, or what it holds is not a set of templates; names the file.

    >>> spelled_out("mean(key=request+user,history=8); mean(history=64)")
    'mean(key=user+request,history=8);mean(history=64)'
    """
    if _TEMPLATES.match(text):
        return spelled(text)
    name = shortened(text, QUOTED)
    try:
        with Path(text).open("rb") as file:
            contents = file.read(MAX_TEMPLATE_FILE_SIZE + 1)
        if len(contents) > MAX_TEMPLATE_FILE_SIZE:
            raise SettingsError(f"templates {name}: larger than {MAX_TEMPLATE_FILE_SIZE:,} bytes")
        lines = [line.partition("#")[0].strip() for line in contents.decode("utf-8-sig").splitlines()]
    except OSError as error:
        raise SettingsError(f"templates {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"templates {name}: not a text in UTF-8") from None
    except ValueError as error:  # a name that no file can have
        raise SettingsError(f"templates {name}: {error}") from None
    templates = [line for line in lines if line]
    if len(templates) > MAX_TEMPLATES:  # perhaps a log: nobody wants to be shown all of it
        raise SettingsError(f"templates {name}: {len(templates):,} templates; a set has 1 to {MAX_TEMPLATES}")
    for line in templates:
        if len(line) > MAX_LINE_LENGTH:
            raise SettingsError(f"templates {name}: {line[:40]!r}… is no template: {len(line):,} characters")
    try:
        return spelled(";".join(templates))
    except SettingsError as error:
        raise SettingsError(f"templates {name}: {error}") from None
