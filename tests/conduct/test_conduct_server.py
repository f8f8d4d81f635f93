"""The fork server: its workers behave like fresh ones, and it refuses to fork if that is not safe."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.process import guard
from ipexperf.bench.process import server as bench_server
from ipexperf.case import NetworkCase
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec
from ipexperf.conduct.worker import Worker
from ipexperf.errors import ForkError, WorkerError
from ipexperf.result import Launch

pytestmark = pytest.mark.process

FAKES = Path(__file__).parents[1] / "fakes"
FORKED = str(FAKES / "forked.py")


def case(model: str = "tiny") -> NetworkCase:
    return NetworkCase(model, "fake", "fp32", "spin", "plain", 1, 1, data="none")


def order(*load: str) -> ServerSpec:
    return ServerSpec("plain", load)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers, which end with the test."""
    with contextlib.ExitStack() as running:

        def serve(wanted: ServerSpec, **variables: str) -> Server:
            server = running.enter_context(
                contextlib.closing(Server(replace(wanted, variables=tuple(variables.items()))))
            )
            server.ready()
            return server

        yield serve


@pytest.fixture
def run(fake: str, serve: Callable[..., Server]) -> Callable[..., Launch]:
    """Launches a fake model once, forked."""

    def run(model: str, timeout: float = 30.0, **variables: str) -> Launch:
        server = serve(order(fake), **variables)
        conditions = Conditions(
            Settings(load=(fake,), forked=True),
            variables=variables,
            timeout=timeout,
            samples=5,
            seconds=0.05,
            server=server,
        )
        return conduct_play.launch(case(model), 0, conditions, accuracy=True)[0]

    return run


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def test_a_forked_launch_has_samples_and_proof(run: Callable[..., Launch]) -> None:
    """It has a check that it was forked, and no import time."""
    done = run("tiny")
    assert (done.outcome, done.reason) == ("ok", "")
    assert len(done.samples) >= 5
    assert [(check.found, check.ok) for check in done.proof if check.name == "start"] == [("fork", True)]
    assert "import_time" not in done.metrics
    assert {"warm_time", "accuracy"} <= set(done.metrics)
    assert all(check.ok for check in (*done.accuracy, *done.proof))


def test_a_forked_worker_is_alone_with_its_guard_in_a_session(fake: str, serve: Callable[..., Server]) -> None:
    """It leads the session, and has no descriptor of its server."""
    server = serve(order(fake))
    with Worker(timeout=30, server=server) as worker, Worker(timeout=30, server=server) as other:
        assert parent(worker.pid) == parent(other.pid) == server.pid
        assert len(guard.members(worker.pid)) == len(guard.members(other.pid)) == 2
        assert guard.members(server.pid) == [server.pid]
        links = [
            {str(path.readlink()) for path in Path(f"/proc/{x.pid}/fd").iterdir()} for x in (worker, other, server)
        ]
        assert links[0] & links[1] == links[0] & links[2] == {os.devnull}


def test_the_server_reports_how_its_worker_ended(run: Callable[..., Launch]) -> None:
    """The sentence is that of a fresh worker."""
    done = run("segfault")
    assert (done.outcome, done.reason, done.metrics) == ("crashed", "killed by SIGSEGV", {})


