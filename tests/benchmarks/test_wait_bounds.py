"""Figures of bounds on waits are of the jobs of a whole recorded log, at every level that is told."""

import numpy as np

from shadowtime.replayer.logs.trace import BUNDLED
from tests.benchmarks.wait_bounds import rows, windows


def test_a_row_tells_of_every_level_and_of_the_width_beside_plain() -> None:
    found, *_ = rows(str(BUNDLED), "futures:futures=10", "empirical", jobs=200)
    assert found["queue"] == "all"
    assert 100 < found["jobs"] <= 200
    assert found["covered"].keys() == found["windows"].keys() == {0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99}
    assert found["tighter"] > 0
    plain, *_ = rows(str(BUNDLED), "bmbp:publish=plain", "requested", jobs=200)
    assert plain["tighter"] == 1


def test_windows_are_of_a_thousand_jobs_each() -> None:
    covered = np.repeat([True, False, True, False, True], [930, 70, 960, 40, 1_500])
    assert windows(covered, 0.95) == 2 / 3
