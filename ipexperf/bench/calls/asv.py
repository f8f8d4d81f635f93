"""asv's benchmarks as tests of functions, as its own discovery finds them. Their suites need no edit."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import os
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import pytest

PATTERN = "asv*.json"
"""The names of asv's configurations."""
NEEDED = ("asv_runner", "json5")
MISSING = "asv's suites need {}: pip install 'ipexperf[asv]'"
NOT_TIMED = "{} is no time of a call in this process, so it is not measured: `ipexperf ab --program` compares numbers"
NOT_IMPLEMENTED = "it raised NotImplementedError, or asv is to skip these parameters"


def refuse_missing() -> None:
    """Raise UsageError if a package that reads asv's suites is not installed."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise pytest.UsageError(MISSING.format(" and ".join(missing)))


class Caches:
    """What `setup_cache` of benchmarks returned, and the folders in which it ran. Each runs once a session."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Path, bytes]] = {}

    def give(self, benchmark: Any, folder: Callable[[str], Path]) -> Path:
        """Give a benchmark a copy of its own, as asv gives it to each process. Returns the folder to run it in."""
        key = benchmark.setup_cache_key
        if key is None:
            return folder("asv")
        if key not in self._made:
            place = folder("asv-cache")
            with chdir(place):
                self._made[key] = place, pickle.dumps(benchmark.do_setup_cache())
        place, pickled = self._made[key]
        benchmark.set_cache(pickle.loads(pickled))  # noqa: S301 - this process wrote it
        return place


class Module(pytest.Collector):
    """A module of benchmarks."""

    def __init__(self, *, full_name: str, caches: Caches, **more: Any) -> None:
        super().__init__(**more)
        self._full_name, self._caches = full_name, caches

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        return _inside(self, self._full_name, self._caches)


class Configuration(pytest.File):
    """asv's configuration, which says where the benchmarks are."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        import json5
        from asv_runner import _aux

        try:
            folder = self.path.parent / json5.loads(self.path.read_text()).get("benchmark_dir", "benchmarks")
        except (ValueError, AttributeError, TypeError) as error:
            raise self.CollectError(f"{self.path.name} is no configuration of asv: {error}") from None
        root = Path(os.path.normpath(folder))
        _aux.update_sys_path(str(root))
        # A module that cannot be imported, such as for want of a package, costs its own benchmarks alone.
        self.config.option.continue_on_collection_errors = True
        return _inside(self, root.name, Caches())


class Test(pytest.Function):
    """A benchmark with one combination of its parameters."""

    def __init__(self, *, source: FunctionType, **more: Any) -> None:
        super().__init__(**more)
        self._code = inspect.unwrap(source).__code__

    def reportinfo(self) -> tuple[Path, int, str]:
        return Path(self._code.co_filename), self._code.co_firstlineno - 1, self.name


def _inside(node: pytest.Collector, full_name: str, caches: Caches) -> Iterator[pytest.Item | pytest.Collector]:
    """The tests of a module, and the modules in it."""
    from asv_runner import discovery

    module = importlib.import_module(full_name)
    tests: dict[str, tuple[FunctionType, Callable[..., None]]] = {}
    for owner, attribute, function in _candidates(vars(module)):
        make = partial(discovery._get_benchmark, attribute, module, owner, function)  # noqa: SLF001 - one at a time
        try:
            found = make()
        except Exception as error:  # noqa: BLE001 - whatever a class of the user's raises, its benchmark alone fails
            tests[f"{owner.__name__}.{attribute}" if owner else attribute] = function, _failing(error)
            continue
        if found is not None:
            name = found.name.removeprefix("".join(f"{part}." for part in full_name.split(".")[1:]))
            for place, words in enumerate(itertools.product(*found.params)):
                label = f"({', '.join(words)})" if words else ""
                tests[f"{name}{label}"] = function, _body(found, make, place, caches)
    for name, (function, body) in tests.items():
        yield Test.from_parent(node, name=name, callobj=body, source=function)
    for _, name, _ in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield Module.from_parent(node, name=name, full_name=f"{full_name}.{name}", caches=caches)


def _candidates(members: dict[str, Any]) -> Iterator[tuple[type | None, str, FunctionType]]:
    """The functions that asv looks at: each with its class and its name there."""
    for name, value in list(members.items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(value):
            yield None, name, value
        elif inspect.isclass(value) and not inspect.isabstract(value):
            for inner, function in inspect.getmembers(value, lambda one: isinstance(one, FunctionType | MethodType)):
                yield value, inner, function


def _failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _body(found: Any, make: Callable[[], Any], place: int, caches: Caches) -> Callable[..., None]:
    """The body of a test: a call is measured as asv times it, in a folder of its own and after its `setup`."""
    from asv_runner.benchmarks.mark import SkipNotImplemented
    from asv_runner.benchmarks.time import TimeBenchmark

    def measure(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
        __tracebackhide__ = True
        ours = make()  # its class has an instance for each combination, as each has its process in asv
        ours.set_param_idx(place)
        with chdir(caches.give(ours, tmp_path_factory.mktemp)):
            try:
                if ours.do_setup():
                    pytest.skip(NOT_IMPLEMENTED)
                args = ours._build_params()  # noqa: SLF001 - the cache and the parameters
                if (ours.number, ours.repeat, ours.warmup_time) == (1, 1, 0):  # it is called once a process
                    benchmark.pedantic(ours.func, args)
                elif ours._setups:  # noqa: SLF001 - each call follows a `setup`
                    benchmark.pedantic(ours.func, args, setup=ours.redo_setup, rounds=2)
                else:
                    benchmark(ours.func, *args)
            except SkipNotImplemented:
                pytest.skip(NOT_IMPLEMENTED)
            finally:
                ours.do_teardown()

    def skip() -> None:
        pytest.skip(NOT_TIMED.format(found.name.rpartition(".")[2]))

    return measure if type(found) is TimeBenchmark else skip