def test_a_server_that_is_killed_ends_its_launch_and_the_next_case_gets_another(
    run: Callable[..., Launch], tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """SIGKILL during a launch: it crashed, with one sentence. Worker and child die, and the next has a new server."""
    path, ends = tmp_path / "pids", []

    def kill() -> None:
        ends.append(parent(conduct_play.pids(path)[0]))
        os.kill(ends[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    done = run("parent", FAKE_PID_FILE=str(path))
    killer.join()
    assert done.outcome == "crashed"
    assert done.reason == "the fork server was killed by SIGKILL, and its workers with it"
    assert all(gone(pid) for pid in (*ends, *conduct_play.pids(path)))
    assert run("tiny", FAKE_PID_FILE=str(path)).outcome == "ok"


def test_a_case_whose_server_died_is_not_started_fresh(fake: str, serve: Callable[..., Server]) -> None:
    """All launches of a case start the same way, so it ends."""
    server = serve(order(fake))
    os.kill(server.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(WorkerError, match="the fork server was killed by SIGKILL") as error:
            Worker(timeout=30, server=server)
        assert error.value.outcome == "crashed"


def test_a_server_dies_with_its_controller(fake: str, gone: Callable[[int], bool]) -> None:
    """If the controller is killed, server, worker and guard die."""
    program = f"""
        import time
        from ipexperf.bench.process import guard
        from ipexperf.conduct.server import Server, ServerSpec
        from ipexperf.conduct.worker import Worker
        server = Server(ServerSpec("plain", ({fake!r},)))
        server.ready()
        with Worker(timeout=30, server=server) as worker:
            print(server.pid, *guard.members(worker.pid), flush=True)
            time.sleep(100)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        everybody = list(map(int, controller.stdout.readline().split()))
        controller.kill()
        controller.wait(timeout=10)
    assert len(everybody) == 3
    assert all(gone(pid) for pid in everybody)


@pytest.mark.parametrize(
    ("stack", "variables", "reason"),
    [
        ("plain", {"FAKE_THREAD": "1"}, r"^the imports left 2 threads, .*\(left behind\)$"),
        ("plain", {"FAKE_END": "1"}, r"ended with exit status 3.*; the last words$"),
        ("plane", {}, "AbsentError: unknown stack 'plane'"),
    ],
    ids=["a second thread", "it dies", "it cannot import"],
)
def test_a_server_that_cannot_be_forked_says_why(
    stack: str, variables: dict[str, str], reason: str, fake: str, serve: Callable[..., Server]
) -> None:
    """The error names the thread that the imports left, or has the last line of the log."""
    with pytest.raises(ForkError, match=reason):
        serve(ServerSpec(stack, (fake, FORKED)), **variables)


@pytest.mark.parametrize("card", ["cuda", "xpu"])
def test_a_process_that_has_initialised_a_card_is_not_forked(card: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: ["1"])
    for used in (True, False):
        torch: Any = types.ModuleType("torch")
        setattr(torch, card, types.SimpleNamespace(is_initialized=lambda used=used: used))
        monkeypatch.setitem(sys.modules, "torch", torch)
        assert (f"{card} initialised" in bench_server.unsafe()) is used


def test_a_server_that_refuses_in_the_middle_of_a_case_is_an_error(
    fake: str, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fresh worker takes the place of a forked one."""
    server = serve(order(fake))
    monkeypatch.setattr(server, "ask", lambda *_, **__: {"unsafe": "the imports left 9 threads"})
    with pytest.raises(WorkerError, match="can't be forked any more: the imports left 9 threads") as error:
        Worker(timeout=30, server=server)
    assert error.value.outcome == "error"


def test_two_workers_of_one_server_draw_different_random_numbers(
    fake: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    """Python's and numpy's generators, temporary names, and uuids."""
    told = tmp_path / "draws"
    server = serve(order(fake, FORKED), FAKE_DRAWS=str(told))
    for _ in range(2):
        with Worker(timeout=30, server=server) as worker:
            worker.prepare(case("draws").to_json(), {"load": [fake, FORKED]})
    first, second = map(json.loads, told.read_text().splitlines())
    assert [name for name in first if first[name] == second[name]] == []


@pytest.mark.parametrize("asked", ["fresh", "fork"])
def test_a_wrong_label_about_the_start_fails_its_check(asked: str, fake: str, serve: Callable[..., Server]) -> None:
    """The kernel knows which process is the child of a server."""
    server = serve(order(fake)) if asked == "fresh" else None
    with Worker(timeout=30, server=server) as worker:
        worker.prepare(case().to_json(), {"load": [fake], "forked": asked == "fork"})
        [check] = [check for check in worker.ask("proof")["checks"] if check["name"] == "start"]
    assert (check["ok"], check["expected"]) == (False, asked)
    assert check["found"] != asked
