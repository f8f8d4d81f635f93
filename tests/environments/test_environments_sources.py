"""What is kept of a user's files, and the tree in which they run again."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.machine import source
from ipexperf.environments import sources
from ipexperf.environments.sources import Source
from ipexperf.errors import LockError, UsageError


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's tree, which is the current folder."""
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def of(**files: bytes) -> Source:
    return Source({name: source.digest(content) for name, content in files.items()}, (".",))


def read_back(kept: sources.Kept, folder: Path) -> sources.Kept:
    path = folder / "kept.json"
    path.write_text(kept.text())
    return sources.read(path)


@pytest.mark.parametrize("content", [b"", b"one\ntwo", b"one\r\ntwo\r\n", b"\xff\0binary", "Größe\n".encode()])
def test_a_kept_file_comes_back_byte_by_byte(tree: Path, tmp_path: Path, content: bytes) -> None:
    (tree / "net.py").write_bytes(content)
    kept, lost = sources.keep(of(**{"net.py": content}), None, tmp_path / "cache")
    assert lost == ""
    (tree / "net.py").write_text("edited")
    replaced = sources.tree_of(read_back(kept, tmp_path), tmp_path / "cache", print)
    assert Path(replaced.by, "net.py").read_bytes() == content


def test_files_outside_the_tree_are_kept_below_their_whole_path(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "shared.py"
    outside.write_bytes(b"VALUE = 1\n")
    kept, _ = sources.keep(of(**{str(outside): b"VALUE = 1\n"}), None, tmp_path / "cache")
    outside.write_bytes(b"VALUE = 2\n")
    replaced = sources.tree_of(kept, tmp_path / "cache", print)
    assert replaced.moved(outside).read_bytes() == b"VALUE = 1\n"
    assert replaced.tree == str(tree)


def test_what_is_too_large_for_a_reviewer_is_in_the_cache_alone(tree: Path, tmp_path: Path) -> None:
    """A kernel that was built with torch's headers has 10 MB."""
    large = b"x" * (sources.LARGEST + 1)
    (tree / "_C.so").write_bytes(large)
    (tree / "net.py").write_bytes(b"1")
    wanted = of(**{"_C.so": large, "net.py": b"1"})
    kept, lost = sources.keep(wanted, None, tmp_path / "cache")
    assert (lost, kept.cached, list(kept.contents)) == ("", ("_C.so",), ["net.py"])
    (tree / "_C.so").write_bytes(b"built anew")
    replaced = sources.tree_of(read_back(kept, tmp_path), tmp_path / "cache", print)
    assert Path(replaced.by, "_C.so").read_bytes() == large
    with pytest.raises(LockError, match=r"_C\.so is neither in git nor in .*elsewhere"):
        sources.tree_of(kept, tmp_path / "elsewhere", print)


def test_data_beside_the_files_is_in_the_tree_and_other_code_is_not(tree: Path, tmp_path: Path) -> None:
    (tree / "pkg").mkdir()
    (tree / "pkg" / "net.py").write_bytes(b"1")
    kept, _ = sources.keep(of(**{"pkg/net.py": b"1"}), None, tmp_path / "cache")
    (tree / "pkg" / "weights.bin").write_text("w")
    (tree / "pkg" / "later.py").write_text("")
    (tree / "pkg" / "net").mkdir()  # took the place of net.py, and would hide the accepted file
    (tree / "data").mkdir()
    replaced = sources.tree_of(kept, tmp_path / "cache", print)
    inside = sorted(str(path.relative_to(replaced.by)) for path in Path(replaced.by).rglob("*"))
    assert inside == ["data", "pkg", "pkg/net.py", "pkg/weights.bin"]


def git(*words: str) -> str:
    """What git says of the current folder."""
    user = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *user, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.process
def test_of_a_dirty_tree_only_what_git_lacks_is_copied(tree: Path, tmp_path: Path) -> None:
    for name in ("net.py", "pace.py"):
        (tree / name).write_bytes(b"1")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "as it is")
    (tree / "pace.py").write_bytes(b"2")
    kept, _ = sources.keep(of(**{"net.py": b"1", "pace.py": b"2"}), git("rev-parse", "HEAD"), tmp_path / "cache")
    assert kept.contents == {"pace.py": b"2"}
    assert read_back(kept, tmp_path).content(tmp_path / "nothing") == {"net.py": b"1", "pace.py": b"2"}
    with pytest.raises(UsageError, match="has no commit 'nowhere'"):
        sources.tree_of_commit("nowhere", tmp_path / "cache", print)
    with pytest.raises(UsageError, match="has no commit '--all'"):
        sources.tree_of_commit("--all", tmp_path / "cache", print)


