"""The pages say what is: their code is the examples' code, their tables hold every option, their commands run."""

import dataclasses
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from page_text import FENCED, LINK, anchor, sections

from ipexperf import cli
from ipexperf.commands import command_line
from ipexperf.compare import sequence
from ipexperf.dossier.page import Dossier
from ipexperf.history.changed import Changed
from ipexperf.judge.bisection import BisectionRecord
from ipexperf.plan import knobs, options
from ipexperf.ratio import numbers

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
EXAMPLES = HOW_TO / "examples"
GUIDES = sorted(HOW_TO.glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FIRST_STEPS = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "docs" / "tutorial.md"]
"""The README, in both languages, and the tutorial: a newcomer copies their commands."""
OPTIONS = (ROOT / "docs" / "reference" / "options.md").read_text()
HISTORY = (ROOT / "docs" / "reference" / "history.md").read_text()
REPORT = (ROOT / "docs" / "reference" / "report.md").read_text()
PATHS = (
    "--perf-db",
    "--perf-baselines",
    "--perf-report",
    "--perf-explain",
    "--perf-data",
    "--perf-cache",
    "--perf-python",
    "--perf-load",
)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, each as it stands."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def commands(program: str) -> list[str]:
    """The how-to pages' command lines that start a program; a backslash continues a line."""
    lines = [line for page in GUIDES for block in blocks(page, "") for line in block.replace("\\\n", "").splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_code_of_a_page_is_the_code_of_its_examples(page: Path) -> None:
    """Each block of Python is, byte for byte, the example that the page links before it."""
    linked = list(dict.fromkeys(re.findall(r"\]\(examples/(\w+\.py)\)", page.read_text())))
    assert blocks(page, "python") == [(EXAMPLES / name).read_text() for name in linked]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_imports_only_what_is_public(path: Path) -> None:
    """Of ipexperf, that is `ipexperf.ext`: people copy the examples, and other modules may change."""
    modules = re.findall(r"^\s*(?:from|import) (ipexperf[\w.]*)", path.read_text(), re.MULTILINE)
    assert set(modules) <= {"ipexperf.ext"}


def test_every_example_is_on_a_page() -> None:
    """No example lies about unexplained."""
    told = "".join(page.read_text() for page in GUIDES)
    found = {path.name for path in EXAMPLES.glob("*.py")} - {"__init__.py"}
    assert found == set(re.findall(r"\]\(examples/(\w+\.py)\)", told))


@pytest.mark.process
@pytest.mark.torch
@pytest.mark.parametrize("line", commands("ipexperf"))
def test_a_pages_ipexperf_command_does_what_the_page_says(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each `ipexperf` command of the how-to pages lists cases, but for the device that torch does not have."""
    monkeypatch.chdir(ROOT)
    absent = "--device npu" in line
    assert cli.main(shlex.split(line)[1:]) == (cli.USAGE_ERROR if absent else 0)
    out, err = capsys.readouterr()
    assert ("npu cannot run here" in err) if absent else re.search(r"^[1-9]\d* cases? of ", out, re.MULTILINE)


@pytest.mark.process
@pytest.mark.torch
@pytest.mark.parametrize("line", commands("pytest"))
def test_a_pages_pytest_command_collects_cases(line: str) -> None:
    """Each `pytest` command of the how-to pages finds cases to measure."""
    command = [sys.executable, "-m", *shlex.split(line), "--collect-only", "-q", "-p", "no:cacheprovider"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert told.returncode == 0, told.stdout + told.stderr
    assert re.search(r"^[1-9]\d*(/\d+)? tests? collected", told.stdout, re.MULTILINE), told.stdout


@pytest.mark.parametrize("page", FIRST_STEPS, ids=lambda page: page.name)
def test_a_command_of_the_first_steps_asks_for_what_there_is(page: Path) -> None:
    """Each `ipexperf` command is one that its parser takes, and each option of a `pytest` command is declared."""
    line = re.compile(r"^(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?(ipexperf|pytest) (.*)$", re.MULTILINE)
    lines = [words for block in blocks(page, "") for words in line.findall(block)]
    assert {program for program, _ in lines} == {"ipexperf", "pytest"}
    declared = {flag for option in options.OPTIONS for flag in (option.flag, option.short)}
    for program, rest in lines:
        words = shlex.split(rest, comments=True)
        if program == "ipexperf":
            command_line.make_parser().parse_args(words)
        else:
            assert {word.split("=")[0] for word in words if word.startswith("-")} <= declared


@pytest.mark.parametrize("name", ["recipes", "agents"])
def test_a_recipe_asks_for_what_there_is(name: str) -> None:
    """Each command in the table of recipes, and in that for assistants, is one that its parser takes."""
    lines = re.findall(r"`(ipexperf|pytest) ([^`]*)`", (ROOT / "docs" / f"{name}.md").read_text())
    assert len(lines) > 7
    declared = {flag for option in options.OPTIONS for flag in (option.flag, option.short)}
    for program, rest in lines:
        if program == "ipexperf":
            command_line.make_parser().parse_args(shlex.split(rest))
        else:
            assert {word.split("=")[0] for word in shlex.split(rest) if word.startswith("-")} <= {*declared, "--pyargs"}


def test_what_assistants_are_told_to_read_is_in_the_answers() -> None:
    """Each name in the last column is a field of a document that the command prints."""
    shown = json.loads((ROOT / "tests" / "golden" / "show.json").read_text())
    ab = inspect.getsource(sequence.document)
    fields = {field.name for record in (Changed, BisectionRecord, Dossier) for field in dataclasses.fields(record)}
    known = {"changes", *fields, *numbers(None), *shown, *shown["cases"][0], *re.findall(r'"(\w+)":', ab)}
    rows = [line for line in (ROOT / "docs" / "agents.md").read_text().splitlines() if line.startswith("| ")]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row.rsplit("|", 2)[1])}
    assert {"outcome", "culprits", "first_commit"} <= told <= known


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_a_link_leads_somewhere(page: Path) -> None:
    """The file of each relative link exists, and so does the heading that it names there."""
    broken = []
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        path, _, name = target.partition("#")
        other = page.parent / path if path else page
        if ":" in target or (other.exists() and not name):
            continue
        if not other.exists() or name not in anchors(other):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """What a link can name in a page: its headings, and the places that have a name of their own."""
    text = page.read_text()
    return {anchor(title) for title in sections(text)} | set(re.findall(r'<a name="([\w-]+)">', text))


def row(option: options.Option) -> str:
    """The option's row in the page of options."""
    between = "=" if option.flag in PATHS else " "
    spelled = option.flag if option.switch else f"{option.flag}{between}{option.metavar}"
    names = ", ".join(f"`{name}`" for name in (spelled, option.short) if name)
    variable = f"`{option.variable}`" if option.variable else ""
    default = "" if option.default in (None, ()) or option.switch else f"`{option.default}`"
    more = f": [{option.page.split('#')[0].split('/')[-1].removesuffix('.md') or 'below'}]({option.page})"
    told = option.help.replace("%%", "%")
    return f"| {names} | {variable} | {default} | {told}{more if option.page else ''} |"


def test_the_page_of_options_is_made_of_their_table() -> None:
    """IPEXPERF_GOLDEN=1 writes it anew. Who adds an option writes its help, and where more is said of it."""
    parts = []
    for scope, title in options.SCOPES.items():
        rows = [row(option) for option in options.OPTIONS if option.scope == scope]
        head = "| option | variable | default | meaning |\n|---|---|---|---|"
        parts.append("\n".join([f"## {title[0].upper()}{title[1:]}\n", head, *rows]))
    begin, end = "<!-- options -->\n\n", "\n\n<!-- end of options -->"
    before, _, rest = OPTIONS.partition(begin)
    _, _, after = rest.partition(end)
    whole = before + begin + "\n\n".join(parts) + end + after
    if os.environ.get("IPEXPERF_GOLDEN"):
        (ROOT / "docs" / "reference" / "options.md").write_text(whole)
    assert whole == OPTIONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_path_is_written_after_an_equals_sign(page: Path) -> None:
    """No page gives a path to an option as a word of its own, but the one that says why not."""
    why = "`--perf-load my/models.py`"
    found = re.findall(rf"(?:{'|'.join(PATHS)}) [^\s`|]+", page.read_text().replace(why, ""))
    assert found == []
    assert (why in page.read_text()) == (page.name == "options.md")


def test_every_knob_is_on_its_page_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "reference" / "knobs.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(knobs.everyone())


def test_every_subcommand_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a heading of the page about the history, or a row or sentence of the options'."""
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    names = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert {"show", "compare", "db", "cases"} <= set(names)
    headings = "".join(line for line in HISTORY.splitlines(keepends=True) if line.startswith("## "))
    assert [name for name in names if f"`{name}`" not in headings and f"`ipexperf {name}" not in OPTIONS] == []


def test_every_option_of_a_question_is_explained() -> None:
    """No option of a command that asks or keeps a history goes without a word on their pages."""
    shared = {"--help", "--db", "--json", "--csv", "--limit"}
    found = set()
    for path in sorted((ROOT / "ipexperf" / "commands").glob("*.py")):
        if re.search(r"declare_question|console.HISTORY", path.read_text()):
            found |= set(re.findall(r'"(--[a-z]+)"', path.read_text()))
    assert "--metric" in found
    pages = HISTORY + REPORT + (ROOT / "docs" / "reference" / "fingerprint.md").read_text()
    assert [x for x in sorted(found - shared) if f"`{x}" not in pages and f" {x} " not in pages] == []


def skeleton(page: Path) -> tuple[list[int], list[str], list[str]]:
    """How deep each heading is, each line of code without its comment, and where each link leads."""
    text = page.read_text()
    outline = FENCED.sub("", text)
    code = [re.sub(r" +#.*", "", line) for block in FENCED.findall(text) for line in block.splitlines()]
    return [len(hashes) for hashes in re.findall(r"^(#+) ", outline, re.MULTILINE)], code, LINK.findall(outline)


def test_the_chinese_readme_is_in_step() -> None:
    """It has the headings, commands, outputs and links of the English one, in the same order."""
    english, chinese = skeleton(ROOT / "README.md"), skeleton(ROOT / "README.zh-CN.md")
    english[2].remove("README.zh-CN.md")
    chinese[2].remove("README.md")
    assert chinese == english
