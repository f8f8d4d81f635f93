"""The clocks that measure: Python's own, also where a `sitecustomize` or a network's file replaced those of `time`."""

from collections.abc import Callable
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec

__all__ = ["clock_gettime", "perf_counter", "process_time", "sleep"]

_spec = BuiltinImporter.find_spec("time")
assert _spec is not None and _spec.loader is not None  # noqa: S101, PT018 - every Python has it built in
_time = module_from_spec(_spec)
_spec.loader.exec_module(_time)  # a new module, with the functions that the interpreter was built with
perf_counter: Callable[[], float] = _time.perf_counter
process_time: Callable[[], float] = _time.process_time
clock_gettime: Callable[[int], float] = _time.clock_gettime
sleep: Callable[[float], None] = _time.sleep
