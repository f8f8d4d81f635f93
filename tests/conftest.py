"""What the tests of several rooms share: the fakes' file, and a look at whether a process is over."""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from ipexperf.bench import registry
from ipexperf.bench.networks import own  # noqa: F401 - it registers a task once, and each test gets a copy of what was there
from ipexperf.variables import LEASED, LEASES

pytest_plugins = "pytester"

# Hundreds of processes that the tests start import the same modules: without bytecode, each compiles them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Inductor's compile processes would each import torch. Workers have none either.
os.environ["TORCH_WARM_POOL"] = "0"

# What a user's shell says of histories, baselines and devices is not for tests.
for _name in [name for name in os.environ if name.startswith("IPEXPERF_") and name != "IPEXPERF_GOLDEN"]:
    del os.environ[_name]

# Under nohup, or as a shell's background job, what the tests start would ignore these signals.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("ipexperf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ipexperf")

TIERS = ("process", "torch", "server", "browser")
"""What a test needs: processes of its own, torch, PostgreSQL, Chromium. A test that needs none of them is `fast`."""
BY_FIXTURE = {
    "suite": "process",
    "torch_suite": "torch",
    "pytester": "process",
    "window": "browser",
    "quantisers": "torch",
}
TORCH_AT_HEAD = re.compile(r'^((torch = )?pytest\.importorskip\("torch"\)|(from|import) bench_cases\b)', re.MULTILINE)
HAS_TORCH = importlib.util.find_spec("torch") is not None

FAKE = Path(__file__).parent / "fakes" / "fake.py"
REGISTRIES = tuple(registry.KINDS.values())


def _over(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"  # dead, and nobody has asked for its exit status yet


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m fast`, leave out files whose head imports torch: that takes longer than all fast tests of a file."""
    return True if config.option.markexpr == "fast" and _imports_torch(collection_path) else None


@functools.cache
def _imports_torch(path: Path) -> bool:
    return path.suffix == ".py" and TORCH_AT_HEAD.search(path.read_text()) is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its tier. What its fixtures or the head of its file say needs no mark."""
    for item in items:
        fixtures: Sequence[str] = getattr(item, "fixturenames", ())
        for fixture in fixtures:
            if fixture in BY_FIXTURE:
                item.add_marker(BY_FIXTURE[fixture])
        if item.path.parent.name == "history" and "server" in fixtures:
            item.add_marker("server")
        if hasattr(getattr(item, "module", None), "torch") or _imports_torch(item.path):
            item.add_marker("torch")
        if not HAS_TORCH and item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason="needs torch"))
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker("fast")


class _RefusedLoader(importlib.abc.Loader):
    """Fails whoever imports its module."""

    def create_module(self, _: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, _: object) -> NoReturn:
        raise AssertionError("a fast test imports no torch: mark it with pytest.mark.torch")


class _NoTorch(importlib.abc.MetaPathFinder):
    """Finds torch where it is, so that tests can ask whether it is installed, and refuses to load it."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != "torch" or (spec := importlib.machinery.PathFinder.find_spec(name)) is None:
            return None
        spec.loader = _RefusedLoader()
        return spec


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a fast test that starts a process or imports torch, in any of its fixtures or by itself.

    Also where an earlier test imported torch.
    """
    if not item.get_closest_marker("fast"):
        return (yield)

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a fast test starts no process: mark it with pytest.mark.process")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        patch.setattr(os, "fork", refuse)
        patch.delitem(sys.modules, "torch", raising=False)
        patch.setattr(sys, "meta_path", [_NoTorch(), *sys.meta_path])
        return (yield)


@pytest.fixture(scope="session")
def _all_leases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leases")


@pytest.fixture(autouse=True)
def _uv_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The wheels of tests are not for the user's cache."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv"))


@pytest.fixture(autouse=True)
def leases(monkeypatch: pytest.MonkeyPatch, _all_leases: Path) -> Path:
    """A folder of leases for each test, so that no test waits for another or for a user of this machine."""
    folder = Path(tempfile.mkdtemp(dir=_all_leases))  # pytest's own way to make one looks at all others
    monkeypatch.setenv(LEASES, str(folder))
    # What the test leaves in these is forgotten.
    monkeypatch.setenv(LEASED, "")
    return folder


@pytest.fixture
def fake() -> str:
    """The file that registers the fakes, for `--perf-load` and Settings.load."""
    return str(FAKE)


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Whether a process ends within a few seconds."""

    def gone(pid: int, within: float = 8.0) -> bool:
        until = time.monotonic() + within
        while not _over(pid) and time.monotonic() < until:
            time.sleep(0.02)
        return _over(pid)

    return gone


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registries as they are shipped; what a test registers or loads is forgotten at its end."""
    loaded = set(sys.modules)
    for kind in REGISTRIES:
        kind.names()
        monkeypatch.setattr(kind, "_items", dict(kind._items))
    yield
    for name in set(sys.modules) - loaded:
        if name.startswith("ipexperf_loaded_"):
            del sys.modules[name]
