"""The text of a comment, and how it reaches a pull request: a forge of our own answers."""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from forge_server import HEAD, Forge, planted, serving
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement
from hypothesis import given
from hypothesis import strategies as st

from ipexperf import cli
from ipexperf.errors import UsageError
from ipexperf.history import History
from ipexperf.judge.policy import PairPolicy
from ipexperf.outcomes import OUTCOMES
from ipexperf.ratio import Ratio
from ipexperf.tools.forge import comment, forges
from ipexperf.verdict import PairsEvidence, Structure, Verdict

PAIRS = PairsEvidence("git:main", "4 pairs", ("mypkg/nets.py:15 'x' -> 'y'",), (0.6,) * 4)
SLOWER = Verdict("regressed", ratio=Ratio(1.82, 1.74, 1.91), evidence=PAIRS)
FASTER = Verdict("improved", ratio=Ratio(0.8, 0.78, 0.83), evidence=PAIRS)
SAME = Verdict("ok", ratio=Ratio(1.001, 0.99, 1.01), evidence=PAIRS)
LOST = replace(
    SAME,
    structure=Structure("changed", "other kernels", ("convolution: a -> b",), ("relu no longer fused",), fails=True),
)


def recorded(path: Path, *verdicts: Verdict, **of_launch: Any) -> str:
    """A history with a run of a case for each of these verdicts."""
    with History.open(path) as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-04T08:00:00Z", "suite": "pull"})
        for number, verdict in enumerate(verdicts):
            case = make_case(f"net{number}")
            launch = replace(make_launch(0, 0.01), **of_launch)
            history.record(uid, make_measurement(case, launches=(launch,)), verdict, PairPolicy())
        history.finish_run(uid, "finished")
    return str(path)


@pytest.fixture
def forge() -> Iterator[Forge]:
    with serving() as made:
        yield made


