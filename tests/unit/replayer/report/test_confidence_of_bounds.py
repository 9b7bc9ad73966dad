"""The report states a confidence only of bounds that have one."""

import pytest

from shadowtime.replayer.report.tables import wait_bounds


@pytest.mark.parametrize(
    ("groupings", "caption"),
    [
        (["plain"], "waits should keep, at confidence 0.9, under easy."),
        (["plain", "conformal"], "waits should keep, at confidence 0.9 (conformal: without one), under easy."),
        (["futures"], "waits should keep, under easy."),
    ],
)
def test_the_caption_of_bounds(groupings: list[str], caption: str) -> None:
    row = {"policy": "easy", "queue": "all", "quantile": 0.95, "confidence": 0.9, "coverage": 0.95, "over_rms": 60.0}
    row |= {"coverage_low": None, "coverage_high": None, "ratio_to_plain": None, "predictions": 9, "without": 0}
    row |= {"windows": 0, "windows_within": 0}
    assert caption in wait_bounds([row | {"grouping": grouping} for grouping in groupings])
