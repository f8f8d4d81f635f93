"""The user's own files that a process has imported or read, and how a process has them from another tree.

A file is the user's if no package and no part of Python owns it. It is named relative to the tree that it is in: the
repository of the current folder, or the current folder. Another tree, such as one of accepted files, takes the place of
that one if `SOURCE` says so: it is the current folder then, and its modules and named files come before those of the
user's.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import io
import json
import os
import re
import site
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from types import CodeType
from typing import Any

from ipexperf import scratch
from ipexperf.bench.machine import libraries
from ipexperf.errors import UsageError
from ipexperf.result import Check
from ipexperf.variables import SEARCHED, SOURCE

DIGITS = 16
OUTSIDE = ".outside"
"""The folder of another tree that holds files from outside the user's, below their whole paths."""
PACKAGE = Path(__file__).resolve().parents[2]
"""This package. It is the same for all arms, wherever it is."""
LARGEST = 2**24
"""Bytes of the largest file that counts because it was read and that git does not track. Larger ones are data."""
MANY = 64
"""More files of one suffix that a process reads are data too."""
IGNORED = ("check-ignore", "-z", "--stdin")
"""Asks git which files it ignores, such as what a build or a test leaves there."""
FUNCTIONS = 100
"""So many of the functions that ran are named, at most."""
_HIDDEN = re.compile(r"/(\.|__pycache__/)")
_ELSEWHERE = re.compile(r"(^|/)(\.{0,2}|\.git)(/|$)|[\0-\x1f\x7f]")
_OPEN = io.open
_named: set[Path] = set()
"""The files beside modules that were read by their name."""
_opened: dict[str, bool] = {}
"""The files that this process has opened: whether it only read them."""
_mapped: set[str] = set()
"""The files whose code this process had when it was asked. One that is unloaded before that is not seen."""
_stayed: list[Path] = []
"""The folder whose tree this process keeps to."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A tree that takes the place of the user's."""

    tree: str
    """The user's tree."""
    by: str
    paths: tuple[str, ...] = ()
    """The folders of the tree, relative to it, from which modules were imported when it was accepted."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make a worker import it."""
        return {SOURCE: json.dumps(asdict(self))}

    @classmethod
    def of(cls, variables: Mapping[str, str] = os.environ) -> Replaced | None:
        """The one that these variables name."""
        if not variables.get(SOURCE):
            return None
        document = json.loads(variables[SOURCE])
        return cls(document["tree"], document["by"], tuple(document["paths"]))

    def moved(self, path: Path) -> Path:
        """The file that takes the place of this one. A file that the other tree lacks stays."""
        path = _absolute(path)
        there = place(self.by, name(path, self.tree)) if not path.is_relative_to(self.by) else path
        return there if there.exists() else path

    def lacks(self, path: Path) -> bool:
        """Whether this file is in the user's tree and not in the other one."""
        return _absolute(path).is_relative_to(self.tree) and not self.moved(path).is_relative_to(self.by)


def name(path: Path, tree: str | Path) -> str:
    """Return the name of a file: relative to the tree, or its whole path if it is outside."""
    return str(path.relative_to(tree) if path.is_relative_to(tree) else path)


def place(tree: str | Path, name: str) -> Path:
    """Return where the file of this name is in another tree than the user's."""
    return Path(tree, OUTSIDE, name.lstrip("/")) if name.startswith("/") else Path(tree, name)


def check_names(*names: str) -> None:
    """Raise UsageError if a file or folder that a document names may be outside the tree that it is meant for."""
    for name in names:
        if name != "." and _ELSEWHERE.search(name.removeprefix("/")):
            raise UsageError(f"{name!r} names no file inside a folder: expected a name without '..' and '.git'")


def inside(folder: Path, name: str) -> Path:
    """Return where the file that a document names is in a folder. Raise UsageError if it may be anywhere else."""
    check_names(name)
    path = place(folder, name)
    for part in (path, *path.parents[: len(path.relative_to(folder).parts) - 1]):
        if part.is_symlink() or (part.exists() and part.is_file() != (part == path)):
            raise UsageError(f"expected {path} to be a plain file, and {part} is a link or something else")
    return path


def stay() -> None:
    """Keep to the tree of the current folder, because a test may go into another one."""
    _stayed.append(Path.cwd())


def tree() -> Path:
    """Return the user's tree: the repository of the current folder, or the current folder."""
    here = _stayed[-1] if _stayed else Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def moved(path: Path) -> Path:
    """Return the file to read in place of this one, if another tree takes the place of the user's."""
    replaced = Replaced.of()
    return path if replaced is None else replaced.moved(path)


