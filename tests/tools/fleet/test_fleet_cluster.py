"""Ray's nodes as hosts. Ray itself is not needed."""

from typing import Any

from ipexperf.tools.fleet.cluster import RayFleet


def node(name: str, **more: Any) -> dict[str, Any]:
    """A node of Ray's."""
    labels = {"ipexperf.io/name": name, "ipexperf.io/device": "cpu", "ray.io/other": "x"}
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
    assert fleet.hosts()[0].labels == {"name": "one", "device": "cpu"}
