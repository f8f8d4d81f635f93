"""`ipexperf gate`: a run as an exit code, for a pipeline and for a bisection."""

from __future__ import annotations

import pytest

from ipexperf.case import Case
from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.judge.policy import Policy
from ipexperf.result import Check, Launch, Measurement, Structure, Verdict

ENVIRONMENT = {"machine_key": "xeon-8480-2s", "hardware": {}, "software": {}, "variables": {}}
AT = "2026-05-01T10:00:00Z"
GOOD = Launch(0, "ok", metrics={"step_time": 0.0125}, proof=(Check("dtype", ok=True, found="bf16", expected="bf16"),))
BUSY = Launch(0, "ok", metrics={"step_time": 0.0125}, contended="the hypervisor took 14%")
UNPROVEN = Launch(
    0, "ok", metrics={"step_time": 0.0125}, contended="the hypervisor took 14%",
    proof=(Check("dtype", ok=False, found="fp32", expected="bf16"),),
)  # fmt: skip
CRASHED = Launch(0, "crashed", "signal 11")


def case(number):
    return Case(f"model{number}", "cpu", "bf16", "infer", "ipex", 16, 224)


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Records a run of these verdicts and asks for it: the exit status, and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IPEXPERF_DB", raising=False)

    def ask(*verdicts, arguments=(), fails=False, launch=GOOD, moved=()):
        with History.open("ipexperf.db") as history:
            uid = history.start_run(ENVIRONMENT, {})
            for number, verdict in enumerate(verdicts):
                one = CRASHED if verdict.outcome == "failed" else launch
                history.record(uid, Measurement(case(number), (one,), ENVIRONMENT, AT, AT), verdict)
            shifted = Verdict("platform_shift", "it moved", policy=Policy().for_run().label)
            settled = {case(number).uid: shifted for number in moved}
            history.settle(uid, {"line": "", "fails": fails}, settled, Policy().for_run())
            history.finish_run(uid, "finished")
        status = main(["gate", *arguments])
        return status, capsys.readouterr().out

    return ask


def said(*outcomes):
    return [Verdict(outcome, f"it is {outcome}") for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "pipeline", "bisect"),
    [
        (("ok",), 0, 0),
        (("improved", "ok"), 0, 0),
        (("regressed", "ok"), 1, 1),
        (("failed", "ok"), 1, 125),
        (("invalid", "ok"), 1, 125),
        (("failed", "regressed"), 1, 1),
        (("inconclusive", "ok"), 0, 125),
        (("no_baseline", "not_comparable", "inconclusive"), 125, 125),
        (("platform_shift",), 125, 125),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_each_outcome_has_its_exit_status(gate, outcomes, pipeline, bisect):
    """0 is fine, 1 is known to be wrong, 125 is what nobody can tell; a bisection is about slowdowns alone."""
    assert gate(*said(*outcomes))[0] == pipeline
    assert gate(*said(*outcomes), arguments=["--bisect"])[0] == bisect


def test_a_run_that_fails_as_a_whole_is_bad(gate):
    """Half of the cases slowed down together: no single one says so."""
    assert gate(*said("ok", "platform_shift"), fails=True)[0] == 1
    assert gate(*said("ok", "platform_shift"), fails=False)[0] == 0


def test_what_regressed_by_itself_is_bad_though_the_platform_moved(gate):
    """Five such cases are a shift of the platform, and each of them failed its test: a bisection must not skip it."""
    every = said(*["regressed"] * 5, "ok")
    for arguments in (["--bisect"], ["--case", case(3).id], ["--case", case(3).id, "--bisect"], []):
        status, told = gate(*every, arguments=arguments, fails=True, moved=range(5))
        assert status == 1
        assert "platform_shift: it moved" in told


@pytest.mark.parametrize(("outcome", "status"), [("inconclusive", 125), ("improved", 0)])
def test_what_moved_with_the_platform_is_what_its_test_was(gate, outcome, status):
    """A machine that became faster as a whole is fine; what was no alarm and no all-clear stays neither."""
    assert gate(*said(outcome), arguments=["--bisect"], moved=[0])[0] == status
    assert gate(*said(outcome), arguments=["--case", case(0).id], moved=[0])[0] == status
    assert gate(*said(*[outcome] * 5), moved=range(5))[0] == status


def test_what_the_machines_other_work_spoilt_is_not_bad(gate):
    """As in the run itself: contended alone fails nothing, contended and unproven does."""
    assert gate(*said("invalid"), launch=BUSY)[0] == 125
    assert gate(*said("invalid"), launch=UNPROVEN)[0] == 1


def test_a_changed_structure_is_bad_where_it_failed_its_test(gate):
    """With --perf-structure fail the verdict says so, whatever the speed."""
    for fails, status in ((True, 1), (False, 0)):
        ran = Structure("changed", "the digest is not the baseline's", fails=fails)
        assert gate(Verdict("ok", "fine", structure=ran))[0] == status


def test_one_case_can_be_asked_for(gate):
    """The others say nothing then."""
    status, told = gate(*said("ok", "regressed"), arguments=["--case", case(0).id])
    assert (status, told.splitlines()[0].split(":")[0]) == (0, "fine")
    assert gate(*said("ok", "regressed"), arguments=["--case", case(1).id])[0] == 1
    assert gate(*said("ok"), arguments=["--case", "nobody"])[0] == 2


def test_it_says_what_is_not_fine(gate):
    """One line for the run and one for each such case, with its reason."""
    status, told = gate(*said("ok", "regressed", "inconclusive"))
    first, *rest = told.splitlines()
    assert status == 1
    assert first.startswith("not fine: run ")
    assert first.endswith("(finished): 1 inconclusive, 1 ok, 1 regressed")
    assert rest == [
        "  model1-cpu-bf16-infer-ipex (batch 16): regressed: it is regressed",
        "  model2-cpu-bf16-infer-ipex (batch 16): inconclusive: it is inconclusive",
    ]


def test_a_run_without_cases_cannot_be_told(gate):
    """It was killed before its first case."""
    status, told = gate()
    assert status == 125
    assert "no case" in told
