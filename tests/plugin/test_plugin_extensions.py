"""A new dtype, mode, metric and outcome, each a row or a file, are in every output: nothing has a list of its own."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from plugin_suite import ROOT, SHORT, Suite

from ipexperf.bench import loading, registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import NetworkCase
from ipexperf.dtypes import DTYPES
from ipexperf.plan.groups import Group
from ipexperf.report.words import Words, labels
from ipexperf.result import METRICS

UNHEARD_OF = ROOT / "tests" / "fakes" / "unheard_of.py"
ID = "tiny-fake-fp8-wobble-plain"
HOT = """
from dataclasses import replace

from ipexperf.judge import screen

honest = screen.judge
screen.judge = lambda *given: replace(honest(*given), outcome="throttled", reason="93 degrees")
"""


@pytest.fixture(autouse=True)
def tables_as_before() -> Iterator[None]:
    """What a run in this process registers is gone afterwards: other tests hold these tables to golden files."""
    tables: list[dict[str, Any]] = [METRICS, DTYPES]
    before = [dict(table) for table in tables]
    yield
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)


@pytest.fixture
def ran(suite: Suite) -> pytest.RunResult:
    """A run of the new mode in the new dtype, with JUnit beside it."""
    cell = ("--device", "fake", "--dtype", "fp8", "--mode", "wobble", "--stack", "plain")
    return suite.run("tiny", f"--perf-load={UNHEARD_OF}", "--junitxml=junit.xml", *SHORT, cell=cell)


def ask(suite: Suite, *words: str) -> str:
    """What `ipexperf` says of this history, in a process that has loaded the same files as the run."""
    loads = f"loading.load([{suite.fake!r}, {str(UNHEARD_OF)!r}])"
    code = f"import sys\nfrom ipexperf import cli\nfrom ipexperf.bench import loading\n{loads}\nsys.exit(cli.main())"
    return suite.pytester.run(sys.executable, "-c", code, *words, "--db", "ipexperf.db").stdout.str()


def tables(suite: Suite) -> dict[str, Any]:
    """What the scripts of the report know of outcomes and dtypes."""
    text = (suite.path / "pages" / "assets" / "tables.js").read_text()
    found: dict[str, Any] = json.loads(text.partition(" = ")[2].rstrip(";\n"))
    return found


def test_a_new_dtype_mode_and_metric_are_in_every_output(suite: Suite, ran: pytest.RunResult) -> None:
    ran.assert_outcomes(passed=1)
    assert [line for line in ran.outlines if ID in line and "bleu 27.2" in line]
    told = suite.properties()
    names = ("dtype", "mode", "joules", "bleu")
    assert tuple(told[name] for name in names) == ("fp8", "wobble", "41.5", "27.25")
    (shown,) = json.loads(ask(suite, "show", "last", "--json"))["cases"]
    assert (shown["metrics"]["joules"]["median"], shown["metrics"]["bleu"]["median"]) == (41.5, 27.25)
    assert "41.5" in ask(suite, "trend", "--model", "tiny", "--metric", "joules")
    assert f"`{ID}`" in ask(suite, "report", "last", "--markdown")
    ask(suite, "report", "--html", "pages")
    (page,) = (suite.path / "pages" / "cases").glob("*.html")
    assert "27.2" in page.read_text()
    assert tables(suite)["dtypes"][-1] == "fp8"


def test_a_new_outcome_is_in_every_output(suite: Suite, request: pytest.FixtureRequest) -> None:
    with (suite.path / "conftest.py").open("a") as file:
        file.write(HOT)
    ran: pytest.RunResult = request.getfixturevalue("ran")
    ran.assert_outcomes(failed=1)
    assert "THROTTLED (1)" in ran.stdout.str()
    assert "the device was too hot" in ran.stdout.str()
    assert suite.properties()["verdict"] == "throttled"
    (shown,) = json.loads(ask(suite, "show", "last", "--json"))["cases"]
    assert shown["outcome"] == "throttled"
    markdown = ask(suite, "report", "last", "--markdown")
    assert "## ipexperf: 1 throttled" in markdown
    assert f"- 🥵 `{ID} (batch 1)`: **throttled**: 93 degrees" in markdown
    ask(suite, "report", "--html", "pages")
    assert tables(suite)["outcomes"]["throttled"] == {"glyph": "♨", "tone": "bad", "numbers": False}
    assert 'data-outcome="throttled" data-tone="bad"' in (suite.path / "pages" / "runs.html").read_text()
    assert "not fine" in ask(suite, "gate", "last")
    ask(suite, "baseline", "accept", "last", "--reason", "hot", "--baselines", "kept")
    assert not list(suite.path.glob("kept/**/*.json"))


@pytest.mark.parametrize(
    ("mode", "barred", "able", "model", "reason"),
    [
        ("distil", "conv_bn_folding", "fuse_update_step", "bert_large", "do not learn in the few steps"),
        ("fuse", "weights_prepack", "conv_bn_folding", "faster_rcnn", "20 times"),
        ("wobble", "fuse_update_step", "weights_prepack", "faster_rcnn", None),
    ],
)
def test_knobs_and_models_know_a_new_mode_by_what_it_does(
    mode: str, barred: str, able: str, model: str, reason: str | None
) -> None:
    """They give their reasons for training and for graphs, not for names of modes."""
    loading.load([str(UNHEARD_OF)])
    stranger = registry.modes.get(mode)
    knobs = {knob.name: knob for knob in registry.stacks.get("ipex").knobs}
    assert f"{mode} has no knob {barred}" in str(stranger.lacks(knobs[barred]))
    assert stranger.lacks(knobs[able]) is None
    leaf = registry.models.get(model)
    packages = Facts("python", dict.fromkeys(leaf.needs, "1"))
    refusal = leaf.why_not(Cell(model, "cpu", "fp32", mode, "ipex"), stranger.traits, packages)
    assert refusal is None if reason is None else reason in str(refusal)


def test_summaries_call_a_new_mode_and_its_step_by_its_words() -> None:
    loading.load([str(UNHEARD_OF)])
    case = NetworkCase("tiny", "cpu", "fp8", "wobble", "stock", 1, 1)
    assert Words().whole(case) == "fp8 on stock, wobbling (wobble)"
    group = Group("tiny", (replace(case, mode="distil"),))
    assert labels([group]) == {"tiny": "tiny, distillation"}
