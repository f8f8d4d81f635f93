"""The mode load: the first step is the cold start in its phases, and there is only one a process."""

import importlib
import importlib.util
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.cell import Settings
from ipexperf.bench.modes import load
from ipexperf.case import NetworkCase
from ipexperf.result import METRICS

torch = pytest.importorskip("torch")

from bench_cases import network, opened

PHASES = ["build_time", "optimise_time", "trace_time", "first_inference"]


class Counted:
    """Builds a network, and counts how often."""

    def __init__(self) -> None:
        self.built = 0

    def __call__(self) -> Any:
        self.built += 1
        return network()


def wait() -> None:
    """The CPU has nothing to wait for."""


def test_nothing_is_built_before_the_step() -> None:
    """What is opened has its images; the step builds the network once, and the sample is its time."""
    build = Counted()
    session = opened(build, "load")
    assert (build.built, session.metrics(), session.network) == (0, {}, None)
    [(wall, *_)] = session.sample(wait, 1, 1)
    assert build.built == 1
    phases = session.metrics()
    assert list(phases) == PHASES
    assert all(METRICS[name].unit == "s" and METRICS[name].higher_is_better is False for name in PHASES)
    assert 0 < sum(phases.values()) <= wall
    assert phases["build_time"] > 0 < phases["trace_time"]


def test_what_was_loaded_keeps_its_proofs_and_its_accuracy() -> None:
    """After the start the session is that of infer_jit: frozen, in its dtype and right; the phases stay the first's."""
    session = opened(Counted(), "load")
    session.sample(wait, 1, 1)
    phases = dict(session.metrics())
    checks = session.proof()
    assert {"jit", "dtype", "stack"} <= {check.name for check in checks}
    assert [check for check in (*checks, *session.accuracy()[1]) if not check.ok] == []
    session.step()
    assert session.metrics() == phases
    assert session.items(16) == 1


def test_a_start_that_imports_much_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another stack may have imported the same before its start: then the two starts are not the same work."""
    for number in range(load.MODULES + 1):
        (tmp_path / f"imported_in_the_start_{number}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def build() -> Any:
        for number in range(load.MODULES + 1):
            importlib.import_module(f"imported_in_the_start_{number}")
        return network()

    loaded = opened(build, "load")
    loaded.step()
    assert [note for note in loaded.notes() if "modules during the cold start" in note]
    quiet = opened(Counted(), "load")
    quiet.step()
    assert not [note for note in quiet.notes() if "modules during the cold start" in note]


def test_what_tracing_imports_is_imported_before_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.14 imports sympy with its first trace, for half a second: IPEX had it, and seemed five times as fast."""
    honest, traced = torch.jit.trace, []
    monkeypatch.setattr(torch.jit, "trace", lambda *inputs, **more: traced.append(inputs[0]) or honest(*inputs, **more))
    loaded = opened(Counted(), "load")
    assert [type(network) for network in traced] == [torch.nn.ReLU]
    loaded.step()
    assert len(traced) == 2


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")
def test_what_a_model_needs_is_imported_before_its_start() -> None:
    """Stock paid for torchvision within the start, and IPEX did not, so that it seemed 1.6 times as fast."""
    case = NetworkCase("resnet18", "cpu", "fp32", "load", "stock", 32, 32, data="digits")
    request = {"case": case.to_json(), "settings": asdict(Settings())}
    code = "import json, sys\nfrom ipexperf.bench.process.worker import workbench\n"
    code += "assert 'torchvision' not in sys.modules\n"
    code += "workbench(json.loads(sys.argv[1]), print)\nprint('torchvision' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(request)], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
