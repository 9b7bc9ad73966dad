"""Colours of policies can be told apart, also by people who do not see red and green, and on light and dark pages."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.text.colours import (
    BAD,
    GOOD,
    GROUPING_COLOURS,
    HUES,
    NEUTRAL,
    OTHER_COLOURS,
    OUTCOME_COLOURS,
    POLICY_COLOURS,
    REASON_COLOURS,
    STAGE_COLOURS,
    WAITING_COLOURS,
    WARNING,
)

PAGES = ("#ffffff", "#181b1f")
"""Backgrounds of the report, and of Grafana's dark theme."""

LMS = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
LAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
"""Matrices of Oklab, by Ottosson."""

NO_GREEN = np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]])
NO_RED = np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]])
"""What people without green, or without red, cones see, by Machado and others."""


def light(colour: str) -> Floats:
    """Return the linear parts of red, green and blue in a colour."""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(colour: str, page: str) -> float:
    """Return the contrast of WCAG 2."""
    dark, bright = sorted(float(light(each) @ [0.2126, 0.7152, 0.0722]) for each in (colour, page))
    return (bright + 0.05) / (dark + 0.05)


def distances(pair: Iterable[str]) -> list[float]:
    """Return the distance of two colours in Oklab, as most people see them, and as the two others do."""
    seen = [
        [LAB @ np.cbrt(LMS @ np.clip(eye @ light(colour), 0, 1)) for eye in (np.eye(3), NO_GREEN, NO_RED)]
        for colour in pair
    ]
    return [float(np.linalg.norm(one - other)) for one, other in zip(*seen, strict=True)]


@pytest.mark.parametrize("page", PAGES)
def test_colours_stand_out_from_the_page(page: str) -> None:
    colours = {*POLICY_COLOURS.values(), *OTHER_COLOURS, *HUES, *GROUPING_COLOURS.values(), GOOD, WARNING, BAD}
    assert {colour: contrast(colour, page) for colour in colours if contrast(colour, page) < 3} == {}


TABLES = (STAGE_COLOURS, GROUPING_COLOURS, REASON_COLOURS, WAITING_COLOURS, OUTCOME_COLOURS)


@pytest.mark.parametrize("table", TABLES)
def test_colours_of_a_table_differ(table: dict[str, str]) -> None:
    for one, other in combinations(table.values(), 2):
        assert distances((one, other))[0] > 0.1, (one, other)


def test_policies_can_be_told_apart() -> None:
    for one, other in combinations(POLICY_COLOURS, 2):
        usual, *others = distances((POLICY_COLOURS[one], POLICY_COLOURS[other]))
        assert usual > 0.085, (one, other)
        assert min(others) > 0.03, (one, other)


def test_red_and_green_only_say_bad_and_good() -> None:
    for colour in (*POLICY_COLOURS.values(), *OTHER_COLOURS, *HUES, NEUTRAL):
        assert min(distances((colour, meaning))[0] for meaning in (GOOD, BAD)) > 0.08, colour


def test_no_policy_looks_like_a_warning() -> None:
    for colour in (*POLICY_COLOURS.values(), *OTHER_COLOURS):
        assert distances((colour, WARNING))[0] > 0.08, colour


def test_an_own_policy_looks_like_no_other() -> None:
    for one in OTHER_COLOURS:
        assert (
            min(distances((one, other))[0] for other in (*POLICY_COLOURS.values(), *OTHER_COLOURS) if other != one)
            > 0.06
        )
