"""Whether arms run their own trees: what one has from its tree no other has from elsewhere, nor an installed copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.compare.arm import Arm
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.steps import Notice


def unlike(arms: Sequence[Arm], workers: Sequence[Worker], say: Callable[[str], None]) -> list[WorkerError | None]:
    """Why each arm does not run its own tree, or nothing. Also says which files an arm has from the user's tree."""
    trees = [Replaced.of(arm.conditions.variables) for arm in arms]
    differ = len(set(trees)) > 1
    first = (differ or any(arm.changed for arm in arms)) and arms[0].prove and not arms[0].index
    if not first or len(workers) < len(arms) or any(worker.killed for worker in workers):
        return []
    try:
        own = [worker.ask("modules", names=[], changed=arm.changed) for arm, worker in zip(arms, workers, strict=True)]
        names = sorted({name for reply in own for name in reply["modules"]})
        imported = [worker.ask("modules", names=names, changed=[])["modules"] for worker in workers]
    except WorkerError:  # it ended, which its next request tells
        return []
    for arm, reply in zip(arms, own, strict=True):
        if lent := ", ".join(reply["lent"]):
            say(Notice(f"{arm.name} has your {lent}, which git ignores: --perf-build COMMAND makes its own"))
    places = [tree.by if tree else str(source.tree()) for tree in trees]
    seen = zip(places, imported, (reply["copied"] for reply in own), strict=True)
    return [_error(*of_arm, imported if differ else ()) for of_arm in seen]


def _error(
    tree: str, files: Mapping[str, str], copied: Sequence[Sequence[str]], others: Sequence[Mapping[str, str]]
) -> WorkerError | None:
    """The first module that is not imported from this tree, which has it: a copy, or another arm's from its own."""
    outside = [(name, file) for name, file in sorted(files.items()) if file.startswith("/")]
    theirs = [(name, file, other[name]) for name, file in outside for other in others if name in other]
    for name, file, own in (*copied, *theirs):
        if not own.startswith("/") and Path(tree, own).is_file():
            built = Path(file).parent == Path(tree, own).parent
            project = next(
                (folder for folder in Path(own).parents if Path(tree, folder, "pyproject.toml").exists()), "."
            )
            way = "--perf-build COMMAND builds the other's too" if built else f"say `pip install -e {project}`"
            return WorkerError("import_error", f"it imports {name} from {file} and not {own} of its tree: {way}")
    return None
