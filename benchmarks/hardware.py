"""What was seen to hold on which machine: docs/results/hardware.md, from the histories of runs on them.

    python benchmarks/hardware.py HISTORY.db [HISTORY.db ...] > docs/results/hardware.md

A case holds if all of its launches that count ran to their end, and every check of their proof and accuracy held.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ipexperf.history.records import Recorded, RunDetail
from ipexperf.history.store import History
from ipexperf.report.markdown import cell, code, plain

HEAD = """# What was seen on which machine

`benchmarks/hardware.py` writes this page from histories. A case holds if it ran to its end and every check of its
[proof](../reference/proof.md) and [accuracy](../reference/accuracy.md) held; what is not named was not run there, or
[left out with its reason](../reference/options.md). Cards: [an H200 for 14 minutes](cards.md). Never seen: an Intel
GPU, AMX, a host with several memory nodes.
"""


def broken(one: Recorded) -> str:
    """Why a case does not hold, or an empty text."""
    reasons = [launch.reason for launch in one.counted if launch.outcome != "ok"]
    checks = [check for launch in one.counted for kind in ("proof", "accuracy") for check in launch.document[kind]]
    reasons += [f"{check['name']}: {check['found']}" for check in checks if not check["ok"]]
    return next(iter(reasons), "" if checks else "no check was made")


def section(detail: RunDetail, cases: Sequence[Recorded]) -> Iterator[str]:
    """What held on one machine, and what did not."""
    run, hardware = detail.run, detail.environment["hardware"]
    card = hardware.get("accelerator") or {}
    software = f"torch {run.torch_version}, IPEX {run.ipex_version or '-'}"
    yield from ("", f"## {plain(card.get('name') or hardware['cpu'])}", "")
    yield f"{run.started_at[:10]}, {software}, {code(run.machine_key)}: {code(' '.join(hardware['isa']))}"
    yield from ("", "| model | mode | held, by dtype and stack |", "|---|---|---|")
    held: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in cases:
        if not broken(one):
            axes = one.case.axes
            held[axes["model"], axes["mode"]][axes["dtype"]].add(axes["stack"])
    for (model, mode), dtypes in sorted(held.items()):
        told = "; ".join(f"{dtype} {', '.join(sorted(dtypes[dtype]))}" for dtype in sorted(dtypes))
        yield f"| {cell(model)} | {cell(mode)} | {told} |"
    if failed := [f"| {cell(one.case.id)} | {cell(why)} |" for one in cases if (why := broken(one))]:
        yield from ("", "| did not hold | why |", "|---|---|", *failed)


def main() -> int:
    lines = [HEAD.rstrip()]
    for path in sys.argv[1:]:
        with History.open(path, create=False) as history:
            details = [history.show(run.uid) for run in history.runs(100)]
        newest = {one.case.uid: one for detail in reversed(details) for one in detail.cases}
        lines += section(details[0], list(newest.values()))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
