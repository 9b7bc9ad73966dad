"""The sentence on coverage counts rows without an interval, as those of queues."""

from typing import Any

import pytest

from shadowtime.replayer.comparison.wait_coverage import coverage_shortfall


def row(grouping: str, coverage: float | None, high: float | None = None, queue: int | str = "all") -> dict[str, Any]:
    return {"grouping": grouping, "quantile": 0.95, "coverage": coverage, "coverage_high": high, "queue": queue}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("plain", 0.96, 0.97), row("rtime", 0.951, queue=4)], "All cover the 95 % that is stated."),
        (
            [row("plain", 0.96, 0.97), row("rtime", 0.947, queue=4), row("rnprod", 0.935, queue=4)],
            "Below the 95 % that is stated, without an interval: "
            "rtime of queue 4 (94.7 %), rnprod of queue 4 (93.5 %).",
        ),
        (
            [row("plain", 0.94, 0.945), row("static", 0.94, 0.96), row("nodes", 0.97, 0.98)],
            "Below the 95 % that is stated: plain. Below the 95 % that is stated, which may be chance: static.",
        ),
        (
            [row("plain", 0.94, 0.96), row("static", 0.94, 0.96)],
            "All are below the 95 % that is stated, which may be chance.",
        ),
        ([row("plain", None)], ""),
    ],
)
def test_every_row_counts(rows: list[dict[str, Any]], told: str) -> None:
    assert coverage_shortfall(rows) == told
