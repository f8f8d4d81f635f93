"""Fork the workers of a round from servers that have imported what they need, unless the round must start fresh."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ipexperf.bench import registry
from ipexperf.case import Case, NetworkCase, networks
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.server import Server, ServerSpec, start_servers
from ipexperf.errors import ForkError, WorkerError
from ipexperf.plan import start
from ipexperf.plan.options import Options


@dataclass(frozen=True, slots=True)
class Forking:
    """The fork servers of one round. With none, its workers start fresh."""

    servers: Mapping[ServerSpec, Server]
    ahead: bool = True
    """Whether the servers have imported what building the models imports."""

    def conditions(self, case: Case, conditions: Conditions) -> Conditions:
        """The conditions, with the server that the workers of this case are forked from if there is one."""
        server = self.servers.get(_server_spec(case, conditions, ahead=self.ahead)) if self.servers else None
        if server is None:
            return conditions
        return replace(conditions, settings=replace(conditions.settings, forked=True), server=server)

    def forked(self, case: Case, conditions: Conditions) -> Conditions | None:
        """The conditions of a worker of this case that is forked. None if no server may fork it."""
        conditions = self.conditions(case, conditions)
        return conditions if conditions.server is not None else None


FRESH = Forking({})


class ForkServers:
    """Starts the fork servers of rounds, as long as they can fork."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._refused = options.start != start.AUTO
        """Whether rounds start fresh: the user asked for it, or a server could not fork."""

    @contextlib.contextmanager
    def of_round(self, cases: Sequence[tuple[Case, Conditions]], arms: int) -> Iterator[Forking]:
        """Start the servers from which one round of `arms` arms forks its workers, and end them with the block.

        There are none if the round must start fresh: forking would save no imports, a case may not be forked, or a
        server refuses. Each round has its own, so that address layout and hash seed are drawn anew every round.
        """
        forking = FRESH
        with contextlib.ExitStack() as stack:
            imports = any(registry.models.get(case.model).imports for case in networks(case for case, _ in cases))
            for ahead in dict.fromkeys((imports, False)):
                try:
                    servers = stack.enter_context(start_servers(self._specs(cases, arms, ahead=ahead)))
                except (ForkError, WorkerError) as error:  # noqa: PERF203 - the second try imports less
                    self._refused = not ahead
                    without = "each worker imports the packages of the network by itself"
                    self._say(f"{without if ahead else 'workers are started fresh in every round'}: {error}")
                else:
                    forking = Forking(servers, ahead)
                    break
            yield forking

    def _specs(self, cases: Sequence[tuple[Case, Conditions]], arms: int, *, ahead: bool) -> set[ServerSpec]:
        """The servers that these cases need, or none if their round must start fresh."""
        placed = bool((wish := self._options.placement) and wish.places)
        if self._refused or any(start.why_fresh(case, placed=placed) for case, _ in cases):
            return set()
        specs = {_server_spec(case, conditions, ahead=ahead) for case, conditions in cases}
        return specs if len(specs) < arms else set()


def _server_spec(case: Case, conditions: Conditions, *, ahead: bool) -> ServerSpec:
    """The server that forks workers of this case. With `ahead`, it also imports what building the model does."""
    assert isinstance(case, NetworkCase)  # noqa: S101 - functions run in sessions of pytest, which nothing forks
    model = registry.models.get(case.model)
    imports = model.imports if ahead else ()
    variables = tuple(sorted(conditions.variables.items()))
    load, python, timeout = conditions.settings.load, conditions.python, conditions.timeout
    return ServerSpec(case.stack, load, model.needs, imports, python, variables, timeout)
