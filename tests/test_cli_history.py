"""The subcommands that look into a history: what they print, and how they end."""

import re
import subprocess
import sys

import pytest
from cli_answers import refused, run
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement

from ipexperf.history import History
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.judge.policy import Policy
from ipexperf.ratio import Ratio
from ipexperf.report.lines import Page
from ipexperf.result import Launch
from ipexperf.verdict import Verdict

DIRTY = {**ENVIRONMENT, "git": {**ENVIRONMENT["git"], "dirty": True, "changes": "0badc0de"}}


def measured(model, *launches):
    return make_measurement(make_case(model), launches=launches, environment=DIRTY)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        for day in (1, 2):
            uid = history.start_run(DIRTY, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            good = make_launch(0, 0.0125)
            bad = Launch(0, "crashed", "signal 11 [bold]", log="one\ntwo\nSegmentation fault")
            history.record(uid, measured("resnet50", good), Verdict("ok", "within the noise", ratio=Ratio(1.02)))
            history.record(uid, measured("vgg16", bad), Verdict("failed", "crashed: signal 11 [bold]"))
            history.finish_run(uid, "finished")
    return tmp_path / "ipexperf.db"


def test_show_alone_lists_the_newest_runs_first(path, capsys):
    """One line a run, with its machine, its software and the count of its verdicts."""
    lines = [line for line in run(capsys, "show").splitlines() if "xeon" in line]
    assert [line.split()[1] for line in lines] == ["2026-05-02", "2026-05-01"]
    assert "1 failed, 1 ok" in lines[0]
    assert "2.8.0+cpu" in lines[0]
    assert len([line for line in run(capsys, "show", "--limit", "1").splitlines() if "xeon" in line]) == 1


@pytest.mark.parametrize(
    "command", [["show"], ["show", "last"], ["show", "last", "--full"], ["trend"], ["compare", "first"]]
)
def test_a_narrow_terminal_has_the_whole_name_of_each_case(path, capsys, monkeypatch, command):
    """And every number in 80 columns: a table that cuts names tells no case from another."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(Page, "width", Page.width)  # restored afterwards
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    out = re.sub(r"\x1b\[\d+m", "", run(capsys, *command))
    assert max(map(len, out.splitlines())) <= 80
    assert ("resnet50-cpu-bf16-infer-ipex" in out) == ("12.5 ms" in out) == (command != ["show"])


def test_show_is_the_table_of_the_run_the_worst_first(path, capsys):
    """With the reason below what failed, and nothing taken for markup. The rest is behind --full."""
    out = run(capsys, "show", "last")
    assert "a1b2c3d4e5f6 on main (dirty: 0badc0de)" in out
    rows = [line for line in out.splitlines() if re.search("  (ok|failed)$", line)]
    assert [row.split()[0] for row in rows] == ["vgg16-cpu-bf16-infer-ipex", "resnet50-cpu-bf16-infer-ipex"]
    assert f"{rows[0]}\n    crashed: signal 11 [bold]\n" in out
    assert re.search(r" 12\.5 ms +1,280 .* \+2\.0 % ", rows[1])
    assert "Segmentation fault" not in out
    whole = run(capsys, "show", "last", "--full")
    assert whole.startswith(out.rpartition("every number:")[0])
    assert "vgg16-cpu-bf16-infer-ipex (batch 16): failed\n  crashed: signal 11 [bold]\n" in whole
    assert "\n  launch 0: crashed: signal 11 [bold]\n      one\n      two\n      Segmentation fault\n" in whole


def test_show_tells_what_was_noted_and_what_was_measured_again(path, capsys):
    """Launches of which there is more to know are told; one that was measured again is not counted."""
    busy = "other processes took 50 % (limit 25 %)"
    launches = (
        Launch(0, "contended", busy, metrics={"step_time": 9.0}, contended=busy, log="a warning"),
        Launch(1, "ok", metrics={"step_time": 0.0125}, notes=("ended with fewer samples than asked: 7 of 20",)),
    )
    with History.open(path) as history:
        uid = history.start_run(DIRTY, {})
        history.record(uid, measured("resnet50", *launches), Verdict("ok", "within the noise"))
    out = run(capsys, "show", uid, "resnet50-cpu-bf16-infer-ipex")
    assert re.search(r"\nstep_time +12\.5 ms +12\.5 ms +12\.5 ms +1 ", out)
    assert f"  launch 0: contended: {busy}; it was measured again, and does not count" in out
    assert "  launch 1: ended with fewer samples than asked: 7 of 20" in out
    assert "a warning" not in out


def test_show_tells_what_a_run_says_as_a_whole(path, capsys):
    """The line that was settled at the end."""
    with History.open(path) as history:
        history.settle(history.find_run("last").uid, {"line": "platform shift: 20 % slower"}, {}, Policy())
    assert "\nplatform shift: 20 % slower\n" in run(capsys, "show", "last")


def test_show_names_what_a_search_found_for_a_case_of_the_run(path, capsys):
    """One line under its heading, with both ends and the cost; a run without such a case has no heading."""
    assert "BISECTED" not in run(capsys, "show", "last")
    search = BisectionRecord(
        case=make_case(),
        good="lock:good.txt",
        bad="this interpreter",
        outcome="culprit",
        reason="torch is enough, and without it the bad end is not slower",
        culprits=(Change("package", "torch", "2.7.0", "2.8.0"),),
        culprit=Ratio(1.08, 1.05, 1.11),
        machine_key=ENVIRONMENT["machine_key"],
        started_at="2026-05-03T10:00:00Z",
        finished_at="2026-05-03T10:10:00Z",
    )
    with History.open(path) as history:
        history.record_bisection(search, "suite")
    lines = [line.strip() for line in run(capsys, "show", "last").splitlines()]
    assert lines[lines.index("BISECTED") + 1] == (
        "2026-05-03 resnet50-cpu-bf16-infer-ipex, lock:good.txt to this interpreter: "
        "CULPRIT: torch: 2.7.0 -> 2.8.0, +8.0 % (+5.0 to +11.0)"
    )


def test_trend_follows_a_metric(path, capsys):
    """Points in the order of time, narrowed by any axis."""
    out = run(capsys, "trend", "--model", "resnet50", "--since", "2026-05-01", "--branch", "main")
    assert [line.split()[0] for line in out.splitlines() if ":" in line] == ["2026-05-01", "2026-05-02"]
    assert "resnet50-cpu-bf16-infer-ipex, batch 16, step_time on xeon-8480-2s" in out
    assert "1,280 items/s" in run(capsys, "trend", "--metric", "throughput", "--limit", "1")


def test_a_trend_of_nothing_says_which_filter_names_what_is_not_there(path, capsys):
    told = run(capsys, "trend", "--model", "resnet05")
    assert told == "No step_time matches: unknown model 'resnet05': did you mean resnet50?\n"
    told = run(capsys, "trend", "--device", "cpu", "--stack", "openvino")
    assert told == "No step_time matches: unknown stack 'openvino': choose from ipex\n"
    assert run(capsys, "trend", "--branch", "nowhere") == "No step_time matches: leave out a filter\n"


def test_the_history_is_named_by_option_or_environment(path, capsys, monkeypatch, tmp_path):
    """`--db` wins over IPEXPERF_DB, which wins over ipexperf.db."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert refused(capsys, "show") == (
        "ipexperf: there is no history ipexperf.db; a run of the suite creates one, or name another file.\n"
    )
    monkeypatch.setenv("IPEXPERF_DB", str(path))
    assert "2026-05-02" in run(capsys, "show")
    assert "missing.db" in refused(capsys, "show", "--db", "missing.db")


@pytest.mark.process
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_closed_pipe_ends_quietly(path, form):
    """`ipexperf show last | head` says nothing about pipes."""
    command = [sys.executable, "-m", "ipexperf.cli", "show", "last", *form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        error = process.stderr.read()
        status = process.wait(timeout=60)
    assert (status, error) == (0, "")