def named(path: Path) -> Path:
    """Return the file to read in place of this one, and count it among those that this process was named by."""
    path = moved(path)
    _named.add(_absolute(path))
    return path


def watch() -> None:
    """Count the files that this process opens from now on. An audit hook would slow each `id()` that is measured."""
    builtins.open = io.open = _open


def _open(file: Any, *arguments: Any, **options: Any) -> Any:
    stream = _OPEN(file, *arguments, **options)
    with suppress(OSError, TypeError, ValueError):  # a descriptor, or a folder that is gone
        path = os.path.abspath(os.fsdecode(file))  # noqa: PTH100 - quick, and follows no links
        _opened[path] = _opened.get(path, True) and not stream.writable()
    return stream


# So that it can be pickled, as Python's own.
_open.__module__, _open.__qualname__, _open.__name__ = "io", "open", "open"


def own_tree() -> str:
    """Return the user's tree, also where another one takes its place."""
    replaced = Replaced.of()
    return str(tree()) if replaced is None else replaced.tree


def searched() -> str:
    """Return the user's folders that this process imports from, for its workers: `PATH`'s way to write several."""
    scripts, here = sysconfig.get_path("scripts"), str(Path.cwd())  # of the former Python puts a script's own first
    folders = [str(_absolute(Path(entry))) for entry in sys.path if Path(entry).is_dir()]
    entries = [entry for entry in dict.fromkeys(folders) if entry != scripts and not _installed(entry)]
    first = here in entries and next(entry for entry in folders if entry == here or _installed(entry)) == here
    return os.pathsep.join(["", here, *entries] if first else entries)  # as `python -m` has it


def roots() -> tuple[str, ...]:
    """Return the folders that a tree is imported from: itself, and those above the user's modules and this process."""
    inner = [PurePath(path) for path in (*paths(), name(Path.cwd(), tree())) if not path.startswith("/")]
    above = [folder for path in inner for folder in (path, *path.parents)]
    every = dict.fromkeys(str(place) for folder in (PurePath(), *above) for place in (folder / "src", folder))
    return tuple(place for place in every if (tree() / place).is_dir() or place == "src")


def arrange() -> None:
    """Import from the folders of the controller too, after all others, and from those of another tree before all."""
    replaced = Replaced.of()
    searched = os.environ.get(SEARCHED, "")
    folders = [Path(folder) for folder in searched.split(os.pathsep) if folder]
    if replaced is not None:  # not the user's own tree after the other one: what that lacks is to be missing
        here = [folder for folder in folders if folder.is_relative_to(replaced.tree)]
        folders = [place(replaced.by, name(folder, replaced.tree)) if folder in here else folder for folder in folders]
    sys.path[:0] = [str(folder) for folder in folders[:1] if searched.startswith(os.pathsep)]
    sys.path += [str(folder) for folder in folders if str(folder) not in sys.path]
    if replaced is None:
        return
    entries = [Path(replaced.tree, path) for path in replaced.paths]
    entries += [Path(entry) for entry in sys.path if not _installed(entry or ".")]
    there = (replaced.moved(entry) for entry in (*entries, Path.cwd()))
    sys.path[:0] = dict.fromkeys(str(folder) for folder in there if folder.is_relative_to(replaced.by))
    os.chdir(replaced.moved(Path.cwd()))


def document() -> dict[str, Any]:
    """Return the digest of each of the user's files that this process has imported, loaded, read, or was named by."""
    digests = {file: digest_of(path) for file, (path, _) in sorted(_imported().items())}
    return {"source": digests, "source_paths": paths()}


def paths() -> list[str]:
    """Return the folders, relative to the tree, from which they were imported."""
    return sorted({folder for _, folder in _imported().values() if folder is not None})


def modules(names: Iterable[str]) -> dict[str, str]:
    """Return the files of these modules and of all in the tree: a name there, or a path if git sees no such file."""
    replaced = Replaced.of()
    top = f"{replaced.by if replaced else tree()}{os.sep}"
    files = {full_name: getattr(sys.modules.get(full_name), "__file__", None) for full_name in names}
    files |= {full_name: str(path) for full_name, path, _ in _modules() if path.is_relative_to(top)}
    inner = {file: file.removeprefix(top) for file in files.values() if file and file.startswith(top)}
    ignored = _listed(tuple(inner.values()), *IGNORED)
    seen = {file: short for file, short in inner.items() if short not in ignored and not _installed(file)}
    return {full_name: seen.get(file, file) for full_name, file in files.items() if file}


