"""Types of arrays that rooms share."""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
"""Places of examples."""
