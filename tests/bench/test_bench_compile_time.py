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


def test_a_network_that_takes_long_to_trace_has_a_long_compile_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still but for the build, so loading weights is no part of it."""
    from bench_cases import bench, network

    from ipexperf.bench import api
    from ipexperf.bench.modes.infer_jit import JitSession

    now = [0.0]
    honest = JitSession.build

    def build(self: Any, *given: Any) -> Any:
        now[0] += 7.0
        return honest(self, *given)

    monkeypatch.setattr(api, "perf_counter", lambda: now[0])
    monkeypatch.setattr(JitSession, "build", build)
    workbench: Any = bench(network, "infer_jit", registry.devices.get("cpu"))
    session = workbench.mode.open(workbench)
    assert session.compile_time == 7.0
    session.close()
