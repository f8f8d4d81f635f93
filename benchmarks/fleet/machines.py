"""Machines for trials on one: namespaces with processes, a network, a host name and folders of their own, on a switch.

The cable of each can be pulled, and its power cut. Needs Linux, root, `unshare`, `nsenter` and `ip`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

NETWORK = "10.77.0"
FIRST = 10
START_SECONDS = 20.0
SHARED_BYTES = 512 * 2**20
"""Of `/dev/shm`, where Ray has its store."""
NEEDED = ("ip", "unshare", "nsenter")


def missing() -> str:
    """Why there can be no machines here, or an empty text."""
    if os.geteuid() != 0:
        return "needs root"
    return ", ".join(f"{name} is not installed" for name in NEEDED if shutil.which(name) is None)


def call(*words: str | Path) -> None:
    """Run a command. Raise RuntimeError with what it says if it fails."""
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {ended.stderr.strip()}")


class Room:
    """A set of namespaces, which end with the process that holds them."""

    namespaces: tuple[str, ...] = ("--net",)

    def __init__(self, folder: Path, *kinds: str, script: str = "true") -> None:
        """`script` is what the first process does before it waits for its end."""
        folder.mkdir(parents=True, exist_ok=True)
        ready = folder / "ready"
        # Whoever ignores this signal has no dead children to bury, as the first process of a machine must.
        inside = f"{{ {script}; }} && trap '' CHLD && : > {ready} && exec sleep infinity"
        command = ["unshare", *(f"--{kind}" for kind in kinds), "--fork", "--kill-child", "sh", "-c", inside]
        with (folder / "init.log").open("wb") as log:
            self._holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self._holder.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "init.log").read_text() or "the namespaces cannot be made")
            time.sleep(0.02)
        ready.unlink()
        self.pid = int(Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text())

    def enter(self, words: Sequence[str | Path], folder: Path = Path("/")) -> list[str]:
        """The command that runs these words inside, in a folder."""
        shell = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
        return ["nsenter", f"--target={self.pid}", *self.namespaces, "--", *shell, *map(str, words)]

    def close(self) -> None:
        """End everything inside at once, as if its power were cut."""
        if self._holder.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._holder.wait()

    @property
    def on(self) -> bool:
        return self._holder.poll() is None


class Machine(Room):
    """A machine on the switch. Its folder is what it keeps when its power is cut."""

    namespaces = ("--net", "--pid", "--mount", "--uts")

    def __init__(self, switch: Switch, name: str, number: int, folder: Path, variables: dict[str, str]) -> None:
        self.name, self.folder = name, folder
        self.address = f"{NETWORK}.{FIRST + number}"
        self._switch, self._port, self._variables = switch, f"port{number}", variables
        self.start()

    def start(self) -> None:
        """Turn it on, and connect it."""
        ray, temporary = self.folder / "ray", Path("/tmp/ray")  # noqa: S108 - Ray's own place
        for path in (ray, temporary):
            path.mkdir(parents=True, exist_ok=True)
        hosts, servers = self.folder / "hosts", self.folder / "resolv.conf"
        hosts.write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        servers.touch()  # nobody is asked for names
        script = (
            f"mount -t proc proc /proc && mount --bind {ray} {temporary} && mount --bind {hosts} /etc/hosts && "
            f"mount --bind {servers} /etc/resolv.conf && "
            f"mount -t tmpfs -o size={SHARED_BYTES} shm /dev/shm && hostname {self.name}"
        )
        super().__init__(self.folder, "net", "pid", "mount", "uts", script=script)
        self._switch.connect(self, self._port)

    def popen(self, words: Sequence[str | Path], folder: Path, **options: Any) -> subprocess.Popen[Any]:
        """Start a command on it, in a process group of its own."""
        return subprocess.Popen(self.enter(words, folder), env=self._variables, start_new_session=True, **options)

    def run(self, words: Sequence[str | Path], seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a command on it."""
        return subprocess.run(
            self.enter(words, self.folder),
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def cut(self) -> None:
        """Pull its cable."""
        self._switch.set(self._port, up=False)

    def mend(self) -> None:
        """Plug it in again."""
        self._switch.set(self._port, up=True)

    def processes(self, needle: bytes) -> list[int]:
        """The processes inside whose command line has this text, by our numbers."""
        if not self.on:
            return []
        inside = Path(f"/proc/{self.pid}/ns/pid").readlink()
        matches = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if needle in (path / "cmdline").read_bytes() and (path / "ns" / "pid").readlink() == inside:
                    matches.append(int(path.name))
        return matches


class Switch(Room):
    """What the cables of all machines end in."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "net", script="ip link add name bridge type bridge && ip link set bridge up")

    def connect(self, machine: Machine, port: str) -> None:
        """Give a machine a cable and an address."""
        with contextlib.suppress(RuntimeError):  # the cable of a machine that was off is gone, mostly
            call(*self.enter(["ip", "link", "del", port]))
        cable = ["ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)]
        call(*self.enter(cable))
        call(*self.enter(["ip", "link", "set", port, "master", "bridge", "up"]))
        commands = (
            "ip link set lo up",
            f"ip address add {machine.address}/24 dev eth0",
            "ip link set eth0 up",
            f"ip route add default via {NETWORK}.1",  # by which Ray learns the machine's own address
        )
        for command in commands:
            call(*machine.enter(command.split()))

    def set(self, port: str, *, up: bool) -> None:
        call(*self.enter(["ip", "link", "set", port, "up" if up else "down"]))


class Network:
    """A switch and machines on it, all gone at the end."""

    def __init__(self, folder: Path, names: Sequence[str], variables: dict[str, str]) -> None:
        self.switch = Switch(folder / "switch")
        self.machines: dict[str, Machine] = {}
        try:
            for number, name in enumerate(names):
                self.machines[name] = Machine(self.switch, name, number, folder / name, variables)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for room in (*self.machines.values(), self.switch):
            room.close()
