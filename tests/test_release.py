"""What `make release-check` refuses before it builds, and in a wheel; and what the wheel says of others' files."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
import release

STEP = '    - name: Measure\n      shell: bash\n      run: |\n        echo "${{ inputs.tests }}"\n'
ACTION = f"inputs:\n  tests:\n    required: true\nruns:\n  steps:\n{STEP}"
HASH = "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
FILES = {
    "action.yml": f"name: mine\n{ACTION}",
    "CHANGELOG.md": "## [0.2.0] - 2026-12-01\n",
    "ipexperf/__init__.py": '__version__ = "0.2.0"\n',
    "pull.yml": f"- {HASH} # v7.0.1\n- uses: OWNER/ipexperf@HASH # TAG\n",
}


def repository(root: Path, files: dict[str, str], *words: str) -> None:
    """Make one that could be released, but for these files and for what this command of git does."""
    (root / "ipexperf").mkdir()
    for name, text in {**FILES, **files}.items():
        (root / name).write_text(text)
    commit = ("-c", "user.name=me", "-c", "user.email=me@here", "commit", "-qm", "files")
    for command in (("init", "-q"), ("add", "."), commit, words):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("files", "words", "fault"),
    [
        ({}, "tag v0.2.0", ""),
        ({}, "tag v0.3.0", "the tag of this commit is v0.3.0"),
        ({}, "remote add origin git@github.com:acme/ipexperf", "pull.yml:2:- uses: OWNER/ipexperf@HASH"),
        ({}, "rm -q --cached CHANGELOG.md", "the tree is dirty ('"),
        ({"CHANGELOG.md": "## [0.1.0] - 2026-11-01\n"}, "status", "CHANGELOG.md begins with 0.1.0"),
        ({"CHANGELOG.md": "## [0.2.0] - unreleased\n"}, "tag v0.2.0", "say the date there"),
        ({"pull.yml": f"- {HASH}\n"}, "status", "is not pinned by its hash, with its version behind it"),
        ({"pull.yml": "- uses: actions/checkout@v7\n"}, "status", "in pull.yml:1"),
        ({"action.yml": f"\n{ACTION}".replace("inputs.tests", "inputs.base")}, "status", "not declare its input base"),
        ({"action.yml": f"\n{ACTION}".replace('}"', "}")}, "status", "bash cannot run the step Measure"),
        ({"action.yml": f"\n{ACTION}".replace("bash", "sh")}, "status", "bash cannot run the step Measure"),
    ],
)
def test_a_fault_of_the_source_is_said_before_anything_is_built(
    tmp_path: Path,
    files: dict[str, str],
    words: str,
    fault: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TAG", raising=False)
    monkeypatch.delenv("GITHUB_REPOSITORY_OWNER", raising=False)
    repository(tmp_path, files, *words.split())
    assert release.main(tmp_path) == bool(fault)
    assert fault in capsys.readouterr().err


@pytest.mark.process
def test_a_stray_file_in_a_wheel_is_told_and_one_that_it_lacks(tmp_path: Path) -> None:
    repository(tmp_path, {}, "status")
    with zipfile.ZipFile(wheel := tmp_path / "ipexperf-0.2.0-py3-none-any.whl", "w") as written:
        for name in ("ipexperf/stray.py", "ipexperf-0.2.0.dist-info/METADATA"):
            written.writestr(name, "")
    stray, lacking = release.of_the_wheel(tmp_path, wheel)
    assert stray.endswith("git does not track: ipexperf/stray.py")
    assert "lacks ipexperf/__init__.py" in lacking


def test_each_vendored_file_has_its_hash_author_and_licence_in_the_wheel() -> None:
    package, hashes = ROOT / "ipexperf", {}
    for component in json.loads((package / "vendored.cdx.json").read_text())["components"]:
        assert {"authors", "licenses"} <= component.keys()
        hashes |= {one["name"]: one["hashes"][0]["content"] for one in component.get("components", [component])}
    paths = [*package.glob("dashboard/vendor/*/*"), *package.glob("zoo/data/*")]
    texts = {str(path.relative_to(package)): path.read_bytes() for path in paths if path.suffix != ".md"}
    assert hashes == {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
