"""An installed package of somebody else's brings leaves, a metric and a command by its entry points."""

import os
import sys
from pathlib import Path

import pytest
from plugin_suite import ROOT, SHORT, Suite

FAKES = ROOT / "tests" / "fakes"
CELL = ("--perf-device", "fake", "--perf-dtype", "fp8", "--perf-mode", "wobble", "--perf-stack", "plain")
COMMAND = """
def add_greet(subparsers):
    parser = subparsers.add_parser("greet", help="say hello")
    parser.set_defaults(run=lambda arguments: print("hello") or 0)
"""


def install(folder: Path, name: str, entries: str, **modules: str) -> None:
    """A package as pip leaves it."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)


@pytest.fixture
def packages(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: a sound one, one that raises, one whose leaf and command are taken."""
    folder = tmp_path / "site"
    folder.mkdir()
    sound = "[ipexperf.leaves]\na = theirs\nb = theirs_too\n[ipexperf.commands]\ngreet = their_command:add_greet\n"
    theirs = {"theirs": (FAKES / "fake.py").read_text(), "theirs_too": (FAKES / "unheard_of.py").read_text()}
    install(folder, "sound", sound, **theirs, their_command=COMMAND)
    install(folder, "broken", "[ipexperf.leaves]\nx = broken_leaf\n", broken_leaf="import nobody_has_it\n")
    twice = (
        "from ipexperf.ext import model\n\n\n@model('resnet18', size=8, batch_train=1, batch_infer=1)\ndef net(): ...\n"
    )
    install(
        folder,
        "twice",
        "[ipexperf.leaves]\nx = twice_leaf\n[ipexperf.commands]\nshow = nowhere:add\n",
        twice_leaf=twice,
    )
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}")
    return folder


@pytest.mark.process
def test_leaves_of_an_installed_package_are_measured_without_being_named(suite: Suite, packages: Path) -> None:
    """In workers too, with the metric in the history; and what cannot be loaded is one sentence a package."""
    result = suite.fresh("--perf-model", "tiny", *CELL, *SHORT)
    result.assert_outcomes(passed=1)
    said = result.stdout.str()
    assert "the leaves of the package broken are left out: ModuleNotFoundError: No module named 'nobody_has_it'" in said
    assert "the leaves of the package twice are left out: the model 'resnet18' is registered twice" in said
    assert suite.query("SELECT count(*) FROM series WHERE metric = 'joules'") == [(1,)]


@pytest.mark.process
def test_a_command_of_an_installed_package_is_one_of_ours(suite: Suite, packages: Path) -> None:
    """In the help and by its name; one whose name is taken is left out with a sentence."""
    run = (sys.executable, "-m", "ipexperf.cli")
    assert suite.pytester.run(*run, "greet").stdout.str() == "hello"
    told = suite.pytester.run(*run, "--help")
    assert "say hello" in told.stdout.str()
    line = "ipexperf: the command show of the package twice is left out: there is a command show already"
    assert told.errlines == [line]
    cases = suite.pytester.run(*run, "cases", "--model", "tiny", *CELL)
    assert "tiny-fake-fp8-wobble-plain" in cases.stdout.str()
