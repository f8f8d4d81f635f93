"""Markdown and GitHub's lines: nothing in a name or a message becomes markup or a command, or is cut in half."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_records import FAST, LONG, PLAIN, SLOW, measurement, summary, together

from ipexperf.plan.options import Options
from ipexperf.ratio import Ratio
from ipexperf.report import github, markdown
from ipexperf.report.markdown import CaseRow
from ipexperf.report.rerun import chosen, command, options
from ipexperf.verdict import Verdict

OK = Verdict("ok", "within the tolerance", ratio=Ratio(1.01, 0.99, 1.03))
BUSY = Verdict("invalid", "machine contended: steal 12 %", contended=True)


def rows(**verdicts):
    """A case of each name with its verdict."""
    cases = {"slow": FAST, "fine": PLAIN, "other": LONG}
    return [CaseRow(cases[name], 0.02, 400.0, verdict.outcome, verdict) for name, verdict in verdicts.items()]


def test_speed_ups_are_a_column_and_the_best_configuration_a_sentence(tmp_path):
    """As on a terminal. A case without one has a dash. Without any there is no column."""
    made = [measurement(PLAIN, 0.01, accuracy=0.9), measurement(FAST, 0.005, accuracy=0.9), measurement(LONG, 0.03)]
    told = summary_of(tmp_path, summary(made, {}, together(made[:2])))
    table = [line for line in told.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "| items/s | x fp32 | time vs baseline |" in table[0]
    fast, plain, long = (next(x for x in table if f"`{one.id}`" in x).split(" | ") for one in (FAST, PLAIN, LONG))
    assert fast[5].startswith(("2.0", "1.9"))
    assert fast[5].endswith(")")
    assert (plain[5], long[5]) == ("1.00", "-")
    assert "- resnet50, inference: bf16 on ipex, traced (infer\\_jit), is fastest: " in told
    assert "x fp32" not in markdown.text(rows(fine=OK), "", None)


def summary_of(folder, made):
    """What a job of GitHub gets."""
    path = folder / "summary.md"
    assert github.lines(made, "run", {"GITHUB_STEP_SUMMARY": str(path)}) == []
    return path.read_text()


@given(st.text(min_size=1, max_size=60))
def test_no_name_and_no_reason_breaks_the_table(text):
    """Each case is one line with as many cells as the header, and no tag of a message is left."""
    verdict = Verdict("regressed", text, ratio=Ratio(2.0))
    told = markdown.text([CaseRow(replace(PLAIN, model=text), 0.01, 1.0, "regressed", verdict)], text, None)
    table = [line for line in told.split("\n") if line.startswith("| ")]
    assert [line.replace("\\|", "").count("|") for line in table] == [8, 8]
    assert len(told.split("\n")) <= 9
    reason = next(line for line in told.split("\n") if line.startswith("- ")).rsplit("**regressed**", 1)[1]
    assert "<" not in reason


def test_a_message_is_not_markup():
    """An image, a link and a code fence are shown as text."""
    told = markdown.text(rows(slow=replace(SLOW, reason="<img src=x> [a](b) `c` **d**\n# e")), "", None)
    assert "&lt;img src=x&gt; \\[a\\](b) \\`c\\` \\*\\*d\\*\\* \\# e" in told


def test_a_long_text_is_cut_between_lines_and_counts_the_missing_ones():
    """It has no more bytes than allowed. With no room at all it is empty."""
    many = [replace(row, case=replace(row.case, batch=n)) for n in range(1, 200) for row in rows(slow=SLOW)]
    whole = markdown.text(many, "", "run")
    for limit in (len(whole.encode()) - 1, 5000, 900):
        told = markdown.text(many, "", "run", limit)
        assert len(told.encode()) <= limit
        assert "left out for lack of space" in told
        assert set(told.splitlines()[:-5]) <= set(whole.splitlines())
    assert markdown.text(many, "", "run", 100) == ""
    assert markdown.text(many, "", "run", len(whole.encode())) == whole


def test_a_message_cannot_contain_a_command():
    """A line end would begin another line, and so another command."""
    told = github.annotated(rows(slow=replace(SLOW, reason="bad\n::set-output name=x::y\r100%")), "", fails=True)
    assert len(told) == 1
    assert told[0].endswith("; bad%0A::set-output name=x::y%0D100%25")
    assert "\n" not in told[0]


def test_there_are_no_more_annotations_than_github_shows():
    """Ten of each kind. The last one counts the rest."""
    many = [replace(row, case=replace(row.case, batch=n)) for n in range(1, 26) for row in rows(slow=SLOW)]
    told = github.annotated(many, "", fails=True)
    assert len(told) == 10
    assert told[-1].endswith("and 16 more: see the summary")


def test_only_github_gets_its_lines(tmp_path):
    """The summary needs its file, and annotations need a job."""
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    made = summary([measurement(FAST, 0.02)], {FAST.uid: SLOW})
    assert github.lines(made, "run", {}) == []
    assert summary_of(tmp_path, made).startswith("before\n## ipexperf: 1 regressed\n")
    (line,) = github.lines(made, "run", {"GITHUB_ACTIONS": "true"})
    assert line.startswith("::error ")
    assert github.lines(summary([]), "run", {"GITHUB_STEP_SUMMARY": str(tmp_path / "none")}) == []


def test_a_full_or_missing_summary_is_reported(tmp_path):
    """It never grows beyond the limit, and a missing folder fails no run."""
    path, made = tmp_path / "summary.md", summary([measurement(FAST, 0.02)], {FAST.uid: SLOW})
    path.write_text("x" * (github.LIMIT - 20))
    (line,) = github.lines(made, "run", {"GITHUB_STEP_SUMMARY": str(path)})
    assert line.endswith("is full; nothing was appended")
    assert path.stat().st_size == github.LIMIT - 20
    (line,) = github.lines(made, "run", {"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "x")})
    assert "cannot be written: No such file or directory" in line


@pytest.mark.parametrize(
    ("knobs", "size", "against", "end"),
    [
        ((), None, None, "--perf-batch 8 --perf-size 224 --perf-launches 3"),
        ((), 224, None, "--perf-batch 8 --perf-launches 3"),
        ((("level", "O0"),), 224, None, "8 --perf-knobs level=O0 --perf-launches 3"),
        ((("against", "git"),), 224, "git:3ab level=O1", "--perf-batch 8 --perf-against='git:3ab level=O1'"),
        ((("against", "itself"),), 224, "", "--perf-batch 8 --perf-against=''"),
    ],
)
def test_a_command_reproduces_exactly_the_case(knobs, size, against, end):
    """Default values are left out. An arm is written as the user wrote it."""
    case = replace(PLAIN, knobs=knobs)
    told = command(options(case, plain_size=size), 3, against=against)
    assert told.startswith(
        "pytest suites/ --perf-model resnet50 --perf-device cpu --perf-dtype fp32 --perf-mode infer --perf-stack stock "
    )
    assert told.endswith(end)
    assert options(case, target="my.nets:build me").startswith("--perf-model 'my.nets:build me'")


def test_a_command_has_the_places_the_loaded_files_and_the_variables_of_the_run():
    """A user's repository has no `suites/`, a leaf is in the file of `--perf-load`, and variables choose kernels."""
    told = command(options(PLAIN, load=["tiny net.py"]), 3, places=["test_mine.py", "b c/test_b.py"])
    assert told.startswith("pytest test_mine.py 'b c/test_b.py' --perf-load 'tiny net.py' --perf-model resnet50 ")
    told = command(options(PLAIN), 3, places=[], variables={"ONEDNN_VERBOSE": "1", "LD_PRELOAD": "/opt/a b.so"})
    assert told.startswith("LD_PRELOAD='/opt/a b.so' ONEDNN_VERBOSE=1 pytest --perf-model resnet50 ")


def test_a_command_names_the_card_that_was_asked_for_by_its_index():
    asked = Options(indices={"xpu": 1})
    for device, told in (("xpu", "--perf-device xpu:1 "), ("cpu", "--perf-device cpu ")):
        case = replace(PLAIN, device=device, model="resnet18")
        assert told in chosen(case, asked)
