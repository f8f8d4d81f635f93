"""The user's own files of an accepted case: what keeps them, and the tree in which a worker runs them again.

A file in `sources/` beside the baselines names them with their digests. It has the content of those that the commit
lacks; git has the others, and a reference of ours keeps the commit. Large ones, such as compiled kernels, are in the
cache alone, where they run.
"""

from __future__ import annotations

import ast
import base64
import difflib
import filecmp
import functools
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from ipexperf import scratch
from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.networks.own_target import syntax_tree
from ipexperf.conduct import process
from ipexperf.errors import LockError, UsageError
from ipexperf.sentences import few

FORMAT = "ipexperf source 1"
FOLDER = "sources"
"""The folder inside that of the baselines, and that inside the cache."""
REFERENCES = "refs/ipexperf/accepted"
LARGEST = 4 * 2**20
"""Most bytes of files that are kept beside a baseline. Those in git do not count, and larger ones are in the cache."""
DIGITS = 12
BUILT = Path(".git", "ipexperf-built")
"""The file in the tree of a commit that says that it was built."""
CODE = frozenset({".py", ".pyc", ".pyi", ".so"})
PAGES = frozenset({".md", ".rst"})
MANY = 20_000
"""Of two texts with more lines nobody says which line changed."""
SHOWN = 60
"""Longest line of a change that is shown whole."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """The user's files that a case imported or was named by, and the folders that they were imported from."""

    files: Mapping[str, str] = field(default_factory=dict)
    """The digest of each, by its name in the user's tree."""
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Source:
        """The source that an environment records. Raises UsageError for a name that leads elsewhere."""
        recorded = cls(dict(environment.get("source") or {}), tuple(environment.get("source_paths") or ()))
        source.check_names(*recorded.files, *recorded.paths)
        return recorded

    @property
    def digest(self) -> str:
        document = json.dumps([sorted(self.files.items()), self.paths])
        return hashlib.sha256(document.encode()).hexdigest()[:DIGITS]

    def changed(self) -> list[str]:
        """The files that are not here as they were."""
        return [name for name, digest in self.files.items() if not _is_here(source.tree() / name, digest)]


@dataclass(frozen=True, slots=True)
class Kept:
    """How to have a source again."""

    source: Source
    commit: str = ""
    """The commit that has the files of which no content is kept here."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    cached: tuple[str, ...] = ()
    """The files whose content is in the cache alone."""

    def text(self) -> str:
        """The whole file, with a line for each line of a kept file, so that reviewers can read it."""
        files = {
            name: {"digest": digest, **(_document(self.contents[name]) if name in self.contents else {})}
            for name, digest in sorted(self.source.files.items())
        }
        document = {"format": FORMAT, "commit": self.commit, "paths": self.source.paths, "files": files}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    def content(self, folder: Path) -> dict[str, bytes]:
        """All files, some from its `folder` in the cache. Raises LockError if one is lost, or is not what it was."""
        missing = [name for name in self.source.files if name not in self.contents]
        contents = {**self.contents, **_committed(self.commit, missing)}
        for name, digest in self.source.files.items():
            if name not in contents and _is_here(path := source.inside(folder, name), digest):
                contents[name] = path.read_bytes()
            elif name not in contents:
                commit = f"the commit {self.commit[:DIGITS]}" if self.commit else "git"
                raise LockError(f"{name} is neither in {commit} nor in {folder}")
            if source.digest(contents[name]) != digest:
                raise LockError(f"what is kept of {name} is not what was accepted")
        return contents


def _document(content: bytes) -> dict[str, Any]:
    try:
        return {"lines": content.decode().split("\n")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _content(document: Mapping[str, Any]) -> bytes | None:
    if "lines" in document:
        return "\n".join(document["lines"]).encode()
    return base64.b64decode(document["base64"]) if "base64" in document else None


def path_of(baselines: Path, digest: str) -> Path:
    return source.inside(baselines, f"{FOLDER}/{digest}.json")


def read(path: Path) -> Kept:
    """Read what is kept of a source. Raises LockError if the file is missing or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise LockError(f"{path} has the format {document['format']!r}, expected {FORMAT!r}")
        files = {str(name): str(entry["digest"]) for name, entry in document["files"].items()}
        contents = {name: _content(entry) for name, entry in document["files"].items()}
        kept = {name: content for name, content in contents.items() if content is not None}
        return Kept(Source(files, tuple(map(str, document["paths"]))), str(document["commit"]), kept)
    except FileNotFoundError:
        raise LockError(f"{path} is not there") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LockError(f"{path} is damaged ({error}): restore it with git, or accept anew") from error


