"""A function that a test calls: no cell of the matrix, so plans find no file of it."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.api import Mode, Session, Workbench
from ipexperf.case import CALL
from ipexperf.errors import WorkerError


class Calls(Mode):
    name = CALL
    planned = False
    labelled = False
    family = CALL
    kind = "functions"

    def open(self, bench: Workbench) -> Session:
        raise WorkerError("error", f"{bench.case.id} is a test: a session of pytest runs it")


registry.modes.add(CALL, Calls())