def copied(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """The first module that is an installed copy of one of these files of the tree, and differs: module, copy, file.

    A package of the same name is none: no content of it is in the user's tree, or was ever kept by git.
    """
    replaced, loaded = Replaced.of(), {}
    top = Path(replaced.by if replaced else tree())
    for full_name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        depth = full_name.count(".") + 1 + file.endswith("/__init__.py")
        loaded["/".join(file.split("/")[-depth:])] = full_name, Path(file)
    for name in map(PurePath, names):
        for above in name.parents:
            inner = name.relative_to(above)
            full_name, file = loaded.get(str(inner), ("", Path()))
            is_top = full_name and (top / name).is_file() and not (top / above / "__init__.py").exists()
            if is_top and _installed(str(file)) and _differs(file, top / name):
                package = [
                    (path, above / file_name)
                    for file_name, (_, path) in loaded.items()
                    if file_name.split("/")[0] == inner.parts[0]
                ]
                if _known((path, file_name) for path, file_name in package if _installed(str(path))):
                    return [(full_name, str(file), str(name))]
    return []


def _known(copies: Iterable[tuple[Path, PurePath]]) -> bool:
    """Whether one of these has the content of its file in the user's tree, or one that git keeps. Empty ones do not."""
    here = Path(own_tree())
    full = [(path, here / name) for path, name in copies if path.stat().st_size]
    files = os.fsencode("\n".join(str(path) for path, _ in full))
    hashes = git(here, "hash-object", "--no-filters", "--stdin-paths", send=files) or b""
    # A partial clone would ask its server for each content that it lacks.
    kept = git(here, "cat-file", "--batch-check", send=hashes, GIT_NO_LAZY_FETCH="1") or b""
    return b" blob " in kept or any(own.is_file() and not _differs(path, own) for path, own in full)


def lent() -> list[str]:
    """Return the user's modules and libraries that this process has, though another tree has the place of theirs."""
    if (replaced := Replaced.of()) is None:
        return []
    files = _in_tree(map(str, (*_libraries(), *(path for _, path, _ in _modules()))))
    theirs = tuple(name for name, file in files.items() if not file.resolve().is_relative_to(replaced.by))
    return sorted(_listed(theirs, *IGNORED).intersection(theirs))


def functions(codes: Iterable[CodeType]) -> list[str]:
    """The functions in the user's files among these, as 'file: function', in their order there."""
    named = {path: file for file, (path, _) in _imported().items()}
    places = ((named.get(_absolute(Path(code.co_filename)), ""), code.co_firstlineno, code.co_name) for code in codes)
    names = (f"{file}: {function}" for file, _, function in sorted(places) if file and function.isidentifier())
    return list(dict.fromkeys(names))[:FUNCTIONS]


def checks() -> list[Check]:
    """Check that nothing was had from the user's tree that the other tree has otherwise. Empty if there is no other."""
    replaced = Replaced.of()
    if replaced is None:
        return []
    wrong = sorted(file for file, (path, _) in _imported().items() if _differs(path, replaced.moved(path)))
    origin = f"{', '.join(wrong[:3])} from {replaced.tree}" if wrong else "from there"
    return [Check("source", not wrong, origin, f"the files of {replaced.by}")]


def _differs(path: Path, other: Path) -> bool:
    return other != path and digest_of(other) != digest_of(path)


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digest of each of these files, empty for one that is gone. A folder, such as a submodule, has none."""
    paths = {name: folder / name for name in names}
    return {name: digest_of(path) if path.is_file() else "" for name, path in paths.items() if not path.is_dir()}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def digest_of(path: Path) -> str:
    """Return the digest of a file, which may be larger than the memory. It does not count as opened."""
    with _OPEN(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]


def _imported() -> dict[str, tuple[Path, str | None]]:
    """The user's files by name, each with the folder of the tree that it was imported from, if it is in it."""
    files: list[tuple[Path, Path | None]] = [(path, None) for path in (*_named, *_read(), *_libraries())]
    files += [(path, top) for _, path, top in _modules()]
    return {_original(path): (path, _original(top) if top else None) for path, top in files}


def _read() -> list[Path]:
    """The files of the tree that were read and not written, without data and those that git ignores."""
    files = _in_tree(path for path, only_read in list(_opened.items()) if only_read)
    kinds = Counter(file.suffix for file in files.values())
    own = {name: file for name, file in files.items() if kinds[file.suffix] <= MANY and _is_own(file)}
    large = tuple(name for name, file in own.items() if file.stat().st_size > LARGEST)
    tracked = _listed(large, "--literal-pathspecs", "ls-files", "-z", "--recurse-submodules", "--", *large)
    others = _listed(tuple(own), *IGNORED) | (set(large) - tracked)
    return [file for name, file in own.items() if name not in others]


def _libraries() -> list[Path]:
    """The libraries of the tree that this process has, whoever loaded them. Git may ignore what was built."""
    _mapped.update(libraries.code(libraries.maps()))
    return [file for file in _in_tree(_mapped).values() if _is_own(file)]


def _in_tree(paths: Iterable[str]) -> dict[str, Path]:
    """Those of these files that are in the tree, by name, without hidden ones."""
    replaced = Replaced.of()
    trees = [f"{folder}{os.sep}" for folder in ((replaced.by, replaced.tree) if replaced else (tree(),))]
    files: dict[str, Path] = {}
    for path in paths:
        folder, last = os.path.split(path)
        file = os.path.join(_real(folder), last)  # noqa: PTH118 - there may be 100,000
        top = next((top for top in trees if file.startswith(top)), None)
        if top is not None and not _HIDDEN.search(f"{os.sep}{file[len(top) :]}"):
            files[file[len(top) :]] = Path(file)
    return files


def _is_own(file: Path) -> bool:
    """Whether this is a file that neither this package nor another one owns."""
    return not (file.is_relative_to(PACKAGE) or _installed(str(file))) and file.is_file()


_real = functools.cache(os.path.realpath)


@functools.cache
def _listed(names: tuple[str, ...], *words: str) -> frozenset[str]:
    """Those of these files of the tree that git lists when it is asked so."""
    output = git(own_tree(), *words, send=os.fsencode("\0".join(names))) if names else b""
    return frozenset(os.fsdecode(output or b"").split("\0"))


def git(top: str | Path, *words: str, send: bytes = b"", seconds: float | None = 10, **more: str) -> bytes | None:
    """What git prints in this folder, with `more` variables, and runs no hook. None if it fails or is not there."""
    command, variables = [*scratch.GIT, "-C", str(top), *words], {**os.environ, **more}
    try:
        done = subprocess.run(command, input=send, capture_output=True, check=False, timeout=seconds, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _original(path: Path) -> str:
    """The name of a file or folder in the user's tree, also if it is in the one that takes its place."""
    replaced = Replaced.of()
    if replaced is None:
        return name(path, tree())
    if path.is_relative_to(Path(replaced.by, OUTSIDE)):
        return f"/{path.relative_to(Path(replaced.by, OUTSIDE))}"
    return name(path, replaced.by if path.is_relative_to(replaced.by) else replaced.tree)


def _modules() -> Iterator[tuple[str, Path, Path | None]]:
    """The user's modules: each with its file, and the folder of the path that it was imported from, if it was."""
    owned = functools.cache(_owned)  # packages have many modules
    for full_name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        top, last = full_name.partition(".")[0], full_name.rpartition(".")[2]
        # What a package makes at run time, such as the code of torch's compiler, is named below the package.
        if not file or top in sys.stdlib_module_names or top in ("__main__", "__mp_main__") or owned(top):
            continue
        path = _absolute(Path(file))
        # Torch writes a module into a temporary folder, which is removed.
        if not _is_own(path):
            continue
        package = path.name == "__init__.py"
        own_name = path.parent.name if package else path.name.partition(".")[0]
        yield full_name, path, path.parents[full_name.count(".") + package] if own_name == last else None


def _owned(top: str) -> bool:
    """Whether a top-level module belongs to a package."""
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    places = [file] if file else getattr(module, "__path__", ())  # of a namespace, some may be the user's
    return all(_installed(str(_absolute(Path(place)))) for place in places)


def _installed(path: str) -> bool:
    """Whether an installer put this path where it is: into a folder of packages, or into Python's own."""
    absolute = _absolute(Path(path))
    return any(absolute.is_relative_to(folder) for folder in _folders(tuple(sys.path)))


@functools.cache
def _folders(searched: tuple[str, ...]) -> tuple[str, ...]:
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    names |= {site.getusersitepackages(), *site.getsitepackages()}
    # `pip install --target` makes more of them: who has packages there has their metadata there.
    names |= {entry for entry in searched if entry and next(Path(entry).glob("*.dist-info"), None)}
    # An environment in the tree has libraries beside its packages.
    names |= {prefix for prefix in (sys.prefix, sys.base_prefix) if Path(own_tree()) in Path(prefix).parents}
    return tuple(sorted(str(_absolute(Path(folder))) for folder in names))


def _absolute(path: Path) -> Path:
    """The path without links in its folders. The file itself may be a link to a store."""
    return path.parent.resolve() / path.name
