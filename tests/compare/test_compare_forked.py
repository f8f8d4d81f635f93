"""All rounds but the first are forked, in runs and in pairs, each from servers of its own. Nothing else changes."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_play import QUICK, case, chance, finish
from free_machine import FREE

from ipexperf.bench import loading
from ipexperf.compare import group
from ipexperf.compare.arm import Arm
from ipexperf.compare.group import GroupRequest, GroupRun
from ipexperf.compare.players import WorkerPlayer
from ipexperf.compare.sequence import Comparison, PairedRounds
from ipexperf.compare.together import BUILDS
from ipexperf.conduct import server
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.server import Server, ServerSpec
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.groups import Group
from ipexperf.plan.options import Options
from ipexperf.plan.placement import PlacementWish
from ipexperf.result import Measurement

pytestmark = pytest.mark.process

FORKED = str(Path(__file__).parents[1] / "fakes" / "forked.py")
FP32, BF16 = case(dtype="fp32"), case(dtype="bf16")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers that rounds had."""
    found: list[Server] = []

    class Noted(Server):
        def __init__(self, spec: ServerSpec) -> None:
            super().__init__(spec)
            found.append(self)

    monkeypatch.setattr(server, "Server", Noted)
    return found


@pytest.fixture
def measured(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Measurement]]:
    """Measures cases in rounds; what was said meanwhile is kept."""
    load = (fake, FORKED)
    loading.load(load)
    monkeypatch.setattr(group, "RETRIES", 0)

    def measured(*cases: Any, rounds: int = 2, said: list[str] | None = None, **options: Any) -> list[Measurement]:
        say = (said if said is not None else []).append
        conductor = Conductor(
            Options(load=load, samples=5, seconds=0.05, timeout=30, **options), tmp_path, say, policy=FREE
        )
        running = GroupRun(GroupRequest(Group("a group", cases), rounds), conductor, say, effort=QUICK, chance=chance())
        finish(running)
        conductor.close()
        return list(running.measurements().values())

    return measured


def proofs(found: Measurement) -> list[list[str]]:
    """What each launch proved of its start: nothing, where it is fresh."""
    return [[check.found for check in one.proof if check.name == "start"] for one in found.launches]


def test_the_first_round_is_fresh_and_the_others_are_forked(
    measured: Callable[..., list[Measurement]], started: list[Server]
) -> None:
    """Under the case's own name; each launch proves how it began, and only a fresh one has what a process pays.

    A number of threads is no place, which would be taken before anything is imported.
    """
    found = measured(FP32, BF16, rounds=3, placement=PlacementWish(threads=1))
    assert [one.case for one in found] == [FP32, BF16]
    for one in found:
        assert [launch.outcome for launch in one.launches] == ["ok"] * 3
        assert proofs(one) == [[], ["fork"], ["fork"]]
        for name in ("import_time", "prepare_time", "peak_memory"):
            assert [name in launch.metrics for launch in one.launches] == [True, False, False]
        assert [launch.gate.get("forked") for launch in one.launches] == [None, 1.0, 1.0]
    assert len({server.pid for server in started}) == 2
    assert not any(server.alive for server in started)


@pytest.mark.parametrize(
    ("cases", "options"), [((FP32, BF16), {"start": "fresh"}), ((FP32,), {})], ids=["--perf-start fresh", "one case"]
)
def test_rounds_without_a_server_are_fresh(
    cases: tuple[Any, ...],
    options: dict[str, Any],
    measured: Callable[..., list[Measurement]],
    started: list[Server],
) -> None:
    """Where the option says so, and where a single case imports once a round either way."""
    assert [proofs(one) for one in measured(*cases, **options)] == [[[], []]] * len(cases)
    assert started == []


