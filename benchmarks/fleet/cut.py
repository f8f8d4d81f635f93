"""A fleet of machines whose network is cut, whose power fails, or whose head dies, in the middle of a run.

Each machine is a set of namespaces on this one (`machines.py`), with a Ray node that `ipexperf fleet up` or `join`
starts. Pytest runs on the head, which measures nothing. For each trial a new rack is made, a run begins, and at a
random moment:

- `nothing` happens;
- `blink`: the cable of a host is pulled for 3 to 12 seconds;
- `while`: for 40 to 60 seconds;
- `ever`: it stays so;
- `power`: a host is switched off;
- `alone`: the cable of the head, where pytest is, is pulled for 40 to 60 seconds;
- `head`: Ray's processes of the head are killed, and the fleet must be made again;
- `server`: the history is on a PostgreSQL server, a machine too, whose cable is pulled for 20 to 60 seconds;
- `night`: the same, until the run is over.

Afterwards every case whose test had ended must be in the history once, the run must have ended in time, and nothing may
still measure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import faults
import machines
from machines import Machine, Network

PORT = 6379
LAUNCHES = "2"
HEAD, HOSTS, SERVER = "n0", ("n1", "n2", "n3"), "db"
COMMAND_SECONDS = 120.0
BOUND_SECONDS = 300.0
ORPHAN_SECONDS = 180.0
BLINK, LONG, SHORT = (3.0, 12.0), (40.0, 60.0), (20.0, 60.0)
KINDS = ("nothing", "blink", "while", "ever", "power", "alone", "head", "server", "night")
ENDED = re.compile(r"test_it\[([^\]]+)\] (PASSED|FAILED)")
MEASURING = b"ipexperf.tools.fleet.worker"
POSTGRES = """
import sys
sys.path.insert(0, {tests!r})
import postgres
options = ("listen_addresses={address}", "fsync=off")
with postgres.running(postgres.binaries(), options) as server:
    url = server.tcp(server.database(), {address!r}, sslmode="disable")
    print(url, flush=True)
    sys.stdin.read()
