"""`ipexperf gate`: a run as an exit code, for a pipeline and for a bisection."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from history_records import CRASHED, ENVIRONMENT, make_case, make_launch, make_measurement

from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.judge.policy import Policy
from ipexperf.verdict import Structure, Verdict

BUSY = Verdict("invalid", "machine contended", contended=True)


def case(number):
    return make_case(f"model{number}")


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Record a run with these verdicts, and run `gate`. Return its exit status and its output."""
    monkeypatch.chdir(tmp_path)

    def ask(*verdicts, arguments=(), fails=False, moved=()):
        with History.open("ipexperf.db") as history:
            uid = history.start_run(ENVIRONMENT, {})
            for number, verdict in enumerate(verdicts):
                launches = (CRASHED if verdict.outcome == "failed" else make_launch(0, 0.0125),)
                history.record(uid, make_measurement(case(number), launches=launches), verdict)
            shifted = Verdict("platform_shift", "it moved", policy=Policy().for_run().label)
            settled = {case(number).uid: shifted for number in moved}
            history.settle(uid, {"line": "", "fails": fails}, settled, Policy().for_run())
            history.finish_run(uid, "finished")
        status = main(["gate", *arguments])
        return status, capsys.readouterr().out

    return ask


def verdicts(*outcomes):
    """A verdict for each of these outcomes."""
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
    """0 is fine, 1 is surely wrong, 125 is unknown. With --bisect only slowdowns are bad."""
    assert gate(*verdicts(*outcomes))[0] == pipeline
    assert gate(*verdicts(*outcomes), arguments=["--bisect"])[0] == bisect


def test_a_run_that_fails_as_a_whole_is_bad(gate):
    """Half of the cases became slower together, and none does by itself."""
    assert gate(*verdicts("ok", "platform_shift"), fails=True)[0] == 1
    assert gate(*verdicts("ok", "platform_shift"), fails=False)[0] == 0


def test_a_regressed_case_is_bad_although_the_platform_moved(gate):
    """Five such cases are a shift of the platform, and each failed its test. A bisection must not skip it."""
    five_regressed = verdicts(*["regressed"] * 5, "ok")
    for arguments in (["--bisect"], ["--case", case(3).id], ["--case", case(3).id, "--bisect"], []):
        status, output = gate(*five_regressed, arguments=arguments, fails=True, moved=range(5))
        assert status == 1
        assert "platform_shift: it moved" in output


@pytest.mark.parametrize(("outcome", "status"), [("inconclusive", 125), ("improved", 0)])
def test_a_case_that_moved_with_the_platform_has_the_outcome_of_its_test(gate, outcome, status):
    """A faster machine is fine. An inconclusive case stays inconclusive."""
    assert gate(*verdicts(outcome), arguments=["--bisect"], moved=[0])[0] == status
    assert gate(*verdicts(outcome), arguments=["--case", case(0).id], moved=[0])[0] == status
    assert gate(*verdicts(*[outcome] * 5), moved=range(5))[0] == status


def test_a_contended_case_is_unknown_and_an_unproven_one_is_bad(gate):
    """As in the run itself: a case that is invalid for another reason too is not called contended."""
    assert gate(BUSY)[0] == 125
    assert gate(*verdicts("invalid"))[0] == 1


def test_a_changed_structure_is_bad_if_it_failed_its_test(gate):
    """With `--perf-structure fail`, at any speed."""
    for fails, status in ((True, 1), (False, 0)):
        structure = Structure("changed", "the digest is not the baseline's", fails=fails)
        assert gate(Verdict("ok", "fine", structure=structure))[0] == status


def test_a_lost_optimisation_is_bad_on_a_busy_machine_and_for_a_bisection_too(gate):
    """A lost optimisation shows without a measurement of time. With `--perf-structure warn` it is not bad."""
    loss = "weaker instructions: convolution: jit:avx512_core -> jit:avx2 in 17 of 17 calls"
    for fails, status, bisect in ((True, 1, 1), (False, 125, 125)):
        structure = Structure("changed", "the digest is not the baseline's", losses=(loss,), fails=fails)
        busy = replace(BUSY, structure=structure)
        exit_status, output = gate(busy)
        assert exit_status == status
        assert (f"{case(0).id} (batch 16): lost: {loss}" in output) == fails
        assert gate(busy, arguments=["--bisect"])[0] == bisect


