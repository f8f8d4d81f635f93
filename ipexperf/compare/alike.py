"""Whether arms with other trees of files import alike: what one has from its tree, no other may have from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.compare.arm import Arm
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError


def unlike(arms: Sequence[Arm], workers: Sequence[Worker], say: Callable[[str], None]) -> list[WorkerError | None]:
    """Why each arm does not run its own tree, or nothing. Also says which files an arm has from the user's tree."""
    trees = [Replaced.of(arm.conditions.variables) for arm in arms]
    if len(set(trees)) < 2 or len(workers) < len(arms) or any(one.killed for one in workers):
        return []
    if not arms[0].prove or arms[0].index:
        return []
    try:
        own = [worker.ask("modules", names=[])["modules"] for worker in workers]
        names = sorted({name for files in own for name in files})
        found = [worker.ask("modules", names=names)["modules"] for worker in workers]
    except WorkerError:  # it ended, which its next request tells
        return []
    for arm, tree, files in zip(arms, trees, found, strict=True):
        links = [Path(file) for file in files.values() if tree and file.startswith(f"{tree.by}/")]
        if lent := sorted({source.name(path, tree.by) for path in links if tree and path.is_symlink()}):
            say(f"{arm.name} has your {', '.join(lent)}, which git ignores: --perf-build COMMAND makes its own")
    places = [tree.by if tree else str(source.tree()) for tree in trees]
    return [_error(place, files, found) for place, files in zip(places, found, strict=True)]


def _error(tree: str, files: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> WorkerError | None:
    """The first module that is not imported from this tree, which has it, although another arm has it from its own."""
    for name, file in sorted(files.items()):
        theirs = next((other[name] for other in others if not other.get(name, "/").startswith("/")), None)
        if file.startswith("/") and theirs and Path(tree, theirs).is_file():
            built = Path(file).parent == Path(tree, theirs).parent
            way = "--perf-build COMMAND builds the other's too" if built else "say `pip install -e .`"
            return WorkerError("import_error", f"it imports {name} from {file} and not {theirs} of its tree: {way}")
    return None
