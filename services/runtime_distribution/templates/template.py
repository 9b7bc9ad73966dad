"""Templates: rules that define which jobs are similar, and how their run times give an estimate.

A template is written as a SPEC, a set as SPECs with semicolons: `mean(key=user,history=8);linear(key=queue)`.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError

from shadowtime.shared.bounds import MAX_TEMPLATE_FILE_SIZE
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import QUOTED, among, quote, truncate
from shadowtime.shared.spec import Spec, SpecSettings, as_text, parse, wrong_key

Prediction = Literal["mean", "linear", "inverse", "logarithmic"]
PREDICTIONS: Final = get_args(Prediction)

CHARACTERISTICS: Final = {
    "user": "user_id",
    "group": "group_id",
    "executable": "executable_number",
    "queue": "queue_number",
    "partition": "partition_number",
    "request": "requested_time",
    "qos": "qos_number",
}
"""Characteristics that jobs may share, with the field of `RememberedJob` for each."""

MAX_TEMPLATES: Final = 10

DEFAULT: Final = "default"
"""Name of the template set that the project ships."""

DEFAULT_SET: Final = ";".join(
    (
        "mean(key=user+executable+request,processors=1,history=4)",  # the same job again
        "mean(key=user+executable,relative=yes,history=4)",
        "mean(key=user+request,processors=1,history=4)",  # the same, for logs without useful executables
        "mean(key=user+request,history=4)",
        "mean(key=user,relative=yes,history=4)",  # the user's current work
        "mean(key=user,relative=yes,history=16)",
        "mean(key=group+request,relative=yes,history=16)",  # a new user among colleagues
        "mean(key=request,relative=yes)",  # any user
    )
)
"""Templates from the closest similarity to the widest. The closest keep the fewest jobs, since users change their
work."""


def power_of_two(value: int) -> int:
    """Return the value. Raise `ValueError` if it is not a power of two."""
    if value & (value - 1):
        raise ValueError("expected a power of two, such as 1, 2, 4 or 8")
    return value


def known(key: str) -> str:
    """Return the characteristics of `key` in the order of `CHARACTERISTICS`. Raise `ValueError` if one is unknown."""
    asked = key.split("+") if key else []
    for name in asked:
        if name not in CHARACTERISTICS:
            raise ValueError(f"unknown characteristic {quote(name)}{among(name, CHARACTERISTICS)}")
    return "+".join(characteristic for characteristic in CHARACTERISTICS if characteristic in asked)


PowerOfTwo = Annotated[int, AfterValidator(power_of_two)]


class Template(SpecSettings):
    """A rule that groups jobs into categories and estimates a run time from each.

    >>> template = template_of("mean(key=request+user,processors=4)")
    >>> str(template), template.characteristics
    ('mean(key=user+request,processors=4)', ('user', 'request'))
    """

    prediction: Prediction
    key: Annotated[str, AfterValidator(known)] = Field("", description="what the jobs of a category have in common")
    relative: bool = Field(False, description="whether run times count as shares of their requests")
    processors: Annotated[PowerOfTwo, Field(ge=1, le=512)] | None = Field(
        None, description="size of the ranges of processors; all jobs of a category are in one range"
    )
    running: Annotated[PowerOfTwo, Field(ge=64, le=65536)] | None = Field(
        None,
        description="for a running job: only jobs count that ran longer than its run time so far, rounded down to a "
        "multiple of this many seconds",
    )
    history: Annotated[PowerOfTwo, Field(ge=2, le=65536)] | None = Field(
        None, description="number of last ended jobs that a category keeps; by default all that are remembered"
    )

    @property
    def characteristics(self) -> tuple[str, ...]:
        """Characteristics that the jobs of a category share."""
        return tuple(self.key.split("+")) if self.key else ()

    @property
    def fitted(self) -> bool:
        """Whether the estimate is a regression on the number of processors."""
        return self.prediction != "mean"

    @property
    def fewest(self) -> int:
        """Fewest jobs with which a category gives an estimate."""
        return 2 + self.relative + self.fitted

    def __str__(self) -> str:
        """Return the template as a SPEC. Default values are left out."""
        keys = self.model_dump(exclude={"prediction"}, exclude_defaults=True)
        return str(Spec(self.prediction, {key: as_text(value) for key, value in keys.items()}))


def template_of(text: str) -> Template:
    """Return the template that a SPEC describes.

    Raise `SettingsError` if the SPEC has an unknown name, key or characteristic, or a value out of range. The error
    names the fault.
    """
    spec = parse(text)
    keys = [name for name in Template.model_fields if name != "prediction"]
    if spec.name not in PREDICTIONS:
        raise SettingsError(
            f"template {quote(text)}: unknown prediction {quote(spec.name)}{among(spec.name, PREDICTIONS)}"
        )

    for key in spec.keys:
        if key not in keys:
            raise SettingsError(f"template {quote(text)} has no key {quote(key)}{among(key, keys, 'known keys')}")
    try:
        return Template.model_validate({"prediction": spec.name, **spec.keys})
    except ValidationError as error:
        raise wrong_key(f"template {quote(text)}", error) from None


def templates_of(text: str) -> tuple[Template, ...]:
    """Return the templates of a set: SPECs with semicolons between them, or `default` for the project's set.

    Raise `SettingsError` if there is no template, more than `MAX_TEMPLATES`, or an invalid one. The error names the
    fault.
    """
    texts = [part for part in (DEFAULT_SET if text == DEFAULT else text).split(";") if part.strip()]
    if not 1 <= len(texts) <= MAX_TEMPLATES:
        raise SettingsError(f"{len(texts)} templates in {quote(text)}; a set has 1 to {MAX_TEMPLATES}")
    return tuple(map(template_of, texts))


def spelled(text: str) -> str:
    """Return a set in its normal form, after checking each template.

    >>> spelled("mean(key=request+user); mean"), spelled("default")
    ('mean(key=user+request);mean', 'default')
    """
    return DEFAULT if text == DEFAULT else ";".join(map(str, templates_of(text)))


# Template sets in files: one template on each line, as in a SPEC; text after a `#` is a comment.

_TEMPLATES = re.compile(rf"\s*({'|'.join((DEFAULT, *PREDICTIONS))})\s*([(;]|$)")

MAX_LINE_LENGTH = 2000
"""Maximum number of characters of a line; a whole set on one line has fewer."""


def spelled_out(text: str) -> str:
    """Return a set in its normal form, given as a text or as the name of a file.

    Raise `SettingsError` if the text is an invalid set, the file cannot be read, or its contents are not a set. For a
    file, the error names the file.

    >>> spelled_out("mean(key=request+user,history=8); mean(history=64)")
    'mean(key=user+request,history=8);mean(history=64)'
    """
    if _TEMPLATES.match(text):
        return spelled(text)
    name = truncate(text, QUOTED)
    try:
        with Path(text).open("rb") as file:
            contents = file.read(MAX_TEMPLATE_FILE_SIZE + 1)
        if len(contents) > MAX_TEMPLATE_FILE_SIZE:
            raise SettingsError(
                f"templates {name}: larger than {MAX_TEMPLATE_FILE_SIZE:,} bytes; expected one template on each line"
            )
        lines = [line.partition("#")[0].strip() for line in contents.decode("utf-8-sig").splitlines()]
    except OSError as error:
        hint = "expected a file, or templates such as mean(key=user)"
        raise SettingsError(f"templates {name}: cannot be read: {error.strerror}; {hint}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"templates {name}: not in UTF-8; expected a text with one template on each line") from None
    except ValueError as error:  # a name that no file can have
        raise SettingsError(f"templates {name}: {error}") from None

    templates = [line for line in lines if line]
    if len(templates) > MAX_TEMPLATES:  # perhaps a log: the error must not quote all of it
        raise SettingsError(f"templates {name}: {len(templates):,} templates; a set has 1 to {MAX_TEMPLATES}")
    for line in templates:
        if len(line) > MAX_LINE_LENGTH:
            shown = f"{line[:40]!r}… has {len(line):,} characters"
            raise SettingsError(f"templates {name}: {shown}; a template has at most {MAX_LINE_LENGTH:,}")
    try:
        return spelled(";".join(templates))
    except SettingsError as error:
        raise SettingsError(f"templates {name}: {error}") from None
