"""Columns of a generated log."""

import numpy as np
from numpy.typing import NDArray

from shadowtime.replayer.logs.swf import FIELDS


def column(table: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    return table[:, FIELDS.index(name)]
