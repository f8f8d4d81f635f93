"""What the arms of two trees import: each its own tree, what git ignores, and what was built for a commit."""

import _ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_suite import CONFTEST, INI, PLUGIN, ROOT
from test_plugin_functions import LIBRARY, QUICK, SAMPLES, SLOWER, Functions, functions

pytestmark = pytest.mark.process
__all__ = ["functions"]
TEST = "from {} import total\n\n\ndef test_total(perf):\n    perf(total, 10)\n\n\ndef test_plain():\n    pass\n"
AGAINST = ("--perf-against=git:HEAD", "--perf-max-pairs=2")


def said(functions: Functions, *words: str) -> tuple[pytest.RunResult, str]:
    result = functions.run(*AGAINST, *words)
    return result, " ".join(result.stdout.str().split())


def elsewhere(functions: Functions, installed: Path, *words: str, folder: str = "") -> tuple[int, str]:
    """Run pytest in an interpreter of its own, which has packages in this folder. Returns its status and output."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{installed}"}
    command, place = (sys.executable, "-m", "pytest", *PLUGIN, *words), functions.path / folder
    ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("file", "folder", "copy"),
    [
        ("src/library.py", ".", "library"),
        ("src/space/library.py", ".", "space.library"),  # a namespace
        ("packages/one/src/library.py", "packages/one", "library"),
        ("packages/one/src/library.py", ".", "library"),
        ("library.py", ".", ""),  # `python -m pytest` imports the tree
    ],
)
def test_an_arm_that_imports_an_installed_copy_of_its_tree_fails_before_it_is_measured(
    functions: Functions, file: str, folder: str, copy: str
) -> None:
    name = file.removeprefix("packages/one/").removeprefix("src/")
    test = functions.path / file[: -len(name)].removesuffix("src/") / "tests" / "test_it.py"
    installed = functions.path / "venv" / "installed"
    (installed / "library-1.dist-info").mkdir(parents=True)
    (functions.path / ".gitignore").write_text("venv\n")
    copied = installed / name
    for path in (functions.path / file, test, copied):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEST.format(name[:-3].replace("/", ".")) if path == test else LIBRARY)
    functions.commit()
    ended, told = elsewhere(functions, installed, *AGAINST, str(test), folder=folder)
    refused = f"it imports {copy} from {copied} and not {file} of its tree: say `pip install -e .`"
    assert (refused in " ".join(told.split())) == bool(copy), told
    assert (ended, "1 failed, 1 passed" in told) == ((1, True) if copy else (0, False))


@pytest.mark.parametrize("other", ["", "OTHER = 1\n"])
def test_a_file_that_changed_is_not_measured_from_an_installed_copy(functions: Functions, other: str) -> None:
    """Neither beside a commit nor beside a baseline. A package of the same name, with `other` content, is no copy."""
    installed, file = functions.path / "venv" / "installed", functions.path / "packages" / "two" / "library.py"
    for path in (installed / "library-1.dist-info", file.parent):
        path.mkdir(parents=True)
    (file.parent / "pyproject.toml").write_text("")
    (functions.path / ".gitignore").write_text("venv\n")
    (installed / "library.py").write_text(LIBRARY + other)
    file.write_text(LIBRARY)
    functions.tests(TEST.format("library"))
    functions.commit()
    assert elsewhere(functions, installed, "--perf-launches=2")[0] == 0
    assert functions.suite.command("baseline", "accept", "last", "--reason=first").ret == 0
    file.write_text(SLOWER)
    refused = f"it imports library from {installed / 'library.py'} and not packages/two/library.py of its tree: "
    for words in (AGAINST, ()):
        ended, told = elsewhere(functions, installed, *words)
        assert ended == (0 if other else 1), told
        assert (f"{refused}say `pip install -e packages/two`" in " ".join(told.split())) == (not other)


def test_what_git_ignores_is_the_users_unless_the_commit_is_built(functions: Functions) -> None:
    (functions.path / ".gitignore").write_text("*made.*\n.ipexperf/\n")
    loaded = "import ctypes\nfrom made import N\n\nctypes.CDLL('./libmade.so')\n\n\n"
    functions.library(f"{loaded}def total(count):\n    return N\n")
    functions.tests(TEST.format("library"))
    functions.commit()
    (functions.path / "made.py").write_text("N = 2\n")
    shutil.copy(_ctypes.__file__, functions.path / "libmade.so")
    result, told = said(functions, "-q")
    assert result.ret == 0, told
    assert told.count("has your libmade.so, made.py, which git ignores: --perf-build COMMAND makes its own") == 1
    build = f"git log -1 --format=%H && echo N = 1 > made.py && cp {functions.path}/libmade.so . && echo once >> log"
    for _ in range(2):
        result, told = said(functions, f"--perf-build={build}")
        assert "its answers changed: 1 -> 2" in told
        assert "git ignores" not in told
    [log] = (functions.path / ".ipexperf" / "sources").glob("*/log")
    assert log.read_text() == "once\n"


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        ("echo no header; exit 3", "its build ended with 3: no header"),
        ("echo slow; sleep 60", "its build took more than 2 s (--perf-timeout): slow"),
    ],
)
def test_a_build_that_fails_or_hangs_fails_its_tests_alone(functions: Functions, build: str, sentence: str) -> None:
    functions.tests(TEST.format("os.path").replace("total", "abspath").replace("10", "'a'"))
    functions.commit()
    result, told = said(functions, f"--perf-build={build}", "--perf-timeout=2")
    result.assert_outcomes(passed=1, failed=1)
    assert f"the arm of --perf-against: {sentence}" in told


def test_a_plugin_that_a_tree_cannot_import_is_named_with_the_module_that_it_lacks(functions: Functions) -> None:
    (functions.path / "helper.py").write_text("import made\n")
    (functions.path / "pytest.ini").write_text(f"{INI}{SAMPLES}pythonpath = .\n")
    (functions.path / "conftest.py").write_text(f"{CONFTEST}{QUICK}\npytest_plugins = ['helper']\n")
    functions.tests(TEST.format("os.path").replace("total", "abspath").replace("10", "'a'"))
    functions.commit()
    (functions.path / "made.py").write_text("")
    result, told = said(functions)
    result.assert_outcomes(passed=1, failed=1)
    assert "PluginImportFailure: helper: ModuleNotFoundError: No module named 'made'" in told