def keep(wanted: Source, commit: str | None, cache: Path) -> tuple[Kept, str]:
    """Find the content of each file as it ran: in the commit, or here. Also returns why it cannot be had again, or "".

    The commit is kept alive in this repository, and what is too large to be read by a reviewer in the cache.
    """
    committed = _committed(commit or "", list(wanted.files))
    in_git = {name for name, content in committed.items() if source.digest(content) == wanted.files[name]}
    others = {name: source.tree() / name for name in wanted.files if name not in in_git}
    if lost := next((name for name, path in others.items() if not _is_here(path, wanted.files[name])), None):
        return Kept(wanted), f"{lost} was edited since it ran, and no commit has it"
    contents = {name: path.read_bytes() for name, path in others.items()}
    cached = []
    for name in sorted(contents, key=lambda name: -len(contents[name])):
        if sum(map(len, contents.values())) > LARGEST:
            _write(source.inside(_folder(cache, wanted.digest), name), contents.pop(name))
            cached.append(name)
    kept = Kept(wanted, contents=contents, cached=tuple(cached))
    if not in_git or commit is None:
        return kept, ""
    _git("update-ref", f"{REFERENCES}/{wanted.digest}", commit)
    return replace(kept, commit=commit), ""


def forget(digest: str) -> None:
    """Remove the reference that keeps the commit of a source, if there is one."""
    _git("update-ref", "-d", f"{REFERENCES}/{digest}")


def others_changed(git: Mapping[str, Any], apart: Path) -> list[str] | None:
    """The files that git tracks and that are other ones than when this state was recorded. None if nobody can tell.

    Without pages and what is in the folder `apart`. Those that no import would have shown come first.
    """
    edited: Mapping[str, str] | None = git.get("edited", None if git.get("dirty") else {})
    listed = _git("diff", "--name-only", "--no-renames", "-z", str(git.get("commit")), "--")
    if listed is None or edited is None:
        return None
    top, names = source.tree(), {*os.fsdecode(listed).split("\0")[:-1], *edited}
    names -= {name for name, _ in edited.items() & source.digests(top, edited).items()}
    code = [
        name
        for name in names
        if PurePath(name).suffix not in PAGES and not (top / name).is_relative_to(apart.absolute())
    ]
    return sorted(code, key=lambda name: (name.endswith(".py"), name))


def unlike(*trees: Path) -> list[str]:
    """The files that are not alike in all of these trees, without pages and what is hidden or linked there."""
    names = {name for tree in trees for name in _files_in(tree)} if len(trees) > 1 else ()
    return sorted(name for name in names if PurePath(name).suffix not in PAGES and not _alike(name, trees))


def _files_in(tree: Path) -> Iterator[str]:
    """The names of the files of a tree: those that git tracks, or else all that are not hidden."""
    listed = _git("ls-files", "-z", top=tree) if (tree / ".git").exists() else None
    if listed is not None:
        yield from os.fsdecode(listed).split("\0")[:-1]
        return
    for place, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        yield from (str(Path(place, name).relative_to(tree)) for name in files if not name.startswith("."))


