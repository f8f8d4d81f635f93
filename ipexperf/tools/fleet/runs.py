"""The runs of a fleet: one for each host, or one that several equal hosts share."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ipexperf.bench.process import environment as surroundings
from ipexperf.environments import make
from ipexperf.errors import HostLostError, UsageError
from ipexperf.history.values import run_uid
from ipexperf.invocation import Elsewhere
from ipexperf.report import units
from ipexperf.run import Run
from ipexperf.tools.fleet import code, hosts, local
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.link import Channel, Link, MessageBoard
from ipexperf.tools.fleet.messages import Open
from ipexperf.tools.fleet.remote import RemoteSite

if TYPE_CHECKING:
    from ipexperf.lock import Lock
    from ipexperf.plan.options import Options

GHOST_SECONDS = 60.0
"""Longest wait until Ray notices that a host is gone, which takes it half a minute."""
POLL_SECONDS = 1.0


class Cluster(Protocol):
    """Finds hosts and connects to them."""

    def hosts(self) -> list[Host]: ...
    def channel(self, host: Host, say: Callable[[str], None], *, wait: bool) -> Channel: ...
    def close(self) -> None: ...


def connect(options: Options, folder: Path) -> Cluster:
    """The cluster that the options name."""
    from ipexperf.tools.fleet import cluster

    assert options.fleet is not None  # noqa: S101 - the caller has looked
    if local.named(options.fleet):
        return local.LocalFleet(options.fleet, options.cache or folder / ".ipexperf")
    return cluster.RayCluster(options.fleet)


def elsewhere(
    options: Options, folder: Path, say: Callable[[str], None], lock: Lock | None, *, collecting: bool
) -> Elsewhere:
    """Start the runs of an invocation on the hosts of the fleet that the options name."""
    return start(options, folder, say, connect(options, folder), lock, collecting=collecting)


def start(
    options: Options,
    folder: Path,
    say: Callable[[str], None],
    cluster: Cluster,
    lock: Lock | None = None,
    *,
    collecting: bool = False,
) -> Elsewhere:
    """Open the hosts and plan their runs. A host that cannot take part is left out, unless none is left.

    With a lock, each host measures in the environment of that lock, which it makes unless it has it.
    With `collecting` a host makes no environment, because nothing will be measured.
    """
    starting = _Starting(options, folder, say, hosts.chosen(_hosts(cluster, say), options.hosts))
    try:
        starting.open(cluster, lock, collecting=collecting)
        runs = starting.plan()
        if not collecting:
            starting.find_baselines(runs)
        return Elsewhere(runs, starting.absent(runs), cluster.close)
    except BaseException:
        starting.close()
        raise


class _Starting:
    """Opens hosts and plans their runs."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None], chosen: Sequence[Host]) -> None:
        self._options, self._folder, self._say, self._chosen = options, folder, say, chosen
        self._board, self._name = MessageBoard(say), run_uid()
        self._store = make.store_of(options.cache or folder / ".ipexperf")
        """Has packages that no index has."""
        self._links: dict[str, Link] = {}
        self._absent: dict[str, str] = {}
        if "record" not in options.without:
            say(f"fleet: if this is cut off, --perf-resume {self._name} goes on with what the hosts have")
        say(f"fleet: {units.plural(len(chosen), 'host')}: {', '.join(host.name for host in chosen)}")

    def open(self, cluster: Cluster, lock: Lock | None, *, collecting: bool) -> None:
        """Start the process on each host, all at once, so that none waits for a busy one."""
        options = self._options
        digest, archive = code.pack(options.load)
        kept, sent = code.pack_kept(lock, self._store) if lock else ("", b"")
        load = tuple(code.loaded(name) if name.endswith(".py") else name for name in options.load)
        sent_options = dataclasses.replace(options, load=load, db="")  # which may have a password
        request = Open(self._name, sent_options, lock.text if lock else "", kept, options.resume or "", collecting)

        def begin(host: Host) -> None:
            with self._taking_part(host.name):
                channel = cluster.channel(host, self._board.put, wait=options.lease != "fail")
                link = self._links[host.name] = Link(host, channel, self._board)
                if kept:
                    link.install(kept, sent)
                link.open(request, digest, archive)

        self._board.all_at_once(begin, self._chosen)
        for link in self._here:
            with self._taking_part(link.host.name):
                link.wait_open()

    @property
    def _here(self) -> list[Link]:
        """The hosts that take part so far."""
        return [self._links[host.name] for host in self._chosen if host.name not in self._absent]

    def plan(self) -> dict[str, Run]:
        """Plan the runs of the hosts that are left, by their names, or the one that all of them share."""
        source = surroundings.source(self._folder)
        judged = dataclasses.replace(self._options, fleet=None)

        def run(links: Sequence[Link]) -> Run:
            site = RemoteSite(links, self._board, self._name, source, self._store)
            return Run(judged, self._folder, self._say, site)

        here = self._here
        if here and self._options.spread == "share":
            return {"": run(here)}
        runs: dict[str, Run] = {}
        for link in here:
            with self._taking_part(link.host.name):
                runs[link.host.name] = run([link])
        return runs

    def find_baselines(self, runs: dict[str, Run]) -> None:
        """Find the baselines of each run. All hosts make the environments for them at the same time."""

        def find(name: str) -> None:
            if name:
                with self._taking_part(name):
                    runs[name].find_baselines()
            else:  # of several equal hosts
                try:
                    runs[name].find_baselines()
                except HostLostError as error:
                    raise UsageError(str(error)) from None

        self._board.all_at_once(find, list(runs))
        for name in self._absent:
            runs.pop(name, None)

    @contextlib.contextmanager
    def _taking_part(self, name: str) -> Iterator[None]:
        """Leave the host out if something goes wrong."""
        try:
            yield
        except (HostLostError, UsageError) as error:
            self._absent.setdefault(name, str(error))

    def absent(self, runs: dict[str, Run]) -> dict[str, str]:
        """Let go of the hosts that take no part. Return them with the reasons, in the order of all hosts."""
        absent = {host.name: self._absent[host.name] for host in self._chosen if host.name in self._absent}
        if not runs:
            host, reason = next(iter(absent.items()))
            raise UsageError(f"host {host}: {reason}")
        for host, reason in absent.items():
            self._say(f"{host} takes no part: {reason}")
        links = [self._links[name] for name in absent if name in self._links]
        self._board.all_at_once(lambda link: link.close(stop=False), links)
        return absent

    def close(self) -> None:
        self._board.all_at_once(lambda link: link.close(stop=False), list(self._links.values()))


def _hosts(cluster: Cluster, say: Callable[[str], None]) -> list[Host]:
    """The hosts of the cluster. Waits until Ray has noticed that hosts which joined again had been away."""
    until, announced = time.monotonic() + GHOST_SECONDS, False
    while (names := hosts.ghosts(present := cluster.hosts())) and time.monotonic() < until:
        if not announced:
            say(f"fleet: {', '.join(names)} joined again: waiting until Ray has noticed that the earlier one is gone")
            announced = True
        time.sleep(POLL_SECONDS)
    hosts.check_names(present)
    return present