@pytest.mark.process
def test_a_commit_has_the_code_that_git_ignores_where_it_has_no_such_module(tree: Path, tmp_path: Path) -> None:
    """What was compiled from a module of today would hide that of the commit."""
    (tree / "pkg").mkdir()
    for name in (".gitignore", "pkg/core.py"):
        (tree / name).write_text("*.so\n_version.py\n" if name == ".gitignore" else "")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "as it is")
    for name in ("core.cpython-311.so", "fast.cpython-311.so", "_version.py", "new.py"):
        (tree / "pkg" / name).write_text("")
    replaced, _ = sources.tree_of_commit("HEAD", tmp_path / "cache", print)
    names = sorted(path.name for path in Path(replaced.by, "pkg").iterdir())
    assert names == ["_version.py", "core.py", "fast.cpython-311.so"]


@pytest.mark.process
def test_a_commit_has_the_files_of_its_submodules(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they were at that commit. Those that are not here are missing, as git leaves them."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path / "kernels")
    git("init", "--quiet")
    for content in ("old", "new"):
        (tmp_path / "kernels" / "kernel.py").write_text(content)
        git("add", ".")
        git("commit", "--quiet", "--message", content)
    monkeypatch.chdir(tree)
    git("init", "--quiet")
    for name in ("here", "absent"):
        git(
            "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "kernels"), f"deep/{name}"
        )
    git("-C", "deep/here", "checkout", "--quiet", "HEAD~1")
    git("add", ".")
    git("commit", "--quiet", "--message", "both")
    git("-C", "deep/here", "checkout", "--quiet", "-")
    git("submodule", "--quiet", "deinit", "--force", "deep/absent")
    replaced, _ = sources.tree_of_commit("HEAD", tmp_path / "cache", print)
    deep = Path(replaced.by, "deep")
    assert (deep / "here" / "kernel.py").read_text() == "old"
    assert not (deep / "absent" / "kernel.py").exists()
    for planted in (deep / "here" / "kernel.py", deep / "absent" / "kernel.py"):
        planted.write_text("planted")
    said: list[str] = []
    sources.tree_of_commit("HEAD", tmp_path / "cache", said.append)
    assert (deep / "here" / "kernel.py").read_text() == "old"
    assert not (deep / "absent" / "kernel.py").exists()
    assert [line.partition("(")[2].partition(")")[0] for line in said] == ["deep/absent/kernel.py, deep/here/kernel.py"]


@pytest.fixture(params=["of a commit", "of accepted files"])
def again(request: pytest.FixtureRequest, tree: Path, tmp_path: Path) -> Callable[[], tuple[Path, list[str]]]:
    """Has a tree of `lib/net.py` in the cache, each time anew, and what is said of it."""
    for name in ("lib", "data"):
        (tree / name).mkdir()
    (tree / "lib" / "net.py").write_bytes(b"PACE = 1\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "as it is")

    def have() -> tuple[Path, list[str]]:
        said: list[str] = []
        if request.param == "of a commit":
            replaced, _ = sources.tree_of_commit("HEAD", tmp_path / "cache", said.append)
        else:
            kept = sources.Kept(of(**{"lib/net.py": b"PACE = 1\n"}), contents={"lib/net.py": b"PACE = 1\n"})
            replaced = sources.tree_of(kept, tmp_path / "cache", said.append)
        return Path(replaced.by), said

    return have


@pytest.mark.process
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("lib/net.py", "lib/net.py"),
        ("json.py", "json.py"),
        ("lib/net/__init__.py", "lib/net"),
        ("lib/net.abi3.so", "lib/net.abi3.so"),
        (".git/config", ""),
        ("config.json", "config.json"),
        ("lib/__pycache__/net.cpython-311.pyc", ""),
    ],
)
def test_nothing_that_was_put_into_a_tree_stays_there(
    again: Callable[[], tuple[Path, list[str]]], planted: str, said: str
) -> None:
    """By somebody, or by a test that ran in it: not even a file with the size and the times of the one it replaces."""
    folder, first = again()
    path = folder / planted
    times = (path if path.exists() else folder).stat().st_mtime_ns
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PACE = 9\n")
    os.utime(path, ns=(times, times))
    _, told = again()
    inside = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert (inside, (folder / "lib" / "net.py").read_bytes()) == (["data", "lib", "lib/net.py"], b"PACE = 1\n")
    assert first == []
    assert told == [f"{folder} had been changed ({said}): its files are again what they were"] * bool(said)


