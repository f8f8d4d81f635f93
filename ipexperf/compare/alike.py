"""Whether arms with other trees of files import alike: what one has from its tree, no other may have from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.compare.arm import Arm
from ipexperf.conduct.worker import Worker
from ipexperf.environments.sources import Say
from ipexperf.errors import WorkerError

Files = Mapping[str, str]
"""The file of each module: its name in the tree of the arm, or a whole path."""


def unlike(arms: Sequence[Arm], workers: Sequence[Worker], say: Say) -> list[WorkerError | None]:
    """Why each arm does not run its own tree, if it doesn't. Says which files one has from the user's tree."""
    trees = [Replaced.of(arm.conditions.variables) for arm in arms]
    if len(set(trees)) == 1:
        return [None] * len(arms)
    own = [_files(worker, ()) for worker in workers]
    names = sorted({name for files in own for name in files})
    found = [_files(worker, names) for worker in workers]
    for arm, tree, files in zip(arms, trees, found, strict=True):
        if tree and (lent := _lent(tree, files)):
            name = arm.name or "the other arm"
            say(f"{name} has your {lent}, which git ignores: --perf-build COMMAND makes its own")
    return [
        _error(tree.by if tree else str(source.tree()), files, [x for x in found if x is not files])
        for tree, files in zip(trees, found, strict=True)
    ]


def _files(worker: Worker, names: Sequence[str]) -> Files:
    answer: Files = worker.ask("modules", names=names)["modules"]
    return answer


def _lent(tree: Replaced, files: Files) -> str:
    """The files of the user's tree that another one has by a link, because git has no such files."""
    paths = (Path(file) for file in files.values() if file.startswith(f"{tree.by}/"))
    return ", ".join(sorted({source.name(path, tree.by) for path in paths if path.is_symlink()}))


def _error(tree: str, files: Files, others: Sequence[Files]) -> WorkerError | None:
    """The first module that is not imported from this tree, which has it, although another arm has it from its own."""
    for name, file in sorted(files.items()):
        theirs = next((other[name] for other in others if not other.get(name, "/").startswith("/")), None)
        if file.startswith("/") and theirs and Path(tree, theirs).is_file():
            way = "`--perf-build COMMAND` builds the other's too" if file.startswith(tree) else "say `pip install -e .`"
            return WorkerError("import_error", f"it imports {name} from {file} and not {theirs} of its tree: {way}")
    return None