def _alike(name: str, trees: Sequence[Path]) -> bool:
    first, *others = (tree / name for tree in trees)
    try:
        return first.is_symlink() or all(filecmp.cmp(first, other, shallow=False) for other in others)
    except OSError:  # a tree lacks it
        return any((tree / name).is_symlink() for tree in trees)


def _is_here(path: Path, digest: str) -> bool:
    """Whether this is a file with this digest."""
    try:
        return path.is_file() and source.digest_of(path) == digest  # a device never ends
    except OSError:
        return False


def _git(*words: str, send: bytes = b"", top: Path | None = None, **variables: str) -> bytes | None:
    """What git prints in the user's tree, or in `top`, however long that takes."""
    return source.git(top or source.tree(), *words, send=send, seconds=None, **variables)


def _committed(commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """The content of those of these files that a commit has."""
    inside = [name for name in names if not name.startswith("/")]
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit) or not inside:
        return {}
    requests = "".join(f"{commit}:{name}\n" for name in inside).encode(errors="surrogateescape")
    answer, contents = io.BytesIO(_git("cat-file", "--batch", send=requests) or b""), {}
    for name in inside:
        words = answer.readline().split()
        if len(words) == 3 and words[2].isdigit():
            content = answer.read(int(words[2]) + 1)[:-1]
            if words[1] == b"blob":
                contents[name] = content
    return contents


def tree_of(kept: Kept, cache: Path, say: Say) -> Replaced:
    """Have the files of a source, and no other code, in a tree in the cache. Raises LockError if one is lost."""
    source.check_names(*kept.source.files)
    folder = _folder(cache, kept.source.digest)
    changed = _removed(folder, {str(source.place("", name)) for name in kept.source.files})
    for name, data in kept.content(folder).items():
        path = source.place(folder, name)
        if path.is_symlink() or not _is_here(path, kept.source.files[name]):
            changed += [name] if os.path.lexists(path) else []
            _write(path, data)
    return _ready(folder, kept.source.paths, changed, say)


def _folder(cache: Path, name: str) -> Path:
    folder = cache.absolute() / FOLDER / name
    if folder.is_symlink():
        folder.unlink()  # else what it leads to would be made the tree
    return folder


def tree_of_commit(reference: str, cache: Path, say: Say, build: str = "") -> tuple[Replaced, str]:
    """Have the files of a commit, and no other code but what git ignores, in a tree in the cache. Also returns its sha.

    The user's repository learns nothing of it: no worktree is registered, and its index is not used. With `build`, the
    tree is one that waits to be built, by that.
    """
    top = source.tree()
    printed = None if reference.startswith("-") else _git("rev-parse", "--verify", f"{reference}^{{commit}}")
    if printed is None:
        here = _git("rev-parse", "--git-dir")
        raise UsageError(f"{top} is no git repository" if here is None else f"{top} has no commit '{reference}'")
    sha = printed.decode().strip()
    if build:
        folder = _folder(cache, f"{sha[:DIGITS]}-{source.digest(build.encode())}")
        return Replaced(str(top), str(folder), source.roots()), sha
    folder = _folder(cache, sha[:DIGITS])
    is_new = not folder.exists()
    changed = check_out(top, sha, scratch.made(folder))
    ignored = _git("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", top=top) or b""
    link_others(top, folder, {name.rstrip("/") for name in os.fsdecode(ignored).split("\0")})
    return _ready(folder, source.roots(), () if is_new else changed, say), sha


def _ready(folder: Path, paths: tuple[str, ...], changed: Sequence[str], say: Say) -> Replaced:
    if changed:
        say(f"{folder} had been changed ({few(changed)}): its files are again what they were")
    link_others(source.tree(), folder)
    return Replaced(str(source.tree()), str(folder), paths)


