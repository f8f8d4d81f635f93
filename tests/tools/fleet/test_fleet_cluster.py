"""Ray and its token, what it says of a lost host, and its nodes as hosts. Ray itself is not needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ipexperf.tools.fleet import cluster as clusters
from ipexperf.tools.fleet.cluster import RayFleet


def node(name: str, **more: Any) -> dict[str, Any]:
    """A node of Ray's."""
    labels = {"ipexperf.io/name": name, "ipexperf.io/room": "a", "ray.io/other": "x"}
    return {"NodeID": f"node {name}", "Alive": True, "Resources": {"ipexperf": 1}, "Labels": labels, **more}


def test_the_hosts_are_the_nodes_that_joined_and_those_that_died() -> None:
    dead = {"Alive": False, "DeathReason": 2, "DeathReasonMessage": "it was\n killed"}
    nodes = [
        node("two"),
        node("one"),
        node("head", Resources={}),
        {"NodeID": "of somebody else", "Alive": True, "Resources": {"ipexperf": 1}},
        node("three", **dead),
        node("one", **dead),
        node("four", **dead | {"DeathReason": 1}),
    ]
    fleet = object.__new__(RayFleet)
    fleet._ray = type("Ray", (), {"nodes": staticmethod(lambda: nodes)})
    assert [(host.name, host.place, host.gone) for host in fleet.hosts()] == [
        ("one", "node one", ""),
        ("three", "node three", "it was killed"),
        ("two", "node two", ""),
    ], "not those that left, nor one that came back"
    assert fleet.hosts()[0].labels == {"room": "a"}


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
    clusters.agree("auto")
    assert os.environ["RAY_AUTH_MODE"] == ("token" if demanded else "disabled")
