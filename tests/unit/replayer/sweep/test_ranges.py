"""Grids in words."""

import pytest

from shadowtime.replayer.sweep.ranges import specs_of, values_of
from shadowtime.shared.errors import SettingsError


def test_ranges_and_lists_have_their_values() -> None:
    assert values_of("0.8..1.2 step 0.1") == ["0.8", "0.9", "1", "1.1", "1.2"]
    assert values_of("1..3") == ["1", "2", "3"]
    assert values_of("30min,2h,1.5d,90s,srf") == ["1800", "7200", "129600", "90", "srf"]
    assert values_of("10..15 step 10") == ["10"]


def test_braces_multiply() -> None:
    assert len(specs_of("{easy,easy-sjbf}:threshold={20h..100h step 10h}")) == 18
    assert specs_of("easy:runtime=hmm(seed={seed})") == ["easy:runtime=hmm(seed={seed})"]
    assert specs_of("easy") == ["easy"]


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ("easy:queue={srf", "unmatched or nested braces"),
        ("easy:queue=srf}", "unmatched or nested braces"),
        ("easy:queue={srf,{saf}}", "unmatched or nested braces"),
        ("easy:queue={srf,,saf}", "a value is empty"),
        ("easy:queue={}", "a value is empty"),
        ("easy:threshold={9..1}", "the range is empty"),
        ("easy:threshold={1..9 step 0}", "the range is empty"),
        ("easy:threshold={a..b}", "not a range of numbers"),
        ("easy:threshold={1..2 by 3}", "not a range of numbers"),
        ("easy:threshold={1..1000000000}", "take a larger step"),
        ("easy:threshold={1..900},weight={1..900}", "at most 10,000 are allowed"),
    ],
)
def test_a_bad_grid_is_refused(grid: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        specs_of(grid)
