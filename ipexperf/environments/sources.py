"""The user's own files of an accepted case: what keeps them, and the tree in which a worker runs them again.

A file in `sources/` beside the baselines names them with their digests. It has the content of those that the commit
lacks; git has the others, and a reference of ours keeps the commit. Large ones, such as compiled kernels, are in the
cache alone, where they run.
"""

from __future__ import annotations

import ast
import base64
import difflib
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from ipexperf import scratch
from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.networks.own_target import syntax_tree
from ipexperf.errors import LockError, UsageError

FORMAT = "ipexperf source 1"
FOLDER = "sources"
"""The folder inside that of the baselines, and that inside the cache."""
REFERENCES = "refs/ipexperf/accepted"
LARGEST = 4 * 2**20
"""Most bytes of files that are kept beside a baseline. Those in git do not count, and larger ones are in the cache."""
DIGITS = 12
CODE = frozenset({".py", ".pyc", ".pyi", ".so"})
SHOWN = 60
"""Longest line of a change that is shown whole."""


@dataclass(frozen=True, slots=True)
class Source:
    """The user's files that a case imported or was named by, and the folders that they were imported from."""

    files: Mapping[str, str] = field(default_factory=dict)
    """The digest of each, by its name in the user's tree."""
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, Any]) -> Source:
        """The source that an environment records."""
        return cls(dict(environment.get("source") or {}), tuple(environment.get("source_paths") or ()))

    @property
    def digest(self) -> str:
        document = json.dumps([sorted(self.files.items()), self.paths])
        return hashlib.sha256(document.encode()).hexdigest()[:DIGITS]

    def changed(self) -> list[str]:
        """The files that are not here as they were."""
        return [name for name, digest in self.files.items() if _read(source.tree() / name, digest) is None]


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
        found = {**self.contents, **_committed(self.commit, missing)}
        for name, digest in self.source.files.items():
            cached = None if name in found else _read(source.place(folder, name), digest)
            if cached is not None:
                found[name] = cached
            elif name not in found:
                commit = f"the commit {self.commit[:DIGITS]}" if self.commit else "git"
                raise LockError(f"{name} is neither in {commit} nor in {folder}")
            if source.digest(found[name]) != digest:
                raise LockError(f"what is kept of {name} is not what was accepted")
        return found


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
    return baselines / FOLDER / f"{digest}.json"


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
    contents: dict[str, bytes] = {}
    for name, digest in wanted.files.items():
        if name in in_git:
            continue
        content = _read(source.tree() / name, digest)
        if content is None:
            return Kept(wanted), f"{name} was edited since it ran, and no commit has it"
        contents[name] = content
    cached = []
    for name in sorted(contents, key=lambda name: -len(contents[name])):
        if sum(map(len, contents.values())) > LARGEST:
            _write(source.place(_folder_of(wanted, cache), name), contents.pop(name))
            cached.append(name)
    kept = Kept(wanted, contents=contents, cached=tuple(cached))
    if not in_git or commit is None:
        return kept, ""
    _git("update-ref", f"{REFERENCES}/{wanted.digest}", commit)
    return replace(kept, commit=commit), ""


def forget(digest: str) -> None:
    """Remove the reference that keeps the commit of a source, if there is one."""
    _git("update-ref", "-d", f"{REFERENCES}/{digest}")


def _read(path: Path, digest: str) -> bytes | None:
    """The content of a file if it has this digest."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if source.digest(content) == digest else None


def _git(
    *words: str, send: bytes = b"", variables: Mapping[str, str] | None = None, top: Path | None = None
) -> bytes | None:
    """What git prints in the user's tree, or in `top`. None if it fails or is not there. Runs none of its hooks."""
    try:
        completed = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-C", str(top or source.tree()), *words],  # noqa: S607 - the user's own
            input=send,
            capture_output=True,
            check=False,
            env={**os.environ, **(variables or {})},
        )
    except OSError:
        return None
    return completed.stdout if completed.returncode == 0 else None


