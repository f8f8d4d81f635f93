"""Hosts of Ray while an agent starts there, and a head that is gone. Ray itself is not needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import cluster as clusters
from ipexperf.tools.fleet.cluster import RayCluster
from ipexperf.tools.fleet.hosts import Host

HOST = Host("a", "node-a")


class Starting:
    """A module like Ray, whose agent is ready after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.killed = 0

    def remote(self, _: type) -> Any:
        return self

    def options(self, **_: Any) -> Any:
        made = type("Made", (), {"__ray_ready__": type("Ready", (), {"remote": staticmethod(lambda: "started")})})
        return type("Agents", (), {"remote": staticmethod(lambda: made)})

    def wait(self, requests: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        del timeout
        self.looks -= 1
        return ([], requests) if self.looks > 0 else (requests, [])

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeID": HOST.node}]

    def kill(self, _: Any) -> None:
        self.killed += 1


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[RayCluster, Starting]]:
    """A cluster whose host is free for so many looks, and then no longer."""

    def make(looks: int, *, free: int) -> tuple[RayCluster, Starting]:
        cluster, module = object.__new__(RayCluster), Starting(looks)
        left = iter([True] * free)
        monkeypatch.setattr(cluster, "_ray", module, raising=False)
        monkeypatch.setattr(cluster, "_pinned_to", lambda _: None)
        monkeypatch.setattr(cluster, "free", lambda: {HOST.name: next(left, False)})
        return cluster, module

    return make


@pytest.mark.parametrize("wait", [True, False])
def test_an_agent_that_starts_slowly_is_not_taken_for_another_run(
    starts: Callable[..., tuple[RayCluster, Starting]], *, wait: bool
) -> None:
    """The agent itself has taken the host. The run neither waits nor refuses it."""
    cluster, module = starts(5, free=1)
    said: list[str] = []
    cluster.channel(HOST, said.append, wait=wait)
    assert said == []
    assert module.killed == 0


def test_a_host_that_another_run_has_is_waited_for_or_refused(
    starts: Callable[..., tuple[RayCluster, Starting]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, _ = starts(5, free=0)
    said: list[str] = []
    cluster.channel(HOST, said.append, wait=True)
    assert said == ["a: waiting for another run of the fleet"]
    monkeypatch.setattr(clusters, "START_SECONDS", 0.0)
    for free in (0, 1):  # also one that somebody else took in the same moment
        cluster, module = starts(5, free=free)
        with pytest.raises(UsageError, match="another run measures there"):
            cluster.channel(HOST, said.append, wait=False)
        assert module.killed == 1


def test_a_head_that_does_not_answer_is_an_error_after_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CALL_SECONDS", 0.01)
    answers = threading.Event()
    cluster = object.__new__(RayCluster)
    monkeypatch.setattr(cluster, "_ray", type("Silent", (), {"nodes": staticmethod(answers.wait)}), raising=False)
    with pytest.raises(UsageError, match="the head of the fleet did not answer within 0 s"):
        cluster.alive(HOST)
    answers.set()


def test_the_reason_for_a_lost_host_is_one_of_the_lines_that_ray_prints() -> None:
    error = Exception("The actor 94fe is unavailable\nit died because its node has died. Node Id: 1")
    assert clusters._brief(error) == "it died because its node has died. Node Id: 1"


@pytest.mark.parametrize("demanded", [False, True])
def test_a_token_is_sent_to_a_head_that_demands_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, demanded: bool
) -> None:
    """All processes of a cluster must agree, and a token may be here that its head has never seen."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    refusal = "InvalidAuthToken: AuthenticationError" if demanded else ""
    monkeypatch.setattr(clusters, "_refusal", lambda _, mode: "" if mode == "token" else refusal)
    file = tmp_path / ".ray" / "auth_token"
    file.parent.mkdir()
    file.write_text("0" * 64)
    clusters.agree("auto", "--perf-fleet")
    assert os.environ["RAY_AUTH_MODE"] == ("token" if demanded else "disabled")
