"""What is left of a recorded series once its levels, drifts and modes are taken away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ipexperf.judge.changes import Course

Values = NDArray[np.float64]
NEAR = 4
"""A step is found if it is reported within so many runs."""


def residuals(values: Sequence[float], course: Course) -> Values:
    """Return the log ratio of each run to what its piece expects of it. All values must be above 0."""
    logs: Values = np.log(np.asarray(values, dtype=float))
    for piece in course.pieces:
        part = logs[piece.begin : piece.end]
        first, last = np.log([piece.first, piece.last])
        if piece.shape == "bistable":
            part -= np.where(np.abs(part - first) < np.abs(part - last), first, last)
        else:
            part -= np.linspace(first, last, len(part))
    return logs
