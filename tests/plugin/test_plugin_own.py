"""Networks of a stranger's own: in a repository where ipexperf is only installed, and in a suite. Needs torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_suite import CONFTEST, ROOT, SHORT, Suite

pytestmark = [pytest.mark.process, pytest.mark.torch]

NETS = ROOT / "tests" / "fakes" / "mynets.py"
STOCK = (
    *("--perf-device", "cpu", "--perf-dtype", "fp32", "--perf-mode", "infer_jit", "--perf-stack", "stock"),
    "--perf-without=roof",  # measuring the peak rates of the machine takes longer than all else
    *SHORT,
)
PATIENCE = 300
TEST = """
import pytest


@pytest.mark.perf(own=True)
def test_all(perf):
    perf()


@pytest.mark.perf(models=["mynets:pair"])
def test_pair(perf):
    perf()
"""


def write(folder: Path) -> None:
    """Networks, and tests that measure them."""
    shutil.copy(NETS, folder / "mynets.py")
    (folder / "test_mine.py").write_text(TEST)


@pytest.fixture
def stranger(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A repository of a stranger's, and ipexperf as pip installs it: nothing of the checkout is in reach."""
    for name in list(os.environ):
        if name.startswith("IPEXPERF_"):
            monkeypatch.delenv(name)
    site = pytester.mkdir("site")
    (site / "ipexperf").symlink_to(ROOT / "ipexperf")
    about = site / "ipexperf-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ipexperf\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[pytest11]\nipexperf = ipexperf.plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    repository = pytester.mkdir("repository")
    write(repository)
    (repository / "conftest.py").write_text(CONFTEST)
    monkeypatch.chdir(repository)
    return pytester


@pytest.fixture
def mine(torch_suite: Suite) -> Suite:
    """A suite with the same networks and tests, whose runs are forked."""
    (torch_suite.path / "test_suite.py").unlink()
    write(torch_suite.path)
    return torch_suite


def run(mine: Suite, model: str, *arguments: str) -> pytest.RunResult:
    return mine.raw("--perf-model", model, *STOCK, *arguments, patience=PATIENCE)


def test_a_suite_in_another_repository_measures_its_networks(stranger: pytest.Pytester) -> None:
    """Named by module and callable, found in the folder that pytest was started in, proven and recorded there."""
    # One case of two tests would be measured twice, which a run refuses to record.
    words = ("--perf-model", "mynets:mapped,mynets:pair", *STOCK, "-k", "mapped or test_pair")
    command = (sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", *words)
    result = stranger.run(*command, timeout=PATIENCE)
    result.assert_outcomes(passed=2, deselected=1)
    text = result.stdout.str()
    assert "test_mine.py" in text
    assert "mynets.mapped-cpu-fp32-infer_jit-stock" in text
    here = Path.cwd()
    assert (here / "ipexperf.db").exists()
    assert not list(ROOT.glob("mynets*"))


def test_each_bad_network_fails_with_its_sentence(mine: Suite) -> None:
    """Every one is a test of its own that fails; the rest goes on, and none shows a traceback."""
    bad = {
        "branching": "1 times it reads its inputs' values",
        "silent": "the network answers with nothing, and a tensor was expected",
        "bare": "mynets.bare has no parameters",
        "nothing": "mynets.nothing is built as nothing",
        "small@3x9x9": "fails on its inputs, 32x3x9x9 float32: RuntimeError: mat1 and mat2 shapes",
    }
    result = run(mine, ",".join(f"mynets:{name}" for name in ("small", *bad)), "-k", "not test_pair")
    result.assert_outcomes(passed=1, failed=len(bad), deselected=1)
    text = " ".join(result.stdout.str().replace("\n", " ").split())
    for sentence in bad.values():
        assert sentence in text
    assert "Traceback" not in text


def test_nothing_of_a_named_network_is_imported_while_tests_are_collected(mine: Suite) -> None:
    """The plan knows it by its name alone."""
    (mine.path / "mynets.py").write_text("raise SystemExit('this was imported')\n")
    result = run(mine, "mynets:small", "--collect-only", "-q")
    assert "test_all[mynets.small-cpu-fp32-infer_jit-stock]" in result.stdout.str()


def test_a_network_that_a_commit_lacks_is_not_measured_beside_it_and_the_others_are(stranger: pytest.Pytester) -> None:
    """As in a pull request that adds a function, and a file, and makes the module a package."""
    (Path.cwd() / "test_mine.py").write_text(
        "import pytest\n\n\n@pytest.mark.perf(own=True)\ndef test_all(perf):\n    perf()\n"
    )
    nets = Path.cwd() / "nets.py"
    nets.write_text("import torch\n\n\ndef net():\n    return torch.nn.Linear(4, 4)\n")
    for words in (
        ("init", "-q"),
        ("add", "nets.py"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"),
    ):
        subprocess.run(["git", *words], check=True)
    text = nets.read_text()
    nets.unlink()
    nets.with_suffix("").mkdir()
    Path("nets/__init__.py").write_text(text + "\n\ndef wide():\n    return torch.nn.Linear(4, 8)\n")
    Path("more.py").write_text(text)
    axes = STOCK[: STOCK.index("--perf-without=roof") + 1]
    words = (
        "--perf-model=nets:net@4,nets:wide@4,more.py:net@4",
        *axes,
        "--perf-against=git:HEAD",
        "--perf-max-pairs=2",
    )
    result = stranger.run(sys.executable, "-m", "pytest", *words, timeout=PATIENCE)
    said = " ".join(result.stdout.str().split())
    assert "NOT MEASURED (1): the arm of --perf-against: nets:wide@4: nets has no callable wide:" in said
    assert "NOT MEASURED (1): the arm of --perf-against: more.py:net@4: there is no such file:" in said
    assert "3 passed" in said
    assert "agr 100.0 %" in said, "the other one was measured"
