"""The suites that the tests of the plugin run, with torch and without."""

import os
from collections.abc import Iterator

import pytest
from forked_pytest import Servers
from plugin_suite import NO_TORCH, NO_TRANSFORMERS, PLUGIN, ROOT, LookedAt, Suite


def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a worker of xdist, pytest-benchmark would disable itself in the suites that these tests start. On a CI service,
    # pytest tells each failure whole in its summary too.
    for name in ("PYTEST_XDIST_WORKER", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def run_servers() -> Iterator[Servers]:
    servers = Servers(PLUGIN)
    yield servers
    servers.close()


@pytest.fixture
def suite(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    fake: str,
    run_servers: Servers,
    request: pytest.FixtureRequest,
) -> Suite:
    """A suite whose interpreter finds no torch: what passes here needs none. With `torch_suite` it finds torch."""
    _clean(monkeypatch)
    first = NO_TRANSFORMERS if "torch_suite" in request.fixturenames else NO_TORCH
    monkeypatch.setenv("PYTHONPATH", f"{first}{os.pathsep}{ROOT}")
    monkeypatch.setenv("FAKE_PID_FILE", str(pytester.path / "pids"))
    return Suite(pytester, fake, run_servers)


@pytest.fixture
def torch_suite(suite: Suite) -> Suite:
    """A suite whose interpreter finds torch and IPEX."""
    return suite


@pytest.fixture
def looked(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> LookedAt:
    monkeypatch.setenv("FAKE_RAN", str(suite.path / "ran.json"))
    monkeypatch.chdir(suite.path)
    return LookedAt(suite)