def test_a_run_in_which_too_few_cases_count_is_unknown(gate):
    """More than half could not be told. With `--case`, the case has its own result."""
    most = [*verdicts("ok"), BUSY, *verdicts("inconclusive")]
    assert gate(*most[:2])[0] == 0
    assert gate(*most)[0] == 125
    assert gate(*most, *verdicts("regressed"))[0] == 1
    assert gate(*most, arguments=["--case", case(0).id])[0] == 0


def test_a_gate_with_a_named_case_ignores_the_others(gate):
    status, output = gate(*verdicts("ok", "regressed"), arguments=["--case", case(0).id])
    assert (status, output.splitlines()[0].split(":")[0]) == (0, "fine")
    assert gate(*verdicts("ok", "regressed"), arguments=["--case", case(1).id])[0] == 1
    assert gate(*verdicts("ok"), arguments=["--case", "nobody"])[0] == 2


def test_the_output_names_each_case_that_is_not_fine(gate):
    """One line for the run and one for each case, with its reason."""
    status, output = gate(*verdicts("ok", "regressed", "inconclusive"))
    headline, *cases = output.splitlines()
    assert status == 1
    assert headline.startswith("not fine: run ")
    assert headline.endswith("(finished): 1 inconclusive, 1 ok, 1 regressed")
    assert cases == [
        "  model1-cpu-bf16-infer-ipex (batch 16): regressed: it is regressed",
        "  model2-cpu-bf16-infer-ipex (batch 16): inconclusive: it is inconclusive",
    ]


def test_a_run_without_cases_is_unknown(gate):
    """It was killed before its first case."""
    status, output = gate()
    assert status == 125
    assert "no case" in output


@pytest.fixture
def trouble(capsys):
    """Run a gate that fails with status 2, or 125 with --bisect. Return its one sentence."""

    def ask(*arguments):
        capsys.readouterr()
        statuses = [main(["gate", *arguments]), main(["gate", *arguments, "--bisect"])]
        captured = capsys.readouterr()
        assert statuses == [2, 125]
        assert captured.out == ""
        sentence, sentence_in_bisection = captured.err.splitlines()
        assert sentence == sentence_in_bisection
        assert sentence.startswith("ipexperf: ")
        return sentence

    return ask


@pytest.mark.parametrize(
    "words",
    [("no such",), ("last~9999",), ("--db", "nowhere.db"), ("--db", "odd://host/db"), ("--case", "nobody")],
)
def test_what_cannot_be_asked_is_no_verdict(gate, trouble, words):
    gate(*verdicts("ok"))
    trouble(*words)


def test_a_damaged_document_is_no_verdict(gate, capsys):
    """What no sentence foresees has its own, and Python's exit status 1 would be a verdict."""
    gate(*verdicts("ok"))
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        connection.execute("UPDATE launch SET doc = 'null'")
        connection.commit()
    assert (main(["gate"]), main(["gate", "--bisect"])) == (2, 125)
    assert capsys.readouterr().err.count("\n") == 2


def test_a_wrong_argument_is_no_verdict(gate, capsys):
    """argparse would end with 2, which is a bad commit for `git bisect run`."""
    gate(*verdicts("ok"))
    assert main(["gate", "--nonsense"]) == 2
    assert main(["gate", "--bisect", "--nonsense"]) == 125
    assert main(["gaet", "--bisect"]) == 125
    assert "error: " in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize(
    ("redirection", "statuses", "outcome"),
    [
        (">/dev/full", (2, 125), "ok"),
        (">&- 2>&-", (2, 125), "regressed"),
        ("2>/dev/full", None, "ok"),
        ("| true; exit ${PIPESTATUS[0]}", None, "regressed"),
    ],
)
def test_output_that_cannot_be_written_is_no_verdict(gate, outcome, redirection, statuses):
    """A reader that closes the pipe early, such as `head`, changes no verdict."""
    verdict, _ = gate(*verdicts(outcome))
    for arguments, status in zip(("", "--bisect"), statuses or (verdict, verdict), strict=True):
        line = f"{sys.executable} -m ipexperf.cli gate {arguments} {redirection}"
        process = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert process.returncode == status, process.stderr
        assert "Traceback" not in process.stderr
        assert "Exception" not in process.stderr
        if redirection == ">/dev/full":
            [sentence] = process.stderr.splitlines()
            assert sentence.startswith("ipexperf: the answer cannot be written to standard output: ")
