"""Real workers: networks that fail on purpose end as said, and the device runs the next case."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench import loading
from ipexperf.compare import arm
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.options import WITHOUT, Options
from ipexperf.recorder import Recorder
from ipexperf.tools.evidence import NETWORKS, features, records
from ipexperf.tools.evidence.cover import CoveringCase, Planner
from ipexperf.tools.evidence.experiment import EvidenceRun
from ipexperf.tools.evidence.features import Row

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.process
PATH = str(NETWORKS)


@pytest.fixture
def planner(registries: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planner:
    """The planner of this CPU."""
    monkeypatch.chdir(tmp_path)
    loading.load([PATH])
    options = Options(device=("cpu",), load=(PATH,), samples=8, seconds=0.1, without=WITHOUT, budget=900.0)
    return Planner("cpu", options, arm.facts(ArmWords(), options))


def test_failures_end_as_said_and_the_next_case_runs(planner: Planner) -> None:
    """Out of memory is torch's own error at a limit, and a crash is a signal. The last case decodes as always."""
    planned = planner.make().planned
    failing = [one for one in planned if not features.is_whole(one.case)]
    decode = next(one for one in planned if one.case.mode == "decode" and one.case.stack == "stock")
    assert len(failing) == 2
    chosen: list[CoveringCase] = [*failing, decode]
    options = planner._options
    experiment = EvidenceRun(planner, chosen, options, lambda _: None)
    recorder = Recorder(options, Path.cwd(), ("evidence",), lambda _: None)
    try:
        experiment.run(recorder)
    finally:
        experiment.close()
    outcomes = {one.case.model: one.outcome for one in experiment.records}
    assert outcomes == {
        "provokes_out_of_memory": "out_of_memory",
        "provokes_crashed": "crashed",
        "evidence_decoder": "ok",
    }
    sound = experiment.records[-1]
    assert sound.sound, sound.why
    assert sound.fingerprint
    here = records.facts(experiment.environment["hardware"])
    rows = [records.resolved(row, experiment.records, {}, here, "no time") for row in planner.rows]
    held = {one.row for one in rows if one.state == "held"}
    assert {
        Row("failure", (("outcome", "out_of_memory"),)),
        Row("failure", (("outcome", "crashed"),)),
        Row("mode", (("mode", "decode"), ("dtype", decode.case.dtype), ("stack", "stock"))),
    } <= held
