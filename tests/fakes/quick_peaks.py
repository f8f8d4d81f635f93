"""Peak rates of a machine by small products, which take a moment. They are as real, and lower."""

from ipexperf.proof import peaks

peaks.SIZES, peaks.SECONDS, peaks.ROUNDS = (64, 128), 0.1, 1