@functools.cache
def unbuilt(tree: Replaced, command: str, seconds: float, say: Say) -> str:
    """Build the tree of a commit in its place, unless an earlier run did. Returns what went wrong, or an empty text."""
    folder, sha = Path(tree.by), Path(tree.by).name.partition("-")[0]
    if not (folder / BUILT).exists():
        say(f"building {sha}: {command}")
        make_clone(Path(tree.tree), sha, folder)
        if reason := run_build(command, folder, folder.with_name(f"{folder.name}.log"), seconds):
            return reason
        (folder / BUILT).touch()
    link_others(Path(tree.tree), folder)
    return ""


def run_build(command: str, folder: Path, log: Path, seconds: float | None) -> str:
    """Run a shell command in a tree, and no longer what it started. Returns what went wrong, or an empty text."""
    with scratch.made(log.parent).joinpath(log.name).open("w+b") as out:
        running = subprocess.Popen(  # noqa: S602 - a command line is what the user gave
            command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        try:
            how = f"ended with {running.wait(seconds)}"
        except subprocess.TimeoutExpired:
            how = f"took more than {seconds:g} s (--perf-timeout)"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            status = running.wait()
        last = process.last_lines(out).strip().rpartition("\n")[2]
    return f"its build {how}: {last or 'it said nothing'} ({log})" if status else ""


def make_clone(top: Path, sha: str, folder: Path) -> Path:
    """Have a commit in a repository of its own, so that builds may ask git. The user's repository learns nothing."""
    # In the user's repository, because it may have filters, and an origin to get missing files from.
    check_out(top, sha, scratch.made(folder))
    with scratch.folder("clone", folder.parent) as place:
        words = ("clone", "--quiet", "--shared", "--no-checkout", "--template=", str(top), str(place / "clone"))
        if _git(*words, top=top) is not None:
            (place / "clone" / ".git").rename(folder / ".git")
    if None in (_git("update-ref", "--no-deref", "HEAD", sha, top=folder), _git("reset", "--quiet", top=folder)):
        raise UsageError(f"git cannot clone {top}")
    return folder


def check_out(top: Path, sha: str, folder: Path) -> list[str]:
    """Have the files of a commit in a folder, and no others, with those of its submodules as far as these are here.

    Returns the names of those that were other ones. Git compares contents: a new index has no times that it believes.
    """
    with scratch.folder("index") as place:
        variables = {"GIT_INDEX_FILE": str(place / "index"), "GIT_WORK_TREE": str(folder)}

        def git(*words: str, send: bytes = b"") -> bytes:
            if (answer := _git(*words, send=send, top=top, **variables)) is None:
                raise UsageError(f"git {words[0]} of {sha[:DIGITS]} failed in {top}")
            return answer

        git("read-tree", sha)
        listed = [line.split("\t", 1) for line in os.fsdecode(git("ls-files", "-z", "--stage")).split("\0")[:-1]]
        modules = {name: words.split()[1] for words, name in listed if words.startswith("160000")}
        changed = _removed(folder, {name for _, name in listed if name not in modules}, modules)
        others = git("ls-files", "-z", "--modified")
        git("checkout-index", "--force", "-z", "--stdin", send=others)
    for name, commit in modules.items():
        is_here = _git("cat-file", "-e", commit, top=top / name) is not None
        inside = check_out(top / name, commit, folder / name) if is_here else _removed(folder / name, ())
        changed += [f"{name}/{inner}" for inner in inside]
    return [*changed, *os.fsdecode(others).split("\0")[:-1]]


def _removed(folder: Path, files: Collection[str], kept: Collection[str] = ()) -> list[str]:
    """Remove all but these files from a tree, and these folders. Return their names, without what tools leave."""
    above = {str(parent) for name in (*files, *kept) for parent in PurePath(name).parents}
    removed = []
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            inner = str(path.relative_to(folder))
            is_folder = path.is_dir() and not path.is_symlink()
            if is_folder and inner in kept:
                folders.remove(name)
            elif inner not in (above if is_folder else files):
                removed += [] if path.is_symlink() or name.startswith((".", "__pycache__")) else [inner]
                shutil.rmtree(path) if is_folder else path.unlink()
    return removed


def _write(path: Path, content: bytes) -> None:
    scratch.made(path.parent)
    with scratch.folder("source", path.parent) as folder:
        part = folder / path.name
        part.write_bytes(content)
        part.replace(path)


def link_others(top: Path, folder: Path, code: Collection[str] = ()) -> None:
    """Link what lies beside the files of a tree and is no code, such as data, to where it is in the user's tree.

    So is what `code` names, unless the tree has such a module.
    """
    for place, _, _ in os.walk(folder):
        inside = PurePath(place).relative_to(folder)
        outside = bool(inside.parts) and inside.parts[0] == source.OUTSIDE
        here = Path("/", *inside.parts[1:]) if outside else top / inside
        modules = {entry.stem for entry in Path(place).glob("*.py")}
        for entry in sorted(here.iterdir()) if here.is_dir() else ():
            there = Path(place, entry.name)
            is_code = entry.suffix in CODE or (entry / "__init__.py").exists()
            hides = entry.name.partition(".")[0] in modules if is_code else entry.is_dir() and entry.name in modules
            kept = folder / os.path.relpath(entry.resolve(), top)  # of libwork.so, a link to libwork.so.1
            to = kept if entry.is_symlink() and kept.is_file() and not kept.is_symlink() else entry
            is_code = is_code and to is entry
            wanted = str(inside / entry.name) in code if is_code else not entry.name.startswith((".", "__"))
            if wanted and not hides and not os.path.lexists(there):
                there.symlink_to(to)


def shown_change(name: str, old: Path, new: Path, *, ran: Sequence[str] = ()) -> str:
    """Say which line of a text file changed, blank ones apart, and how many more did.

    It is the first that changed. If `ran` names functions ('file: function'), changes inside the earliest come first.
    """
    try:
        before, after = (_lines(path.read_text(encoding="utf-8")) if path.exists() else [] for path in (old, new))
    except (OSError, UnicodeDecodeError):
        return f"{name}: changed"
    matcher = difflib.SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    few = len(before) + len(after) < MANY  # each of equal lines, as in a table, is compared with each
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"] if few else []
    if not before or not after or not blocks:
        return f"{name}: {'changed' if before and after else 'new' if after else 'gone'}"
    functions = [
        node for node in ast.walk(syntax_tree(new)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    def line(block: tuple[str, int, int, int, int]) -> int:
        return after[block[3]][0] if block[3] < len(after) else after[-1][0] + 1

    def place(block: tuple[str, int, int, int, int]) -> int:
        around = [node for node in functions if node.lineno <= line(block) <= (node.end_lineno or 0)]
        inner = f"/{name}: {max(around, key=lambda node: node.lineno).name}" if around else ""
        return next((at for at, name_of in enumerate(ran) if inner.endswith(f"/{name_of}")), len(ran))

    best = min(blocks, key=place)
    number, (_, a, b, c, d) = line(best), best
    firsts = [lines[0][1].strip() if lines else "" for lines in (before[a:b], after[c:d])]
    was, now = _around_difference(*firsts)
    how = f"{was!r} -> {now!r}" if was and now else f"{was!r} removed" if was else f"{now!r} added"
    more = sum(max(b - a, d - c) for _, a, b, c, d in blocks) - 1
    others = f", and {more} more line{'s' if more > 1 else ''}" if more else ""
    return f"{name}:{number} {how}{others}"


def _around_difference(*texts: str) -> Iterator[str]:
    """Both texts; of long ones what is around their first difference."""
    pairs = enumerate(zip(*texts, strict=False))
    same = next((at for at, (first, second) in pairs if first != second), min(map(len, texts)))
    begin = max(same - SHOWN // 4, 0) if max(map(len, texts)) > SHOWN else 0
    for text in texts:
        shown = text[begin : begin + SHOWN]
        yield f"{'...' if begin else ''}{shown}{'...' if text[begin + SHOWN :] else ''}" if text else ""


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
