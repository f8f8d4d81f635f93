"""A run that is stopped, softly or not: what was measured stays, and no worker does."""

import re
import signal
from collections.abc import Callable

import pytest
from plugin_suite import Suite

KILLS = """
import os

from sqlalchemy import Engine, event

from ipexperf.history import History

KILLS = {kills}


def kill(method, place):
    if KILLS.get(method, ("", 0))[0] == place:
        _, number = KILLS.pop(method)
        os.kill(os.getpid(), number)


def wrapped(name, method):
    def call(*arguments, **named):
        def commit(connection):
            kill(name, "in")

        kill(name, "before")
        event.listen(Engine, "commit", commit)
        try:
            answer = method(*arguments, **named)
        finally:
            event.remove(Engine, "commit", commit)
        kill(name, "after")
        return answer

    return call


for name in KILLS:
    setattr(History, name, wrapped(name, getattr(History, name)))
"""


def killed(suite: Suite, model: str, **kills: tuple[str, signal.Signals]) -> tuple[int, str]:
    """Measures; the run kills itself before, in or after the commit of the first call of each of these methods."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(KILLS.format(kills={name: (place, int(number)) for name, (place, number) in kills.items()}))
    result = suite.run(model)
    return result.ret, result.stdout.str() + result.stderr.str()


def listed(out: str) -> set[str]:
    """The models in the table of the summary."""
    _, _, summary = out.partition("= ipexperf =")
    return set(re.findall(r"^(\w+)-fake-fp32-spin-plain +\d", summary, re.MULTILINE))


def recorded(suite: Suite) -> set[str]:
    """The models that the history has a measurement and a verdict of."""
    asked = 'SELECT c.model FROM {} JOIN series s ON s.id = series_id JOIN "case" c ON c.id = s.case_id'
    measured, judged = ({model for (model,) in suite.query(asked.format(x))} for x in ("measurement", "verdict"))
    assert measured == judged
    return measured


@pytest.mark.parametrize(
    ("method", "number", "ended"),
    [("record", signal.SIGTERM, "interrupted"), ("finish_run", signal.SIGINT, "finished")],
)
def test_a_signal_waits_until_what_it_meets_is_recorded(
    method: str, number: signal.Signals, ended: str, suite: Suite
) -> None:
    """A case, or the end of the run. The summary is told, and lists what the history has."""
    status, out = killed(suite, "tiny,other", **{method: ("in", number)})
    assert status == pytest.ExitCode.INTERRUPTED, out
    assert listed(out) == recorded(suite)
    assert "tiny" in listed(out)
    assert suite.statuses() == [ended]


def test_a_second_signal_waits_until_an_interrupted_run_is_closed(suite: Suite) -> None:
    """Whoever is impatient gets the summary all the same, and a history that says how the run ended."""
    status, out = killed(suite, "tiny,other", record=("after", signal.SIGINT), finish_run=("in", signal.SIGINT))
    assert status == pytest.ExitCode.INTERRUPTED, out
    assert listed(out) == recorded(suite)
    assert "tiny" in recorded(suite)
    assert suite.statuses() == ["interrupted"]


def test_a_signal_that_meets_bytecode_without_a_line_ends_the_run_too(suite: Suite) -> None:
    """Python 3.11 has such, as where a loop of pytest's own continues. Pytest alone fails on its traceback."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write("""
def stop():
    raise KeyboardInterrupt


stop.__code__ = stop.__code__.replace(co_linetable=b"")


def pytest_runtest_teardown():
    stop()
""")
    result = suite.run("tiny")
    assert result.ret == pytest.ExitCode.INTERRUPTED, result.stdout.str() + result.stderr.str()
    assert suite.statuses() == ["interrupted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_has_and_leaves_nobody(
    number: signal.Signals, suite: Suite, gone: Callable[[int], bool]
) -> None:
    """The summary is told, the database is whole, the run is 'interrupted', and the worker's whole tree is dead."""
    with suite.start("tiny,parent,other") as process:
        worker, child = suite.pids()
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert "NO BASELINE (1)" in out
    assert gone(worker)
    assert gone(child)
    assert suite.launches() == [("tiny", "ok")]
    assert suite.statuses() == ["interrupted"]
    assert suite.query("SELECT count(*) FROM verdict") == [(1,)]


@pytest.mark.parametrize("model", ["parent", "leader"])
def test_a_killed_run_leaves_nothing_that_its_worker_started(
    model: str, suite: Suite, gone: Callable[[int], bool]
) -> None:
    """After SIGKILL, when pytest can clean nothing up, the worker's children end with it."""
    with suite.start(model) as process:
        pids = suite.pids()
        process.kill()
        process.communicate(timeout=30)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)
