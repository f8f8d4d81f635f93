"""asv's benchmarks as tests of functions, as its own discovery finds them. Their suites need no edit."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import os
import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import pytest

PATTERN = "asv*.json"
"""The names of asv's configurations."""
NEEDED = ("asv_runner", "json5")
MISSING = "asv's suites need {}: pip install 'ipexperf[asv]'"
NUMBER = Path(__file__).with_name("asv_number.py")
"""The program that runs a benchmark which tells a number."""
NOT_IMPLEMENTED = "it raised NotImplementedError, or asv is to skip these parameters"
Caches = dict[str, tuple[Path, bytes]]
"""What `setup_cache` of benchmarks returned, pickled, and the folders in which it ran."""


def refuse_missing() -> None:
    """Raise UsageError if a package that reads asv's suites is not installed."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise pytest.UsageError(MISSING.format(" and ".join(missing)))


class Module(pytest.Collector):
    """A module of benchmarks."""

    full_name: str
    caches: Caches

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        return _inside(self, self.full_name, self.caches)


class Configuration(pytest.File):
    """asv's configuration, which says where the benchmarks are."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        import json5
        from asv_runner import _aux

        try:
            folder = self.path.parent / json5.loads(self.path.read_text()).get("benchmark_dir", "benchmarks")
        except (ValueError, AttributeError, TypeError) as error:
            raise self.CollectError(f"{self.path.name} is no configuration of asv: {error}") from None
        root = os.path.normpath(folder)
        _aux.update_sys_path(root)
        # A module that cannot be imported, such as for want of a package, costs its own benchmarks alone.
        self.config.option.continue_on_collection_errors = True
        return _inside(self, Path(root).name, {})


class Test(pytest.Function):
    """A benchmark with one combination of its parameters."""

    source: Any
    """The function, or method of a class, that asv found."""

    def reportinfo(self) -> tuple[Path, int, str]:
        code = inspect.unwrap(self.source).__code__
        return Path(code.co_filename), code.co_firstlineno - 1, self.name


def _inside(node: pytest.Collector, full_name: str, caches: Caches) -> Iterator[pytest.Item | pytest.Collector]:
    """The tests of a module, and the modules in it."""
    from asv_runner import discovery

    module = importlib.import_module(full_name)
    [root] = sys.modules[full_name.partition(".")[0]].__path__
    tests: dict[str, tuple[Any, Callable[..., None]]] = {}
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
                tests[f"{name}{label}"] = function, _body(found, make, place, caches, root)
    for name, (function, body) in tests.items():
        test = Test.from_parent(node, name=name, callobj=body)
        test.source = function
        yield test
    for _, name, _ in pkgutil.iter_modules(getattr(module, "__path__", ())):
        inner = Module.from_parent(node, name=name)
        inner.full_name, inner.caches = f"{full_name}.{name}", caches
        yield inner


def _candidates(members: dict[str, Any]) -> Iterator[tuple[type | None, str, Any]]:
    """The functions that asv looks at: each with its class and its name there."""
    for name, value in list(members.items()):
        if not name.startswith("_") and inspect.isfunction(value):
            yield None, name, value
        elif not name.startswith("_") and inspect.isclass(value) and not inspect.isabstract(value):
            for inner, function in inspect.getmembers(value, lambda one: isinstance(one, FunctionType | MethodType)):
                yield value, inner, function


def _failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _body(found: Any, make: Callable[[], Any], place: int, caches: Caches, root: str) -> Callable[..., None]:
    """The body of a test, in a folder of its own and after its `setup`: a call is measured as asv times it, and what
    tells a number is a program."""
    from asv_runner.benchmarks.mark import SkipNotImplemented
    from asv_runner.benchmarks.time import TimeBenchmark

    @contextmanager
    def prepared(folders: pytest.TempPathFactory) -> Iterator[Any]:
        ours = make()  # its class has an instance for each combination, as each has its process in asv
        ours.set_param_idx(place)
        with chdir(_folder(ours, caches, folders.mktemp)):
            try:
                if ours.do_setup():
                    pytest.skip(NOT_IMPLEMENTED)
                yield ours
            except SkipNotImplemented:
                pytest.skip(NOT_IMPLEMENTED)
            finally:
                ours.do_teardown()

    def measure(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
        __tracebackhide__ = True
        with prepared(tmp_path_factory) as ours:
            args = ours._build_params()  # noqa: SLF001 - the cache and the parameters
            if (ours.number, ours.repeat, ours.warmup_time) == (1, 1, 0):  # it is called once a process
                benchmark.pedantic(ours.func, args)
            elif ours._setups:  # noqa: SLF001 - each call follows a `setup`
                benchmark.pedantic(ours.func, args, setup=ours.redo_setup, rounds=2)
            else:
                benchmark(ours.func, *args)

    def tell(perf_program: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
        folder = os.path.relpath(root, request.config.invocation_params.dir)
        words = "python", NUMBER, folder, f"{found.name}-{place}", "{out}"
        with prepared(tmp_path_factory):
            perf_program(*words, metrics="perfherder", name=request.node.nodeid, whole=False)

    return measure if type(found) is TimeBenchmark else tell


def _folder(benchmark: Any, caches: Caches, make: Callable[[str], Path]) -> Path:
    """The folder to run a benchmark in. It gets a copy of what its `setup_cache` made there, as each process of asv."""
    key = benchmark.setup_cache_key
    if key is None:
        return make("asv")
    if key not in caches:
        folder = make("asv")
        with chdir(folder):
            caches[key] = folder, pickle.dumps(benchmark.do_setup_cache())
    benchmark.set_cache(pickle.loads(caches[key][1]))  # noqa: S301 - this process wrote it
    return caches[key][0]
