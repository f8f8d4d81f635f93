"""What tests call: `perf`, and the `benchmark` of pytest-benchmark or pytest-codspeed with our measurement in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.calls import asv
from ipexperf.bench.calls.call import AUTO, Call

Measure = Callable[[Call], Any]
NO_FUNCTION = (
    "perf() got {!r:.40} in place of a function: call perf(sorted, [3, 1]), or name the networks to measure by "
    "@pytest.mark.perf(models=[...])"
)
TWICE = "the test measures a second function: one test has one measurement"
MARKS = ("benchmark", "codspeed_benchmark")
"""The marks of tests that are measured as a whole, unless they take the fixture."""


class Perf:
    """`perf` in a test of one function. Returns what the function returns."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def __call__(
        self, function: Callable[..., Any] | None = None, /, *args: Any, accelerator: str | None = AUTO, **kwargs: Any
    ) -> Any:
        __tracebackhide__ = True
        if not callable(function):
            pytest.fail(NO_FUNCTION.format(function), pytrace=False)
        return self._measure(Call(function, args, kwargs, accelerator=accelerator))

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
        *,
        accelerator: str | None = AUTO,
    ) -> Any:
        """As that of pytest-benchmark. How often the function is called is ours to say, but once stays once."""
        if setup is not None and iterations > 1:
            pytest.fail("`iterations` of more than 1 would call the function without its `setup`", pytrace=False)
        once = setup is None and (rounds, warmup_rounds, iterations) == (1, 0, 1)
        call = Call(target, args, dict(kwargs or {}), setup, teardown, once=once, accelerator=accelerator)
        return self._measure(call)


class Benchmark(Perf):
    """`benchmark`: what suites for pytest-codspeed use of it, and what measures inside that of pytest-benchmark."""

    def __init__(self, measure: Measure, name: str) -> None:
        super().__init__(measure)
        self.name = self.fullname = name
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self.stats: Any = None
        self.enabled, self.disabled = True, False

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return self._measure(Call(function, args, kwargs))  # any name may be an argument of the function


class Suite:
    """A plugin that measures a suite written for pytest-benchmark, pytest-codspeed or asv as it stands."""

    def __init__(self, measure: Callable[[pytest.FixtureRequest, Any], Any]) -> None:
        """`measure` has the measurement of a test, given its request and the fixture of pytest-benchmark or None."""
        self._measure = measure

    @classmethod
    def of(cls, config: pytest.Config, measure: Callable[[pytest.FixtureRequest, Any], Any]) -> Suite:
        """The plugin for this session: with the fixture of pytest-benchmark, if that is there."""
        return (OverTheirs if config.pluginmanager.hasplugin("benchmark") else OnItsOwn)(measure)

    def pytest_collection(self, session: pytest.Session) -> None:
        """Refuse a suite of asv without the packages that read it."""
        if any(Path(word.partition("::")[0]).match(asv.PATTERN) for word in session.config.args):
            asv.refuse_missing()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a suite of asv, if its configuration was named."""
        if file_path.match(asv.PATTERN) and parent.session.isinitpath(file_path):
            return asv.Configuration.from_parent(parent, path=file_path)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Measure a test that is marked as a whole."""
        if not whole(pyfuncitem):
            return None
        names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001 - as pytest calls it
        arguments = {name: pyfuncitem.funcargs[name] for name in names}
        self._measure(pyfuncitem._request, None)(Call(pyfuncitem.obj, kwargs=arguments))  # noqa: SLF001 - as above
        return True


class OverTheirs(Suite):
    @pytest.fixture
    def benchmark(self, benchmark: Any, request: pytest.FixtureRequest) -> Any:
        if not hasattr(benchmark, "_raw"):  # pytest-codspeed has put its own there
            return Benchmark(self._measure(request, None), request.node.name)
        ours = Benchmark(self._measure(request, benchmark), request.node.name)
        # The rest of the fixture stays its own. There is no public way in.
        benchmark._raw, benchmark._raw_pedantic = ours, ours.pedantic  # noqa: SLF001
        return benchmark


class OnItsOwn(Suite):
    @pytest.fixture
    def benchmark(self, request: pytest.FixtureRequest) -> Benchmark:
        return Benchmark(self._measure(request, None), request.node.name)


def feed(fixture: Any, call: Call) -> None:
    """Give the fixture of pytest-benchmark the samples of a call, each of one iteration."""
    stats = fixture._make_stats(1)  # noqa: SLF001 - pytest-benchmark has no public way to hand samples over
    for seconds in call.seconds:
        stats.update(seconds)


def whole(item: Any) -> bool:
    """Whether a test is measured as a whole: it has a mark for that, and does not take the fixture."""
    return "benchmark" not in item.fixturenames and any(item.get_closest_marker(name) for name in MARKS)