@pytest.mark.process
@pytest.mark.parametrize("place", ["", "lib", "lib/net.py"])
def test_a_tree_is_not_written_through_a_link(
    again: Callable[[], tuple[Path, list[str]]], tmp_path: Path, place: str
) -> None:
    folder, _ = again()
    own = tmp_path / "own"
    (folder / place).rename(own)
    (folder / place).symlink_to(own)
    files = {path: path.write_bytes(b"my own") for path in (own, *own.rglob("*")) if path.is_file()}
    again()
    assert {path.read_bytes() for path in files} == {b"my own"}
    assert (folder / "lib" / "net.py").read_bytes() == b"PACE = 1\n"
    assert not any((folder / part).is_symlink() for part in ("", "lib", "lib/net.py"))


@pytest.mark.parametrize(
    "name", ["../out.py", "lib/../../out.py", "/../out.py", "lib//out.py", ".git/out.py", "out.py\n", "out.py\0"]
)
def test_a_document_cannot_name_a_file_elsewhere(tree: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "kept.json"
    path.write_text(sources.Kept(of(**{"first.py": b"1", name: b"1"}), contents={"first.py": b"1", name: b"1"}).text())
    with pytest.raises(UsageError, match="names no file inside a folder"):
        sources.tree_of(sources.read(path), tree / ".ipexperf", print)
    assert list(tmp_path.rglob("*.py")) == []


@pytest.mark.process
def test_without_a_repository_there_is_no_commit(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no git repository"):
        sources.tree_of_commit("main", tmp_path / "cache", print)


def test_a_kept_file_that_was_edited_by_hand_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "pace.py").write_bytes(b"PACE = 1")
    kept, _ = sources.keep(of(**{"pace.py": b"PACE = 1"}), None, tmp_path / "cache")
    (tmp_path / "kept.json").write_text(kept.text().replace("PACE = 1", "PACE = 9"))
    with pytest.raises(LockError, match=r"what is kept of pace\.py is not what was accepted"):
        sources.tree_of(sources.read(tmp_path / "kept.json"), tmp_path / "cache", print)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{}", "is damaged"), ("[", "is damaged"), ('{"format": "later"}', "has the format 'later'")],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "kept.json"
    path.write_text(text)
    with pytest.raises(LockError, match=sentence):
        sources.read(path)
    with pytest.raises(LockError, match="is not there"):
        sources.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("a\nb\n", "a\nc\n", "net.py:2 'b' -> 'c'"),
        ("a\n", "a\nb\n", "net.py:2 'b' added"),
        ("a\nb\nc\n", "a\nx\ny\n", "net.py:2 'b' -> 'x', and 1 more line"),
        ("a\nb\n", "\na\n\nc\n", "net.py:4 'b' -> 'c'"),
        ("a\nb\n", "a\n", "net.py:2 'b' removed"),
        (
            f"{'a' * 70}b{'d' * 70}",
            f"{'a' * 70}c",
            f"net.py:1 '...{'a' * 15}b{'d' * 44}...' -> '...{'a' * 15}c'",
        ),
        ("a\n", "a\n\n", "net.py: changed"),
        ("a\n", None, "net.py: gone"),
        (None, "a\n", "net.py: new"),
        ("0\n" * sources.MANY, "1\n", "net.py: changed"),
    ],
)
def test_the_line_that_changed_first_is_shown(tmp_path: Path, old: str | None, new: str | None, text: str) -> None:
    paths = tmp_path / "old.py", tmp_path / "new.py"
    for path, content in zip(paths, (old, new), strict=True):
        if content is not None:
            path.write_text(content)
    assert sources.shown_change("net.py", *paths) == text


