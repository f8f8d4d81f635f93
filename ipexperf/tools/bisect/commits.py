"""The commits of a repository, each checked out in a clone of its own while it is measured.

The commits of the first-parent line are an ordered list, and the search over it is the one for versions. Why not
`git bisect run`: docs/adr/0053-search-commits-ourselves.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf import lock as locks
from ipexperf import scratch
from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.environments import make, sources
from ipexperf.errors import LockError, UsageError
from ipexperf.judge.bisection import Change
from ipexperf.lock import Lock, with_package
from ipexperf.tools.bisect.answers import FOLDER
from ipexperf.tools.bisect.software import End, Installed, Locked, Say

SHORT = 12
"""Digits of a commit that are shown."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its hash, and its subject, author and date in words."""

    sha: str
    words: str


@dataclass(slots=True)
class Repository:
    """A local repository, and how a commit of it becomes software.

    Without a build command, workers import the clone itself: it and its `src` come first in PYTHONPATH, and its
    files take the place of the repository's. They do so too after a command that builds in place. If the command leaves
    a wheel in `dist`, that wheel is installed instead.
    """

    folder: Path
    build: str = ""
    timeout: float | None = None
    """Seconds that a build may take."""
    wheels: bool | None = field(default=None, init=False)
    """True if the build leaves a wheel. The first commit built decides; all others must do the same."""

    def git(self, *words: str) -> str:
        """Return what git prints. Raise UsageError if it fails."""
        printed = source.git(self.folder, *words, seconds=None)
        if printed is None:
            raise UsageError(f"git {words[0]} fails in {self.folder}")
        return printed.decode(errors="replace")

    def holds(self, *words: str) -> bool:
        """Return True if git ends with status 0."""
        return source.git(self.folder, *words) is not None

    def commits(self, ends: str) -> list[Commit]:
        """Return the commits of `GOOD..BAD` on the first-parent line, GOOD and BAD included."""
        good, dots, bad = ends.partition("..")
        if not (good and dots and bad) or bad.startswith("."):
            raise UsageError(f"--commits '{ends}': expected GOOD..BAD")
        shas = [self._sha(name) for name in (good, bad)]
        if shas[0] == shas[1]:
            raise UsageError(f"--commits {ends}: both are commit {shas[0][:12]}: name an earlier one as GOOD")
        if not self.holds("merge-base", "--is-ancestor", *shas):
            exchanged = self.holds("merge-base", "--is-ancestor", *reversed(shas))
            reason = "BAD is an ancestor of GOOD: are they exchanged?" if exchanged else "GOOD is no ancestor of BAD"
            raise UsageError(f"--commits {ends}: {reason}")
        return [*self._described("-1", shas[0]), *self._described("--reverse", f"{shas[0]}..{shas[1]}")]

    def _sha(self, name: str) -> str:
        if not self.holds("rev-parse", "--git-dir"):
            raise UsageError(f"--repo {self.folder} is no git repository")
        if name.startswith("-") or not self.holds("rev-parse", "--verify", f"{name}^{{commit}}"):
            raise UsageError(f"--commits: {self.folder} has no commit '{name}'")
        return self.git("rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def _described(self, *words: str) -> list[Commit]:
        text = self.git("log", "--first-parent", "--format=%H %s (%an, %as)", *words, "--")
        return [Commit(*line.split(" ", 1)) for line in text.splitlines()]

    @property
    def top(self) -> str:
        """The folder of its files."""
        return self.git("rev-parse", "--show-toplevel").strip()

    @contextlib.contextmanager
    def checked_out(self, cache: Path, commit: Commit) -> Iterator[Path]:
        """Check a commit out into a clone for the block, so that builds may ask git. The repository learns nothing."""
        with scratch.folder("commit", scratch.made(cache.absolute() / FOLDER)) as place:
            yield sources.make_clone(Path(self.top), commit.sha, place / commit.sha[:SHORT])


@dataclass(frozen=True, slots=True)
class AtCommit:
    """The software of a candidate: the good end's packages with one commit of the repository."""

    base: End
    repository: Repository
    commit: Commit

    @property
    def key(self) -> str:
        content = f"{self.base.lock.digest} {self.commit.sha} {self.repository.build}"
        return f"{self.commit.sha[:SHORT]}-{hashlib.sha256(content.encode()).hexdigest()[:SHORT]}"

    @contextlib.contextmanager
    def ready(self, cache: Path, say: Say) -> Iterator[Installed]:
        if (lock := self.lock(cache)) is not None and make.find(cache, lock) is not None:
            self._same_form(wheels=True)
            with Locked(lock).ready(cache, say) as installed:
                yield installed
            return
        with contextlib.ExitStack() as stack:
            tree = stack.enter_context(self.repository.checked_out(cache, self.commit))
            if self.repository.build:
                wheel = self._built(tree, cache, say)
            else:
                wheel = None
                sources.link_others(Path(self.repository.top), tree)
            self._same_form(wheels=wheel is not None)
            if wheel is None:
                path = os.pathsep.join(str(path) for path in (tree / "src", tree) if path.is_dir())
                # A network that is named by its file comes from there too, and the proof says so.
                replaced = Replaced(self.repository.top, str(tree), ("src", "."))
                variables = dict(self.base.lock.variables) | {"PYTHONPATH": path} | replaced.variables
                yield Installed(self.base.python, tuple(sorted(variables.items())))
                return
            package = make.keep_wheel(cache, wheel, self.base.lock, say)
            lock = with_package(self.base.lock, package)
            scratch.made(self._lock_file(cache).parent)
            self._lock_file(cache).write_text(lock.text, encoding="utf-8")
            stack.close()
            yield stack.enter_context(Locked(lock).ready(cache, say))

    def lock(self, cache: Path) -> Lock | None:
        """Return the lock with the wheel of this commit, or None if none was built."""
        path = self._lock_file(cache)
        return locks.read(path) if path.exists() else None

    def _lock_file(self, cache: Path) -> Path:
        return cache / FOLDER / "built" / f"{self.key}.txt"

    def _same_form(self, *, wheels: bool) -> None:
        if self.repository.wheels is None:
            self.repository.wheels = wheels
        if self.repository.wheels is not wheels:
            difference = "left no wheel in dist, as that of the good end did" if not wheels else "left a wheel in dist"
            raise LockError(f"its build {difference}: they cannot be compared")

    def _built(self, tree: Path, cache: Path, say: Say) -> Path | None:
        """Run the build command in the clone. Return the wheel that it left in `dist`, or None."""
        before = set((tree / "dist").glob("*.whl"))
        log = cache / FOLDER / "built" / f"{self.key}.log"
        say(f"building {self.commit.sha[:SHORT]}: {self.repository.build}")
        if reason := sources.run_build(self.repository.build, tree, log, self.repository.timeout):
            raise LockError(reason)
        wheels = sorted(set((tree / "dist").glob("*.whl")) - before)
        if len(wheels) > 1:
            raise LockError(f"its build left {len(wheels)} wheels in dist, expected one")
        return wheels[0] if wheels else None


def changes(commits: Sequence[Commit]) -> list[Change]:
    """Describe each commit as a change, for people."""
    return [Change("commit", commit.sha[:SHORT], None, commit.words) for commit in commits]
