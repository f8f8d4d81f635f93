"""How long making the graph of a network takes is told by the modes that make one, and by no other."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.bench import registry

pytestmark = pytest.mark.torch
pytest.importorskip("torch")


@pytest.mark.parametrize(("mode", "graph"), [("infer_jit", True), ("infer", False), ("load", False)])
def test_only_a_graph_has_a_compile_time(mode: str, graph: bool) -> None:  # noqa: FBT001
    """`load` times its phases by itself, and builds nothing when it is opened."""
    from bench_cases import bench, network

    workbench: Any = bench(network, mode, registry.devices.get("cpu"))
    session = workbench.mode.open(workbench)
    assert (session.compile_time is not None) is graph
    session.close()