@pytest.mark.parametrize(
    ("ran", "text"),
    [
        ((), "lib/net.py:1 'A = 1' -> 'A = 2', and 3 more lines"),
        (("net.py: last", "net.py: first"), "lib/net.py:10 'return 3' -> 'return 4', and 3 more lines"),
        (("net.py: other", "net.py: inner"), "lib/net.py:5 'return 1' -> 'return 2', and 3 more lines"),
        (("net.py: first",), "lib/net.py:7 'return inner' -> 'return inner()', and 3 more lines"),
        (("other.py: last", "last"), "lib/net.py:1 'A = 1' -> 'A = 2', and 3 more lines"),
    ],
)
def test_a_changed_line_of_a_function_that_ran_comes_before_others(
    tmp_path: Path, ran: tuple[str, ...], text: str
) -> None:
    nested = "def first():\n    def inner():\n        return {}\n    x = 0\n    return {}\n"
    text_of = f"A = {{}}\n\n{nested}\ndef last():\n    return {{}}\n"
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text(text_of.format(1, 1, "inner", 3))
    new.write_text(text_of.format(2, 2, "inner()", 4))
    assert sources.shown_change("lib/net.py", old, new, ran=ran) == text


WORKER = """
import json, sys
from ipexperf.bench.machine import source
late = sys.argv[1:]
late or sys.path.insert(0, "lib")
source.arrange()
source.watch()
sys.path[:0] = late
import pkg.net, json.tool, numpy, gone
from pathlib import Path
Path(gone.__file__).unlink()
print(json.dumps([pkg.net.VALUE, *source.document().values(), [check.ok for check in source.checks()]]))
"""
NET = """
from pathlib import Path
VALUE = Path("settings/net.json").read_text(), Path(__file__).with_name("kernel.cpp").read_text()
Path("log.txt").write_text("x")
for name in ("log.txt", "data.bin", "big.bin", "build.txt", ".hidden/cache.json", *map(str, Path("images").iterdir())):
    Path(name).read_bytes()
"""


@pytest.mark.process
def test_a_process_has_the_accepted_files_in_place_of_the_users_and_says_which(tree: Path, tmp_path: Path) -> None:
    """Modules, and the files that they read: not what they wrote, what is hidden or ignored by git, or data."""

    def had(variables: dict[str, str], *words: str) -> list[Any]:
        (tmp_path / "made" / "gone.py").write_text("")  # as a package makes a module at run time
        root = str(Path(__file__).parents[2])
        # Two edits of the same length within a second: byte code of the first would be taken for that of the second.
        environment = {
            **os.environ,
            "PYTHONPATH": f"{root}:{tmp_path / 'made'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }
        done = subprocess.run([sys.executable, "-c", WORKER, *words], env=environment, capture_output=True, check=True)
        return json.loads(done.stdout)

    for folder in ("lib/pkg", "settings", "images", ".hidden", "../made"):
        (tree / folder).mkdir(parents=True)
    for number in range(source.MANY + 1):
        (tree / "images" / f"{number}.png").write_text("p")
    large = "x" * (source.LARGEST + 1)
    own = {"lib/pkg/__init__.py": "", "lib/pkg/kernel.cpp": "slow", "lib/pkg/net.py": NET, "settings/net.json": "64"}
    others = {".gitignore": "build.txt", "build.txt": "of today", ".hidden/cache.json": "{}", "data.bin": large}
    for name, text in (own | others | {"big.bin": large}).items():
        (tree / name).write_text(text)
    git("init", "--quiet")
    git("add", "big.bin")
    value, files, paths, checks = had({})
    assert (value, sorted(files), paths, checks) == (["64", "slow"], ["big.bin", *own], ["lib"], [])
    kept, _ = sources.keep(Source(files, tuple(paths)), None, tmp_path / "cache")
    (tree / "lib" / "pkg" / "kernel.cpp").write_text("fast")
    (tree / "settings" / "net.json").write_text("8")
    assert Source(files).changed() == ["lib/pkg/kernel.cpp", "settings/net.json"]
    replaced = sources.tree_of(kept, tmp_path / "cache", print)
    Path(replaced.by, ".hidden").mkdir()
    Path(replaced.by, ".hidden", "cache.json").write_text("{}")
    assert had(replaced.variables) == [["64", "slow"], files, paths, [True]]
    value, _, _, checks = had(replaced.variables, str(tree / "lib"))  # something put the user's own folder first again
    assert (value, checks) == (["64", "fast"], [False])
