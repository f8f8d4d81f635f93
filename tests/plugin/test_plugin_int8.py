"""int8 from end to end: calibrated and saved by one process, loaded and measured by another. Needs torch."""

import importlib.util
import json

import pytest
from plugin_suite import ROOT, SHORT, Suite

from ipexperf.bench.machine import facts

pytestmark = pytest.mark.long

NETWORKS = ROOT / "tests" / "fakes" / "int8.py"
PATIENCE = 300
"""Workers that import torch and IPEX may have to share their cores with other tests."""

needs_torch = pytest.mark.torch
needs_pt2e = pytest.mark.skipif(
    not (facts.gather().pt2e and facts.gather().compiler), reason="needs torch with PT2E, its own or torchao's, and g++"
)
needs_ipex = pytest.mark.skipif(importlib.util.find_spec("intel_extension_for_pytorch") is None, reason="needs IPEX")


def run(suite: Suite, stack: str, mode: str = "infer_jit") -> str:
    """Measures the small network once, and returns what was said."""
    cell = ("--device", "cpu", "--dtype", "int8", "--mode", mode, "--stack", stack)
    chosen = (f"--perf-load={NETWORKS}", "--model", "pixels", *cell, *SHORT, "--perf-without=roof")
    result = suite.raw(*chosen, patience=PATIENCE)
    result.assert_outcomes(passed=1)
    return result.stdout.str()


def proven(suite: Suite) -> set[str]:
    """The checks that held in the last launch."""
    ((document,),) = suite.query("SELECT doc FROM launch ORDER BY rowid DESC LIMIT 1")
    return {check["name"] for check in json.loads(document)["proof"] if check["ok"]}


@needs_ipex
def test_ipex_int8_is_deployed_as_documented(torch_suite: Suite) -> None:
    """What one process calibrated, converted, traced, froze and saved, a fresh one loads, proves and measures."""
    run(torch_suite, "ipex")
    assert torch_suite.launches() == [("pixels", "ok")]
    assert {"dtype", "jit", "quantised_layers", "quantised_graph", "calibration"} <= proven(torch_suite)


@needs_pt2e
def test_a_compiled_int8_case_loads_a_program_that_another_process_exported(torch_suite: Suite) -> None:
    """A fresh process knows nothing of the quantisation, and loads, compiles, proves and measures what it left."""
    assert "calibrating pixels once" in run(torch_suite, "stock", "infer_compile")
    assert torch_suite.launches() == [("pixels", "ok")]
    assert {"dtype", "graphs", "freezing", "quantised_layers", "quantised_code", "calibration"} <= proven(torch_suite)
    (kept,) = (torch_suite.path / ".ipexperf" / "quantised").glob("*.pt")
    assert kept.name.startswith("pixels-stock-int8-program-")