def _committed(commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """The content of those of these files that a commit has."""
    inside = [name for name in names if not name.startswith("/") and "\n" not in name]
    if not commit or not inside:
        return {}
    requests = "".join(f"{commit}:{name}\n" for name in inside).encode(errors="surrogateescape")
    answer, found = _git("cat-file", "--batch", send=requests) or b"", {}
    for name in inside:
        head, _, answer = answer.partition(b"\n")
        words = head.split()
        if len(words) == 3 and words[2].isdigit():
            length = int(words[2])
            if words[1] == b"blob":
                found[name] = answer[:length]
            answer = answer[length + 1 :]
    return found


def tree_of(kept: Kept, cache: Path) -> Replaced:
    """Write the files of a source into a tree in the cache. Raises LockError if they cannot be had again."""
    folder = _folder_of(kept.source, cache)
    content = kept.content(folder)
    for name, data in content.items():
        path = source.place(folder, name)
        if _read(path, kept.source.files[name]) is None:
            _write(path, data)
    link_others(source.tree(), folder)
    return Replaced(str(source.tree()), str(folder), kept.source.paths)


def _folder_of(wanted: Source, cache: Path) -> Path:
    return cache.absolute() / FOLDER / wanted.digest


def tree_of_commit(reference: str, cache: Path) -> tuple[Replaced, str]:
    """Check a commit out into a tree in the cache. Also returns its hash.

    The user's repository learns nothing of it: no worktree is registered, and its index is not used.
    """
    top = source.tree()
    found = None if reference.startswith("-") else _git("rev-parse", "--verify", f"{reference}^{{commit}}")
    if found is None:
        here = _git("rev-parse", "--git-dir")
        raise UsageError(f"{top} is no git repository" if here is None else f"{top} has no commit '{reference}'")
    sha = found.decode().strip()
    folder = cache.absolute() / FOLDER / sha[:DIGITS]
    if not folder.exists():
        scratch.made(folder.parent)
        with scratch.folder("checkout", folder.parent) as place:
            out = place / "files"
            out.mkdir()
            check_out(top, sha, out)
            out.rename(folder)
    link_others(top, folder)
    return Replaced(str(top), str(folder), ("src", ".")), sha


def check_out(top: Path, sha: str, folder: Path) -> None:
    """Write the files of a commit into a folder, with those of its submodules as far as these are here."""
    with scratch.folder("index") as place:
        index = {"GIT_INDEX_FILE": str(place / "index")}
        for words in (("read-tree", sha), ("checkout-index", "--all", "--force", f"--prefix={folder}/")):
            if _git(*words, top=top, variables=index) is None:
                raise UsageError(f"git {words[0]} of {sha[:DIGITS]} failed in {top}")
    check_out_submodules(top, sha, folder)


def check_out_submodules(top: Path, sha: str, folder: Path) -> None:
    """Write the files of a commit's submodules into a folder that has its own."""
    for line in (_git("ls-tree", "-rz", sha, top=top) or b"").decode(errors="surrogateescape").split("\0"):
        words, _, name = line.partition("\t")
        kind, commit = words.split()[1:] if words else ("", "")
        if kind == "commit" and _git("cat-file", "-e", commit, top=top / name) is not None:
            check_out(top / name, commit, folder / name)


def _write(path: Path, content: bytes) -> None:
    scratch.made(path.parent)
    with scratch.folder("source", path.parent) as folder:
        part = folder / path.name
        part.write_bytes(content)
        part.replace(path)


def link_others(top: Path, folder: Path) -> None:
    """Link what lies beside the files of a tree and is no code, such as data, to where it is in the user's tree."""
    for place, _, _ in os.walk(folder):
        inside = PurePath(place).relative_to(folder)
        outside = bool(inside.parts) and inside.parts[0] == source.OUTSIDE
        here = Path("/", *inside.parts[1:]) if outside else top / inside
        modules = {entry.stem for entry in Path(place).glob("*.py")}
        for entry in sorted(here.iterdir()) if here.is_dir() else ():
            there = Path(place, entry.name)
            hides = entry.is_dir() and entry.name in modules
            if not (entry.name.startswith((".", "__")) or hides or _is_code(entry) or os.path.lexists(there)):
                there.symlink_to(entry)


def _is_code(entry: Path) -> bool:
    return entry.suffix in CODE or (entry / "__init__.py").exists()


def shown_change(name: str, old: Path, new: Path, *, ran: Sequence[str] = ()) -> str:
    """Say which line of a text file changed, blank ones apart, and how many more did.

    It is the first that changed. If `ran` names functions ('file: function'), changes inside the earliest come first.
    """
    try:
        before, after = (_lines(path.read_text(encoding="utf-8")) if path.exists() else [] for path in (old, new))
    except (OSError, UnicodeDecodeError):
        return f"{name}: changed"
    matcher = difflib.SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
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
        return next((at for at, one in enumerate(ran) if inner.endswith(f"/{one}")), len(ran))

    best = min(blocks, key=place)
    number, (_, a, b, c, d) = line(best), best
    firsts = [lines[0][1].strip() if lines else "" for lines in (before[a:b], after[c:d])]
    was, now = (repr(text) if text else "nothing" for text in _around_difference(*firsts))
    more = sum(max(b - a, d - c) for _, a, b, c, d in blocks) - 1
    others = f", and {more} more line{'s' if more > 1 else ''}" if more else ""
    return f"{name}, line {number}: {was} -> {now}{others}"


def _around_difference(*texts: str) -> Iterator[str]:
    """Both texts; of long ones what is around their first difference."""
    pairs = enumerate(zip(*texts, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
    begin = max(same - SHOWN // 4, 0) if max(map(len, texts)) > SHOWN else 0
    for text in texts:
        shown = text[begin : begin + SHOWN]
        yield f"{'...' if begin else ''}{shown}{'...' if text[begin + SHOWN :] else ''}" if text else ""


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