@pytest.fixture
def job(forge: Forge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Forge:
    """This process is a job of GitHub, of pull request 5."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 5}}))
    for name, value in {**forge.github(), "GITHUB_EVENT_PATH": str(event)}.items():
        monkeypatch.setenv(name, value)
    return forge


def said(database: str) -> comment.Contents:
    with History.open(database, create=False) as history:
        return comment.of(history.show("last"))


def body(contents: comment.Contents) -> str:
    return comment.text(contents, "performance", "https://forge.test/files")


def test_the_comment_says_what_is_worse_and_faster_and_folds_the_rest(tmp_path: Path) -> None:
    made = said(recorded(tmp_path / "a.db", SAME, FASTER, SLOWER, SAME))
    lines = body(made).splitlines()
    assert lines[:2] == ["<!-- ipexperf: performance -->", "### ipexperf: 1 worse, 1 faster"]
    told = "82.0 % slower (+74.0 to +91.0 %; 4 pairs); mypkg/nets.py:15 'x' -> 'y'"
    assert lines[3] == f"- 🔴 `net2-cpu-bf16-infer-ipex`: `{told}`"
    assert "<details><summary>2 others: 2 ok</summary>" in lines
    assert "| `net0-cpu-bf16-infer-ipex` | ok | `at most 1.0 % slower (-1.0 to +1.0 %; 4 pairs)` |" in lines
    assert lines[-1].endswith("`xeon-8480-2s, beside git:main` · [files of this run](https://forge.test/files)</sub>")


def test_a_run_that_fails_as_a_whole_has_a_comment_and_a_merely_contended_case_none(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "a.db", replace(SAME, outcome="platform_shift"))
    with History.open(whole) as history:
        history.settle(history.runs(1)[0].uid, {"line": "all slower", "fails": True}, {}, PairPolicy())
    assert said(whole).fails
    assert "### ipexperf: the run as a whole is slower\n\n`all slower`\n" in body(said(whole))
    busy = Verdict("invalid", "machine contended", contended=True)
    assert not said(recorded(tmp_path / "b.db", busy, contended="others took 50%")).worse


def test_what_can_only_lose_is_said_first_of_its_reasons(tmp_path: Path) -> None:
    """It fails without a clock, so a hosted runner may say it."""
    lines = body(said(recorded(tmp_path / "a.db", LOST))).splitlines()
    assert lines[4:6] == ["  - `lost: relu no longer fused`", "  - `convolution: a -> b`"]


def test_a_comment_is_no_longer_than_a_forge_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comment, "LIMIT", 900)
    cut = body(said(recorded(tmp_path / "a.db", SLOWER, *([SAME] * 30))))
    assert len(cut.encode()) <= 900
    assert "lines left out for lack of space" in cut
    assert cut.count("<details>") == cut.count("</details>") == 1


def test_there_is_one_comment_and_it_is_kept_up_to_date(
    job: Forge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside those of others, however many. Where nothing changed there is none, and an older one says so."""
    job.comments.update(dict.fromkeys(range(1, 120), "somebody else's"))
    same = ["comment", "--db", recorded(tmp_path / "same.db", SAME), "--post"]
    slow = ["comment", "--db", recorded(tmp_path / "slow.db", SLOWER), "--post"]
    assert cli.main(same) == 0
    assert len(job.comments) == 119
    assert cli.main(slow) == 0
    assert cli.main(slow) == 0
    assert job.comments.keys() - range(1, 120) == {120}
    assert "1 worse" in job.comments[120]
    assert "(https://forge.test/me/mine/actions/runs/77)" in job.comments[120]
    assert cli.main(same) == 0
    assert "nothing slower, nothing faster" in job.comments[120]
    assert capsys.readouterr().out.splitlines()[0] == "no comment is needed: nothing slower, nothing faster"


def test_another_name_is_another_comment(job: Forge, tmp_path: Path) -> None:
    for name in ("kernels", "networks"):
        assert cli.main(["comment", "--db", recorded(tmp_path / f"{name}.db", SLOWER), "--name", name, "--post"]) == 0
    assert [body.splitlines()[0] for body in job.comments.values()] == [
        "<!-- ipexperf: kernels -->",
        "<!-- ipexperf: networks -->",
    ]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (403, "its token may not comment here: a job of a fork has none that may"),
        (404, "there is no such pull request"),
        (500, "Internal Server Error"),
    ],
)
def test_a_forge_that_refuses_is_one_sentence(
    job: Forge, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int, sentence: str
) -> None:
    job.refusals.append(status)
    assert cli.main(["comment", "--db", recorded(tmp_path / "a.db", SLOWER), "--post"]) == cli.USAGE_ERROR
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert "secret" not in told


def test_a_forge_that_is_away_is_one_sentence() -> None:
    api = forges.Api("http://127.0.0.1:9", ("Authorization", "Bearer secret"))
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:9 does not answer: "):
        api.ask("GET", "commits/x/pulls")


