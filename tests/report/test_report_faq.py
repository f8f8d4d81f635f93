"""What a run prints is explained: on the page of questions, and by `ipexperf help`."""

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from ipexperf import cli
from ipexperf.commands.command_line import make_parser
from ipexperf.history import tables
from ipexperf.history.store import Status
from ipexperf.outcomes import Outcome, is_fine
from ipexperf.report import bisections, faq, functions, table
from ipexperf.report.speeds import FACTORS
from ipexperf.result import METRICS, LaunchOutcome, Role


def texts_of(source: str) -> list[str]:
    """The texts of a module, without docstrings."""
    nodes = [*ast.walk(ast.parse(source))]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return [node.value for node in constants if isinstance(node.value, str)]


def test_no_message_names_a_page_by_a_path_that_only_the_checkout_has() -> None:
    package = Path(faq.__file__).parents[1]
    texts = [
        *faq.explained().values(),
        *(text for path in package.rglob("*.py") for text in texts_of(path.read_text())),
    ]
    texts += [path.read_text() for form in ("html", "js") for path in package.rglob(f"*.{form}")]
    assert [found[0] for text in texts if (found := re.search(r"\bdocs/\w.*", text))] == []


def test_every_outcome_that_is_not_fine_has_a_section() -> None:
    assert {name for name in get_args(Outcome) if not is_fine(name)} <= set(faq.sections())


def test_every_word_that_is_printed_is_explained() -> None:
    """Outcomes, statuses and metrics by their types; columns by the tables; labels by what is written in capitals."""
    columns = {column.title for metric in METRICS.values() if (column := metric.column)}
    for node in ast.walk(ast.parse(inspect.getsource(tables))):
        keys = node.keys if isinstance(node, ast.Dict) else ()
        columns |= {key.value.partition(" (")[0] for key in keys if isinstance(key, ast.Constant)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_numbers":
            columns |= {keyword.arg for keyword in node.keywords}
    labels = set()
    for module in (table, functions, bisections):
        for text in texts_of(inspect.getsource(module)):
            labels |= set(re.findall(r"\b[A-Z]{2,}(?: [A-Z]{2,})+\b|\b[A-Z]{4,}\b", text))
    types = {*get_args(Outcome), *get_args(LaunchOutcome), *get_args(Status), *get_args(Role)}
    told = types | {*METRICS, *FACTORS, *table.LEFT, *columns, *labels}
    assert {"ok", "improved", "agreement", "timed_out", "roof", "median", "CUT SHORT", "x fp32"} <= told
    glossary = {"turn", "dropped", "session", "twin"}
    assert {word for word in told | glossary if faq.called(word) not in faq.explained()} == set()


@pytest.mark.parametrize("word", faq.sections())
def test_every_section_ends_with_the_page_that_helps(word: str) -> None:
    assert re.search(r"\(page [\w-]+\)\.$", faq.sections()[word])


def test_help_explains_a_word_and_lists_the_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "peak_memory"]) == 0
    assert "`held_memory` is what is still" in capsys.readouterr().out
    assert cli.main(["help"]) == 0
    assert "regressed, inconclusive, " in capsys.readouterr().out
    assert cli.main(["help", "inconclusve"]) == cli.USAGE_ERROR
    assert "did you mean inconclusive?" in capsys.readouterr().err
    assert cli.main(["help", "CUT", "SHORT"]) == cli.main(["help", "metrics"]) == cli.main(["help", "options"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("A case for which `--perf-budget` left no time")
    assert "\nagreement: share of images with the same top answer" in told
    assert "\n--perf-db DB: results: a SQLite file\n" in told


def test_help_says_where_each_page_is_that_a_text_names(capsys: pytest.CaptureFixture[str]) -> None:
    named = {page for text in faq.explained().values() for page in re.findall(r"\(page ([^)]*)\)", text)}
    assert {"verdicts", "measure-programs"} <= named <= set(faq.pages())
    assert cli.main(["help", "verdicts"]) == 0
    assert "# " in Path(capsys.readouterr().out.removeprefix("The page is ").strip()).read_text()


def test_the_help_of_each_command_fits_a_screen_and_has_an_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is a command line that the command takes."""
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in make_parser().subparsers.choices.items():
        told = command.format_help()
        assert told.count("\n") <= 40, name
        (example,) = re.findall(r"^example: ipexperf (.*)$", told, re.MULTILINE)
        make_parser().parse_args(shlex.split(example))


def test_a_block_names_only_what_is_explained() -> None:
    assert faq.commands(["invalid", "streams", "threads", "invalid"]) == "ipexperf help invalid, ipexperf help threads"
