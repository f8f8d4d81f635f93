"""`ipexperf explain` on a history that somebody else wrote: it says what is slower, and nothing that is run."""

from pathlib import Path

import pytest
from history_records import ENVIRONMENT, make_measurement

from ipexperf import cli
from ipexperf.case import FunctionCase
from ipexperf.history import History
from ipexperf.judge.policy import PairPolicy
from ipexperf.ratio import Ratio
from ipexperf.verdict import PairsEvidence, Verdict

PLANTED = "import pathlib\n\npathlib.Path('ran').touch()\n\n\ndef test_it(perf):\n    perf(sum, [1])\n"


@pytest.mark.parametrize(
    ("test", "arm", "said"),
    [
        ("../planted.py::test_it", "git:HEAD", "the test '../planted.py::test_it', which is not in"),
        ("-pplanted", "git:HEAD", "the test '-pplanted', which is not in"),
        ("test_it.py::test_it", "./python", "name the other arm, --against './python'"),
        ("test_it.py::test_it", "LD_PRELOAD=./evil.so", "name the other arm"),
        ("test_it.py::test_it", "PYTHONPATH=evil", "name the other arm"),
        ("test_it.py::test_it", "ZE_ENABLE_ALT_DRIVERS=./evil.so", "name the other arm"),
        ("test_it.py::test_it", "evil-package==1.0", "name the other arm"),
        ("test_it.py::test_it", "other", "name the other arm"),
    ],
)
def test_a_planted_history_runs_nothing(
    test: str, arm: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    (here / ".git").mkdir(parents=True)
    (here / "other").mkdir()
    for path in (tmp_path / "planted.py", here / "planted.py", here / "test_it.py"):
        path.write_text(PLANTED)
    (here / "python").write_text("#!/bin/sh\ntouch ran\n")
    (here / "python").chmod(0o755)
    monkeypatch.chdir(here)
    case = FunctionCase(test, "cpu")
    slower = Verdict(
        "regressed", "slower", ratio=Ratio(2.0, 1.9, 2.1), evidence=PairsEvidence(arm, "4 pairs", (), (0.7,) * 4)
    )
    with History.open("planted.db") as history:
        uid = history.start_run(ENVIRONMENT, {"suite": "pull"})
        history.record(uid, make_measurement(case), slower, PairPolicy())
        history.finish_run(uid, "finished")

    status = cli.main(["explain", "--perf-db=planted.db", "last", "--", case.id])

    assert (status, (here / "ran").exists()) == (2, False)
    assert said in capsys.readouterr().err