def test_the_data_of_a_fork_becomes_a_comment_in_a_job_that_runs_none_of_its_code(
    job: Forge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the pull request of the commit that was measured. The other job prints what it says as data."""
    event, data = tmp_path / "event.json", tmp_path / "comment.json"
    event.write_text(json.dumps({"workflow_run": {"head_sha": HEAD}}))
    assert cli.main(["comment", "--db", recorded(tmp_path / "a.db", SLOWER), "--json"]) == 0
    data.write_text(capsys.readouterr().out)
    assert cli.main(["comment", "--data", str(data), "--post", "--link", "https://forge.test/files"]) == 0
    assert job.log[-1] == "POST /repos/me/mine/issues/5/comments"
    assert job.comments[1] == body(said(str(tmp_path / "a.db")))
    event.write_text(json.dumps({"workflow_run": {"head_sha": "unknown"}}))
    assert cli.main(["comment", "--data", str(data), "--post"]) == cli.USAGE_ERROR


TEXTS = st.text(max_size=20) | st.sampled_from(
    [
        "`@everybody",
        "&#64;everybody",
        "<!-- <!-- ipexperf: performance --> -->",
        "a|b\\|`@x",
        "x\n/merge",
        "![](https://x.test/a.png) https://x.test",
        "fixes #1 \u202e \ud800 \x00",
        "</details><b>",
    ]
)
LINES = st.lists(
    st.builds(
        comment.Line, TEXTS, st.sampled_from([*OUTCOMES, "interrupted"]), TEXTS, st.lists(TEXTS, max_size=5).map(tuple)
    ),
    max_size=3,
).map(tuple)


def test_what_is_not_known_is_not_called_as_fast(tmp_path: Path) -> None:
    """Of a run that was cut off most cases never began."""
    doubt = Verdict("inconclusive", ratio=Ratio(1.05, 1.02, 1.08), bounds=(0.98, 1.12), evidence=PAIRS)
    made = said(recorded(tmp_path / "a.db", SAME, doubt, doubt))
    assert made.title == "2 of 3 not known"
    assert "| inconclusive | `could not tell: 2.0 % faster to 12.0 % slower (4 pairs); more than " in body(made)
    assert cli.main(["gate", "--db", str(tmp_path / "a.db")]) == 125


CONTENTS = st.builds(comment.Contents, LINES, LINES, LINES, TEXTS, st.booleans(), TEXTS)


def without_code(contents: comment.Contents) -> str:
    """The comment without what is between backticks of one line. In a table a pipe ends them, unless it is escaped."""
    table = re.sub(r"(?m)^\|.*$", lambda line: re.sub(r"`(?:[^`|]|\\\|)*`", "``", line[0]), body(contents))
    return re.sub(r"`[^`\n]*`", "``", table)


@given(CONTENTS)
def test_no_text_of_a_comment_is_anything_but_code(contents: comment.Contents) -> None:
    """The rest is as if all were `x`: no mention, marker, reference, link, picture, HTML or command is a stranger's."""
    texts: dict[str, Any] = {name: getattr(contents, name) and "x" for name in ("whole", "machine")}
    for part in ("worse", "faster", "rest"):
        texts[part] = tuple(
            replace(one, name="x", found=one.found and "x", reasons=tuple("x" * len(one.reasons)))
            for one in getattr(contents, part)
        )
    assert without_code(contents) == without_code(replace(contents, **texts))
    assert all(sign.isprintable() or sign == "\n" for sign in body(contents))


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(CONTENTS, st.sampled_from(["worse", "rest", "whole", "fails", "machine", "other"]), DOCUMENTS)
def test_data_is_read_or_refused_in_a_sentence(contents: comment.Contents, field: str, value: Any) -> None:
    """Whatever stands in one of its fields. What is read can be written as a comment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "comment.json")
        path.write_text(json.dumps({**asdict(contents), field: value}))
        with contextlib.suppress(UsageError):
            assert body(comment.read(path)).startswith(comment.marker("performance"))


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge", "deep", "number", "text", "none"])
def test_no_other_file_is_read_for_data(
    job: Forge, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / "comment.json"
    if kind != "none":
        planted(path, kind)
    assert cli.main(["comment", "--data", str(path), "--post"]) == cli.USAGE_ERROR
    told = capsys.readouterr().err
    assert told.startswith(f"ipexperf: {path} is not what `ipexperf comment --json` prints: ")
    assert told.count("\n") == 1
    assert job.log == []


def test_gitlab_has_notes(forge: Forge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variables = {"GITLAB_CI": "true", "CI_API_V4_URL": forge.address, "CI_PROJECT_ID": "3", "GITLAB_TOKEN": "secret"}
    for name, value in {**variables, "CI_MERGE_REQUEST_IID": "8", "CI_JOB_URL": "https://forge.test/jobs/1"}.items():
        monkeypatch.setenv(name, value)
    words = ["comment", "--db", recorded(tmp_path / "a.db", SLOWER), "--post"]
    assert cli.main(words) == 0
    assert cli.main(words) == 0
    assert forge.log[-1] == "PUT /projects/3/merge_requests/8/notes/1"
    assert "https://forge.test/jobs/1" in forge.comments[1]


def test_outside_of_a_job_it_is_only_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "CI_JOB_URL"):
        monkeypatch.delenv(name, raising=False)
    words = ["comment", "--db", recorded(tmp_path / "a.db", SLOWER)]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith("<!-- ipexperf: performance -->\n### ipexperf: 1 worse\n")
    assert cli.main([*words, "--post"]) == cli.USAGE_ERROR
    assert "without --post it prints the comment" in capsys.readouterr().err