def test_where_a_server_refuses_every_round_is_fresh(
    measured: Callable[..., list[Measurement]],
    started: list[Server],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One message says so, the server is not tried again, and no measurement fails."""
    environment_of = server.environment_of
    # The server alone.
    monkeypatch.setattr(server, "environment_of", lambda *told: {**environment_of(*told), "FAKE_THREAD": "1"})
    said: list[str] = []
    found = measured(FP32, BF16, rounds=3, said=said)
    assert [proofs(one) for one in found] == [[[], [], []]] * 2
    assert [launch.outcome for one in found for launch in one.launches] == ["ok"] * 6
    [text] = [text for text in said if "started fresh in every round" in text]
    assert "the imports left 2 threads" in text
    assert len(started) == 1


@pytest.fixture
def compared(fake: str, tmp_path: Path) -> Callable[..., Comparison]:
    """Compares two arms in pairs. `variables` are those of the second arm."""
    load = (fake, FORKED)
    loading.load(load)

    def compared(
        variables: dict[str, str], *, pairs: int = 2, repeat_builds: bool = False, **options: Any
    ) -> Comparison:
        conductor = Conductor(
            Options(load=load, samples=5, seconds=0.05, timeout=30, **options), tmp_path, print, policy=FREE
        )
        a, b = (Arm(one, conductor.ready(one)) for one in (FP32, BF16))
        b = replace(b, conditions=replace(b.conditions, variables={**b.conditions.variables, **variables}))
        policy = PairPolicy(max_pairs=pairs)
        found = Comparison(a, b, policy)
        finish(PairedRounds([found], conductor, print, effort=QUICK, chance=chance(), repeat_builds=repeat_builds))
        conductor.close()
        return found

    return compared


def starts(found: Comparison) -> list[tuple[float | None, float | None]]:
    """For each pair, whether the workers of both arms were forked."""
    return [(pair.a.launch.gate.get("forked"), pair.b.launch.gate.get("forked")) for pair in found.pairs]


@pytest.mark.parametrize(("variables", "servers"), [({}, 1), ({"OMP_NUM_THREADS": "1"}, 2)])
def test_later_pairs_are_forked_from_servers_of_the_comparison(
    variables: dict[str, str], servers: int, compared: Callable[..., Comparison], started: list[Server]
) -> None:
    """The first pair is fresh. One server imports for both arms of the others, or one for each arm if they differ."""
    assert starts(compared(variables, pairs=3)) == [(None, None), (1.0, 1.0), (1.0, 1.0)]
    assert len({server.pid for server in started}) == servers
    assert not any(server.alive for server in started)


def test_builds_that_are_judged_are_repeated_in_forked_workers(
    compared: Callable[..., Comparison], started: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turns, so that a disturbance hits both arms. The pairs themselves start fresh."""
    builds: list[tuple[str, bool]] = []
    rehearse = WorkerPlayer.rehearse

    def watched(self: WorkerPlayer) -> None:
        assert not self.environment, "its own worker was built first"
        assert self.arm.builds is not None
        builds.append((self.arm.case.axes["dtype"], self.arm.builds.settings.forked))
        rehearse(self)

    monkeypatch.setattr(WorkerPlayer, "rehearse", watched)
    found = compared({}, repeat_builds=True)
    assert starts(found) == [(None, None)] * 2
    for pair in range(2):
        turns = builds[2 * BUILDS * pair : 2 * BUILDS * (pair + 1)]
        assert [sorted(turns[at : at + 2]) for at in range(0, 2 * BUILDS, 2)] == [[("bf16", True), ("fp32", True)]] * 5
        assert all(turns[at][0] == turns[at + 1][0] for at in range(1, 2 * BUILDS - 2, 2)), "A B B A"
    sides = [side for pair in found.pairs for side in (pair.a, pair.b)]
    assert all(0 < side.launch.metrics["quickest_prepare"] < math.inf for side in sides)
    assert len({server.pid for server in started}) == 1


def test_builds_are_not_repeated_where_nothing_may_be_forked(
    compared: Callable[..., Comparison], started: list[Server], capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the one build of each process is judged, and a message says so once."""
    found = compared({}, repeat_builds=True, start="fresh")
    assert capsys.readouterr().out.count("builds are timed once a process, and not repeated") == 1
    assert not any("quickest_prepare" in pair.a.launch.metrics for pair in found.pairs)
    assert started == []
