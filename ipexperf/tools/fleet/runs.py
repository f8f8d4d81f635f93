"""The caller's side: start a command on hosts, follow it, and merge what was recorded there into the history here."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.commands import console, show
from ipexperf.conduct import interrupts
from ipexperf.errors import HistoryError, UsageError
from ipexperf.history import merging
from ipexperf.history.database import open_read_only
from ipexperf.history.store import History
from ipexperf.history.values import run_uid
from ipexperf.tools.fleet.cluster import RayFleet
from ipexperf.tools.fleet.host_side import HostSide
from ipexperf.tools.fleet.hosts import Host, HostLostError

POLL_SECONDS = 0.5
END_SECONDS = 60.0
"""How long a command may take to end once it was told to."""
COLLECT = "`ipexperf fleet collect` brings what it recorded"


@dataclass(slots=True)
class FromHost:
    """What came of a host."""

    problem: str = ""
    """What went wrong there, or an empty text."""
    runs: list[str] = field(default_factory=list)
    """The uids of the runs that were brought."""


class Caller:
    """Brings the histories of hosts here, and tells what came."""

    def __init__(self, fleet: RayFleet, hosts: Sequence[Host], db: str) -> None:
        self._fleet, self._db = fleet, db
        self._came = {host.name: FromHost(f"gone: {host.gone}" * bool(host.gone)) for host in hosts}
        self._hosts = [host for host in hosts if not host.gone]
        History.open(db).close()  # a bad address is an error before anything is measured

    def run(self, command: Sequence[str], *, share: bool) -> int:
        """Run a command on each host, and return 0 if it ended well everywhere."""
        if share:
            self._refuse_unequal()
        name, live = run_uid(), {host.name: host for host in self._hosts}
        try:
            names = [host.name for host in self._hosts] if share else []
            for host, started in self._fleet.ask(self._hosts, HostSide.start, name, command, names).items():
                if started:
                    self._came[host].problem = str(started)
                    del live[host]
            self._follow(name, live)
        except KeyboardInterrupt:
            console.say("ending the command on each host; a second Ctrl-C leaves them alone")
            self._fleet.ask(list(live.values()), HostSide.end)
            self._follow(name, live, END_SECONDS)
            self._report()
            raise
        return self._report()

    def collect(self) -> int:
        """Bring what was recorded on each host and was not brought yet. Return 0 if every host answered."""
        for host in self._hosts:
            kept: Any = self._fleet.ask([host], HostSide.kept)[host.name]
            if isinstance(kept, HostLostError):
                self._came[host.name].problem = str(kept)
                continue
            for run, alive in kept.items():
                if alive:
                    console.say(f"{host.name}: the command of {run[:18]} still runs")
                else:
                    self._bring(host, run)
        return self._report()

    def _refuse_unequal(self) -> None:
        described: dict[str, Any] = self._fleet.ask(self._hosts, HostSide.software)
        for host, software in described.items():
            if isinstance(software, HostLostError):
                raise UsageError(f"--share: {host} cannot say what it measures with: {software}")
        (first, software), *others = described.items()
        for other, other_software in others:
            if differing := [
                name
                for name in dict.fromkeys((*software, *other_software))
                if software.get(name) != other_software.get(name)
            ]:
                raise UsageError(f"--share: {other} is not equal to {first} in {', '.join(differing)}")

    def _follow(self, run: str, live: dict[str, Host], seconds: float | None = None) -> None:
        """Print what the commands print, and bring each history once its command has ended."""
        until = None if seconds is None else time.monotonic() + seconds
        while live:
            answers: dict[str, Any] = self._fleet.ask(list(live.values()), HostSide.poll)
            for name, answer in answers.items():
                if isinstance(answer, HostLostError):
                    self._came[name].problem = f"lost: {answer}; {COLLECT} when it is back"
                    del live[name]
                    continue
                lines, status = answer
                for line in lines:
                    console.say(f"{name} | {line}")
                if status is not None:
                    if status:
                        self._came[name].problem = f"the command ended with status {status}"
                    self._bring(live[name], run)
                    del live[name]
            sys.stdout.flush()
            if until is not None and time.monotonic() > until:
                self._fleet.ask(list(live.values()), HostSide.end, hard=True)
            time.sleep(POLL_SECONDS if live else 0)

    def _bring(self, host: Host, run: str) -> None:
        """Merge the history of a run on a host into the one here. What cannot be merged stays there."""
        came = self._came[host.name]
        try:
            with scratch.folder("fleet") as folder, interrupts.deferred():
                path = Path(folder) / f"{host.name}.db"
                if content := self._ask(host, HostSide.history, run):
                    path.write_bytes(content)
                    came.runs += self._merge(path)
                self._ask(host, HostSide.drop, run)
        except (HostLostError, HistoryError) as error:
            came.problem = f"not brought: {error}; {COLLECT} later"

    def _ask(self, host: Host, method: Any, *arguments: Any) -> Any:
        answer: Any = self._fleet.ask([host], method, *arguments)[host.name]
        if isinstance(answer, HostLostError):
            raise answer
        return answer

    def _merge(self, path: Path) -> list[str]:
        """Merge a file, and return the uids of its runs."""
        merging.check(self._db, [path])
        with History.open(self._db) as history:
            merging.merge(history, path)
        with History(*open_read_only(path)) as source:
            return [run.uid for run in source.runs(None)]

    def _report(self) -> int:
        """Print each host's runs as `ipexperf show` does, and what went wrong. Return the exit status."""
        with History.open(self._db) as history:
            for host, came in self._came.items():
                console.say(f"\nhost {host}: {came.problem or 'well'}")
                for uid in came.runs:
                    console.draw(show.drawn(history, history.show(uid)))
        lost = [host for host, came in self._came.items() if came.problem]
        if lost:
            console.complain(f"not all is well on {', '.join(lost)}: the reasons are above")
        return int(bool(lost))
