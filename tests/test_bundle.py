"""`make bundle` makes a folder of wheels that installs without an index."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "environments"))
from small_wheels import a_wheel

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
]


def bundle(folder: Path, index: Path, what: str) -> subprocess.CompletedProcess[str]:
    """Run the target with a folder in place of every index."""
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}
    command = ["make", "bundle", f"BUNDLE={folder}", f"FOR={what}", f"PYTHON={sys.executable}"]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_bundle_has_what_is_needed_and_its_sums(tmp_path: Path) -> None:
    """And pip installs it with no index at all."""
    index, folder, target = tmp_path / "index", tmp_path / "bundle", tmp_path / "site"
    index.mkdir()
    for name, needs in (("tiny", ("tinier",)), ("tinier", ()), ("unneeded", ())):
        a_wheel(index, name, "1.0", {f"{name}.py": ""}, needs)
    made = bundle(folder, index, "tiny")
    assert made.returncode == 0, made.stderr
    assert "2 wheels for Python 3" in made.stdout
    sums = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert sums.returncode == 0
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--find-links", str(folder)]
    subprocess.run([*install, "--target", str(target), "tiny"], check=True, timeout=120, capture_output=True)
    assert {path.name for path in target.glob("*.py")} == {"tiny.py", "tinier.py"}
    again = bundle(folder, index, "tiny")
    assert again.returncode != 0
    assert "is not empty: remove it, or say BUNDLE=DIR" in again.stderr


def test_a_package_that_no_index_has_makes_no_bundle(tmp_path: Path) -> None:
    made = bundle(tmp_path / "bundle", tmp_path, "nobody-has-this")
    assert made.returncode != 0
    assert not (tmp_path / "bundle" / "SHA256SUMS").exists()
