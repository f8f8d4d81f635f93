"""Whether two processes ever hold one device, and how soon the next one has it after `kill -9` of its holder.

Processes take the lease on the CPU in turns, as runs do, some of them with a forked child. Whoever has it looks whether
another living process has it too. Every second or so the holder is killed. With `--off` they take no lease, which shows
that the script notices two at once.
"""

import argparse
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXITING = 0x4
"""The kernel's flag of a process that has begun to end. Its locks may be gone already."""
HOLDS = 0.4
"""A holder gives the device back after this many seconds at the most."""


def alive(pid: int) -> bool:
    """Whether a process has not begun to end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] not in "ZX" and not int(fields[6]) & EXITING


def compete(folder: Path, seed: int, mode: str) -> None:
    """Take the lease, look whether somebody else has it, and give it back, until somebody kills us."""
    from ipexperf.conduct.lease import Lease

    chance = random.Random(seed)  # noqa: S311 - no secret
    while True:
        lease = Lease(mode, lambda _: None)
        lease.take(["cpu"])
        moment = time.monotonic()
        with contextlib.suppress(FileNotFoundError, ValueError):
            other = int((folder / "inside").read_text())
            if other and other != os.getpid() and alive(other):
                with (folder / "violations").open("a") as file:
                    file.write(f"{os.getpid()} beside {other}\n")
        (folder / "inside").write_text(str(os.getpid()))
        with (folder / "taken").open("a") as file:
            file.write(f"{moment} {os.getpid()}\n")
        if chance.random() < 0.3 and not os.fork():
            time.sleep(5)  # a worker that outlives its run for a while
            os._exit(0)
        time.sleep(HOLDS * chance.random())
        (folder / "inside").write_text("0")
        lease.close()


def start(folder: Path, seed: int, *, off: bool) -> subprocess.Popen[bytes]:
    words = ["--compete", str(folder), "--seed", str(seed), *(["--off"] if off else [])]
    return subprocess.Popen([sys.executable, __file__, *words])


def main() -> None:
    """Let processes compete, and kill the one that holds, as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--off", action="store_true", help="without leases")
    parser.add_argument("--compete", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compete:
        compete(arguments.compete, arguments.seed, "off" if arguments.off else "wait")
    chance = random.Random(arguments.seed)  # noqa: S311 - no secret
    killed: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["IPEXPERF_LEASES"] = str(folder / "leases")
        processes = {
            one.pid: one for one in (start(folder, seed, off=arguments.off) for seed in range(arguments.processes))
        }
        while len(killed) < arguments.kills:
            time.sleep(0.5 * chance.random() + 0.1)
            holder = int((folder / "inside").read_text() or 0) if (folder / "inside").exists() else 0
            if holder not in processes:
                continue
            moment = time.monotonic()
            os.kill(holder, signal.SIGKILL)
            processes.pop(holder).wait()
            killed.append((moment, holder))
            one = start(folder, arguments.processes + len(killed), off=arguments.off)
            processes[one.pid] = one
            if len(killed) % 20 == 0:
                print(f"{len(killed)} of {arguments.kills} killed", file=sys.stderr)
        time.sleep(3)
        for one in processes.values():
            one.kill()
            one.wait()
        lines = [line.split() for line in (folder / "taken").read_text().splitlines()]
        taken = [(float(moment), int(pid)) for moment, pid in lines]
        violations = (folder / "violations").read_text() if (folder / "violations").exists() else ""
    waits = []
    for moment, holder in killed:
        after = [taking for taking, pid in taken if taking > moment and pid != holder]
        waits.append(min(after) - moment if after else float("inf"))
    print(f"{len(taken)} times taken, {len(killed)} holders killed, {len(violations.splitlines())} times two at once")
    print(f"seconds from the kill to the next holder: median {statistics.median(waits):.2f}, most {max(waits):.2f}")


if __name__ == "__main__":
    main()
