"""Types of arrays: elements and dimensions, in C order. `shared.kernels` compiles functions for these types."""

from typing import Annotated

import numpy as np
import numpy.typing as npt

Integers = Annotated[npt.NDArray[np.int64], "int64[::1]"]
IntegerTable = Annotated[npt.NDArray[np.int64], "int64[:, ::1]"]
IntegerCube = Annotated[npt.NDArray[np.int64], "int64[:, :, ::1]"]
Floats = Annotated[npt.NDArray[np.float64], "float64[::1]"]
FloatTable = Annotated[npt.NDArray[np.float64], "float64[:, ::1]"]
Flags = Annotated[npt.NDArray[np.bool_], "boolean[::1]"]
CountTable = Annotated[npt.NDArray[np.uint16], "uint16[:, ::1]"]
