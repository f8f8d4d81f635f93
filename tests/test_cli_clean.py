"""`ipexperf clean` removes what can be made again, and nothing else."""

import subprocess
from pathlib import Path

import pytest
from cli_answers import refused, run


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with weights, peak rates, and the answers of a search."""
    for name in ("weights/a.pt", "peaks/b.json", "bisect/answers.jsonl"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_bytes(bytes(5000))
    return tmp_path


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_without_yes_it_only_says_what_there_is(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "clean", "--cache", str(cache))
    assert "weights" in out
    assert "trained networks" in out
    assert "stays: results" in out
    assert "nothing was changed: --yes removes peaks, weights, 16.0 KiB" in out
    assert left(cache) == ["bisect", "peaks", "weights"]


@pytest.mark.parametrize(("words", "rest"), [([], ["bisect"]), (["weights"], ["bisect", "peaks"])])
def test_what_can_be_made_again_goes(
    cache: Path, words: list[str], rest: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "clean", *words, "--yes", "--cache", str(cache)).splitlines()[-1].startswith("removed ")
    assert left(cache) == rest


@pytest.mark.process
@pytest.mark.parametrize("linked", [False, True])
def test_a_cache_that_came_with_a_commit_is_refused(
    cache: Path,
    linked: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
) -> None:
    named, tracked = (cache / ".ipexperf", ".ipexperf") if linked else (cache / "weights", "weights/a.pt")
    if linked:
        named.symlink_to("weights")
    for words in (("init", "--quiet"), ("add", "-f", tracked)):
        subprocess.run(["git", "-C", str(cache), *words], check=True)
    reason = f"git tracks {tracked}, and what is in a cache is used without a review"
    assert reason in refused(capsys, "clean", "--cache", str(named))
    run(capsys, "clean", "--cache", str(cache / "bisect"))
