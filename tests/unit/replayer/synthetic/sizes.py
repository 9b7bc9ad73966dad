"""Sizes of generated jobs."""

import numpy as np
from numpy.typing import NDArray


def is_power_of_two(sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    single_bit: NDArray[np.bool_] = (sizes & (sizes - 1)) == 0
    return single_bit