"""


@dataclass(slots=True)
class Trial:
    """One fault, and what came of it."""

    number: int
    kind: str
    spread: str
    struck: bool = False
    """Whether the run was still going on."""
    ended: int = 0
    """Tests that had ended."""
    failed: int = 0
    """Those of them that failed: the one case of three that has no proof always does, others if their host is lost."""
    rounds: int = 0
    """Rounds in the history."""
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    orphans: int = 0
    unbounded: bool = False
    status: int | None = None
    """What pytest ended with."""
    seconds: float = 0.0
    """How long the run took."""
    quiet: float = 0.0
    """How long after it something still measured."""
    resumed: bool = False
    wrong: str = ""

    @property
    def well(self) -> bool:
        return not (self.lost or self.twice or self.orphans or self.unbounded or self.wrong)


class Rack:
    """A head and hosts, joined to one fleet, and a server for histories if one is wanted."""

    def __init__(self, folder: Path, *, server: bool) -> None:
        self.folder = folder
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("IPEXPERF_", "RAY_"))}
        self._variables = {
            **ours,
            "PYTHONPATH": f"{faults.FAKES / 'no_torch'}{os.pathsep}{faults.ROOT}",
            "IPEXPERF_LEASES": "/dev/shm/leases",  # noqa: S108 - each machine has its own
            "FLEET_MARK": str(folder / "mark"),
        }
        names = (HEAD, *HOSTS, *((SERVER,) if server else ()))
        self.network = Network(folder, names, self._variables)
        self.head, self.hosts = self.machines[HEAD], [self.machines[name] for name in HOSTS]
        self.address = f"{self.head.address}:{PORT}"
        self.url = str(folder / "history.db")
        self._server: subprocess.Popen[Any] | None = None
        try:
            for machine in self.machines.values():
                machine.run(["mkdir", "-p", "/dev/shm/leases"], COMMAND_SECONDS)  # noqa: S108 - as above
            if server:
                self._start_server()
            self.form()
        except BaseException:
            self.close()
            raise

    @property
    def machines(self) -> dict[str, Machine]:
        return self.network.machines

    def form(self) -> None:
        """Make the fleet, or make it again."""
        _succeed(self.head.run(ipexperf("fleet", "up", f"--port={PORT}", "--head-only"), COMMAND_SECONDS))
        joining = [
            host.popen(ipexperf("fleet", "join", self.address), host.folder, stdout=subprocess.PIPE, text=True)
            for host in self.hosts
        ]
        for one in joining:
            one.communicate(timeout=COMMAND_SECONDS)
            if one.returncode:
                raise SystemExit("a host does not join: it says above why")

    def leave(self) -> None:
        """Take every machine out of its fleet."""
        for machine in (self.head, *self.hosts):
            machine.run(ipexperf("fleet", "down"), COMMAND_SECONDS)

    def _start_server(self) -> None:
        machine = self.machines[SERVER]
        tests = str(faults.ROOT / "tests" / "history")
        code = POSTGRES.format(tests=tests, address=machine.address)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._server = machine.popen([sys.executable, "-c", code], machine.folder, **pipes)
        assert self._server.stdout is not None
        self.url = self._server.stdout.readline().strip()
        if not self.url:
            raise SystemExit("the server does not start")

    def measuring(self) -> int:
        """How many hosts have a process that measures."""
        return sum(bool(host.processes(MEASURING)) for host in self.hosts)

    def close(self) -> None:
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(20)
        self.network.close()


def ipexperf(*words: str) -> list[str]:
    return [sys.executable, "-m", "ipexperf.cli", *words]


def _succeed(ended: subprocess.CompletedProcess[str]) -> None:
    if ended.returncode:
        raise SystemExit(ended.stderr or ended.stdout)


def begin(rack: Rack, spread: str, output: Path, *more: str) -> subprocess.Popen[Any]:
    """Start a run on the head."""
    folder = rack.folder / "suite"
    folder.mkdir(exist_ok=True)
    (folder / "test_suite.py").write_text(faults.SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    words = [sys.executable, "-m", "pytest", "-v", f"--rootdir={folder}", str(folder)]
    words += ["-p", "ipexperf.short_options", "-p", "no:cacheprovider"]
    words += [f"--perf-load={faults.FAKES / name}" for name in ("fake.py", "fleet_models.py")]
    words += [*faults.CELL, f"--perf-launches={LAUNCHES}", "--perf-samples=5", "--perf-seconds=0.5", "--perf-twin=on"]
    words += ["--perf-without=roof", f"--perf-fleet={rack.address}", f"--perf-spread={spread}"]
    with output.open("wb") as into:
        where = {"stdin": subprocess.DEVNULL, "stdout": into, "stderr": subprocess.STDOUT}
        return rack.head.popen([*words, f"--perf-db={rack.url}", *more], folder, **where)


def strike(rack: Rack, one: Trial, chance: random.Random) -> Callable[[], None]:
    """Let it happen. Return what mends it after the run, if nothing did before."""
    victim = chance.choice(rack.hosts)
    if one.kind == "power":
        victim.close()
    elif one.kind == "head":
        for needle in (b"gcs_server", b"raylet/raylet"):
            for pid in rack.head.processes(needle):
                os.kill(pid, signal.SIGKILL)
    elif one.kind != "nothing":
        if one.kind in ("server", "night"):
            victim = rack.machines[SERVER]
        elif one.kind == "alone":
            victim = rack.head
        victim.cut()
        spans = {"blink": BLINK, "while": LONG, "alone": LONG, "server": SHORT}
        if one.kind in spans:
            time.sleep(chance.uniform(*spans[one.kind]))
            victim.mend()
        return victim.mend
    return lambda: None


def trial(folder: Path, number: int, kind: str, chance: random.Random) -> Trial:
    one = Trial(number, kind, chance.choice(["each", "share"]))
    rack = Rack(folder, server=kind in ("server", "night"))
    try:
        output, began = folder / "output", time.monotonic()
        run = begin(rack, one.spread, output)
        _wait(lambda: begun(rack, output) or run.poll() is not None, COMMAND_SECONDS)
        time.sleep(chance.uniform(0.5, 12.0))
        one.struck = run.poll() is None
        mend = strike(rack, one, chance)
        one.unbounded = not _ends(run)
        one.seconds, one.status = round(time.monotonic() - began, 1), run.returncode
        _look(rack, one, output.read_text(), mend)
    finally:
        rack.close()
    return one


def begun(rack: Rack, output: Path) -> bool:
    """Whether hosts measure. With a server, whether the first test has begun too, so that the history was reached."""
    return rack.measuring() > 0 and (SERVER not in rack.machines or "::test_it[" in output.read_text())


def _look(rack: Rack, one: Trial, text: str, mend: Callable[[], None]) -> None:
    """See what came of it."""
    ended = dict(ENDED.findall(text))
    if not faults.says_how_it_ended(text, one.status):
        one.wrong = f"no summary: {text[-300:]}"
    if one.kind == "head" and one.struck:
        rack.leave()
        rack.form()
        if (name := re.search(r"--perf-resume (\S+)", text)) and "was lost" in text:
            output = rack.folder / "resumed"
            one.resumed = _ends(begin(rack, one.spread, output, f"--perf-resume={name[1]}"))
            ended |= dict(ENDED.findall(output.read_text()))
    if "Traceback" in text:
        one.wrong = one.wrong or f"a traceback: {text[text.index('Traceback') :][:600]}"
    began = time.monotonic()
    _wait(lambda: not rack.measuring(), ORPHAN_SECONDS)
    one.quiet, one.orphans = round(time.monotonic() - began, 1), rack.measuring()
    one.ended, one.failed = len(ended), sum(word == "FAILED" for word in ended.values())
    mend()
    if "://" in rack.url:
        delivered = rack.head.run(
            ipexperf("db", "deliver", f"--db={rack.url}", f"--cache={rack.folder / 'suite' / '.ipexperf'}"),
            COMMAND_SECONDS,
        )
        if delivered.returncode:
            one.wrong = one.wrong or f"not delivered: {delivered.stderr}"
    compare(rack, one, set(ended))


def _ends(run: subprocess.Popen[Any]) -> bool:
    """Wait for a run. False if it did not end in time, and had to be killed."""
    try:
        run.wait(BOUND_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return False
    return True


def _wait(until: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        time.sleep(0.2)


def compare(rack: Rack, one: Trial, ended: set[str]) -> None:
    """What the history has, against the tests that ended."""
    script = Path(__file__).with_name("recorded.py")
    answer = rack.head.run([sys.executable, script, rack.url, LAUNCHES], COMMAND_SECONDS)
    if answer.returncode:
        one.wrong = one.wrong or f"the history cannot be read: {answer.stderr[-300:]}"
        one.lost = sorted(ended)
        return
    faults.judge(one, json.loads(answer.stdout), ended)


def table(trials: list[Trial]) -> Iterator[str]:
    for kind in KINDS:
        of_kind = [one for one in trials if one.kind == kind and one.struck]
        if of_kind:
            sums = [sum(one.ended for one in of_kind), sum(one.failed for one in of_kind)]
            sums += [sum(one.rounds for one in of_kind)]
            sums += [sum(len(one.lost) for one in of_kind), sum(len(one.twice) for one in of_kind)]
            sums += [sum(one.orphans for one in of_kind), sum(one.unbounded for one in of_kind)]
            longest = f"{max(one.seconds for one in of_kind):.0f} | {max(one.quiet for one in of_kind):.0f}"
            wrong = sum(bool(one.wrong) for one in of_kind)
            yield f"| {kind} | {len(of_kind)} | {' | '.join(map(str, sums))} | {longest} | {wrong} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2, help="of each kind (default: %(default)s)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one (repeatable)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep there what each run printed")
    arguments = parser.parse_args()
    if reason := machines.missing():
        sys.exit(f"cut.py: {reason}")
    trials: list[Trial] = []
    for number in range(arguments.trials):
        for kind in arguments.kind or KINDS:
            chance = random.Random(f"{arguments.seed}:{number}:{kind}")  # noqa: S311 - no secret
            with tempfile.TemporaryDirectory(prefix="ipexperf-cut-") as name:
                one = trial(Path(name), number, kind, chance)
                if arguments.keep is not None:
                    faults.keep(Path(name), arguments.keep / f"{arguments.seed}-{number}-{kind}")
            trials.append(one)
            sys.stderr.write(f"{'well' if one.well else 'NOT WELL'}: {json.dumps(asdict(one))}\n")
    for line in table(trials):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
