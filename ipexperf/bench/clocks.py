"""The clocks that measure. A worker imports them before a network's file, which can replace those of `time`."""

from time import perf_counter, process_time

__all__ = ["perf_counter", "process_time"]
