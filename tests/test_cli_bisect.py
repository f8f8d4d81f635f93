"""`ipexperf bisect`: from two ends to the change that matters, by what is measured of real environments."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.append(str(Path(__file__).parent / "environments"))
from small_wheels import a_wheel, an_unpacked_environment

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Package
from ipexperf.bisect import mixes
from ipexperf.bisect.answers import Log, Measured
from ipexperf.bisect.laboratory import Laboratory
from ipexperf.bisect.mixes import MixSearch
from ipexperf.bisect.search import BY_KERNELS, Report, find
from ipexperf.errors import UsageError
from ipexperf.history import History
from ipexperf.judge.bisection import Answer, Candidate, Change
from ipexperf.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipexperf.bisect.software import Software

CELL = ("--model", "paced", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
NAMES = tuple(f"dep{number}" for number in range(6))


def a_change(name: str) -> Change:
    return Change("package", name, "1", "2")


class Bench:
    """A laboratory whose truth is known: which packages make the clock slow, and which change the kernels."""

    def __init__(self, slow: set[str], other_kernels: frozenset[str] = frozenset(), *, unsure: bool = False) -> None:
        self.slow, self.other_kernels, self.unsure = slow, other_kernels, unsure
        self.kernels: tuple[str, str] | None = None
        self.clocked: list[frozenset[str]] = []
        self.looked: list[frozenset[str]] = []

    def timed(self, candidate: frozenset[str]) -> Measured:
        self.clocked.append(candidate)
        bad = bool(self.slow & candidate)
        if self.unsure and len(candidate) < len(NAMES):
            return Measured(Answer.UNSURE, "noise")
        ratio = 1.5 if bad else 0.99
        kernels = "other" if self.other_kernels & candidate else "usual"
        answer = Answer.BAD if bad else Answer.GOOD
        return Measured(answer, "seen", ratio, ratio - 0.1, ratio + 0.1, kernels, "usual")

    def sized(self, bad: frozenset[str], ends: Measured) -> Measured:
        del bad
        return ends

    def quick(self, candidate: frozenset[str]) -> Measured:
        self.looked.append(candidate)
        assert self.kernels is not None
        bad = bool(self.other_kernels & candidate)
        return Measured(Answer.BAD if bad else Answer.GOOD, "its kernels", clock=False)

    def judge_by(self, ends: Measured) -> None:
        if ends.kernels != ends.others:
            self.kernels = (str(ends.others), str(ends.kernels))

    def seconds_each(self) -> None:
        return None


def search(needs: Mapping[str, str] | None = None) -> MixSearch:
    """The search among all packages, some of which need another one in its new version."""
    ties = {a_change(one): [a_change(other)] for one, other in (needs or {}).items()}
    return MixSearch(
        [a_change(name) for name in NAMES],
        lambda candidate: all(set(others) <= candidate for one, others in ties.items() if one in candidate),
        ties,
        lambda candidate: frozenset(one.name for one in candidate),  # type: ignore[arg-type, return-value]
    )


def found(bench: Bench, needs: Mapping[str, str] | None = None, **more: bool) -> Report[Candidate]:
    return find(search(needs), bench, lambda _: None, **more)  # type: ignore[arg-type]


def culprits(report: Report[Candidate]) -> list[set[str]]:
    return [{one.name for one in culprit} for culprit in report.conclusion.culprits]


@pytest.mark.parametrize("name", NAMES)
def test_the_clock_finds_what_runs_the_same_kernels_slower(name: str) -> None:
    bench = Bench({name})
    report = found(bench)
    assert report.conclusion.outcome == "culprit"
    assert culprits(report) == [{name}]
    assert bench.looked == []
    assert report.ends is not None
    assert report.culprit is not None
    assert (report.ends.ratio, report.culprit.ratio) == (1.5, 1.5)


def test_the_kernels_lead_the_way_and_the_clock_proves_it() -> None:
    bench = Bench({"dep4"}, frozenset({"dep4"}))
    report = found(bench)
    assert culprits(report) == [{"dep4"}]
    everything = frozenset(NAMES)
    assert bench.clocked == [everything, {"dep4"}, everything - {"dep4"}]
    assert len(bench.looked) >= 3


def test_kernels_that_changed_without_costing_time_name_nobody() -> None:
    """The package that changes the kernels is innocent: the clock does not confirm it, and finds the other."""
    bench = Bench({"dep1"}, frozenset({"dep4"}))
    report = found(bench)
    assert report.conclusion.outcome == "culprit"
    assert culprits(report) == [{"dep1"}]


def test_a_culprit_that_cannot_stand_alone_is_proven_by_the_clock_with_what_it_needs() -> None:
    """Neither the culprit alone nor the bad end without it fits: dep4 needs dep0, and dep5 needs dep4."""
    bench = Bench({"dep4"}, frozenset({"dep4"}))
    report = found(bench, {"dep4": "dep0", "dep5": "dep4"})
    assert culprits(report) == [{"dep4"}]
    assert report.conclusion.reason.startswith("dep4 is enough, with dep0 that it needs, and without it")
    everything = frozenset(NAMES)
    assert bench.clocked == [everything, {"dep0", "dep4"}, everything - {"dep4", "dep5"}]
    assert report.culprit is not None
    assert report.culprit.ratio == 1.5


def test_kernels_that_cost_nothing_name_nobody_that_cannot_stand_alone() -> None:
    bench = Bench({"dep1"}, frozenset({"dep4"}))
    assert culprits(found(bench, {"dep4": "dep0", "dep5": "dep4"})) == [{"dep1"}]


def test_without_fingerprints_the_clock_answers_everything() -> None:
    bench = Bench({"dep4"}, frozenset({"dep4"}))
    assert culprits(found(bench, fingerprint=False)) == [{"dep4"}]
    assert bench.looked == []


def test_kernels_that_differ_answer_where_the_clock_cannot() -> None:
    """What they cost stays unknown, and the reason says so."""
    bench = Bench(set(), frozenset({"dep4"}))
    honest = bench.timed
    bench.timed = lambda candidate: dataclasses.replace(honest(candidate), answer=Answer.UNSURE)  # type: ignore[method-assign]
    report = found(bench)
    assert (report.conclusion.outcome, culprits(report)) == ("culprit", [{"dep4"}])
    assert report.conclusion.reason.endswith(BY_KERNELS)
    assert bench.clocked == [frozenset(NAMES)]
    assert report.ends is not None
    assert report.ends.answer is Answer.UNSURE
    assert report.culprit is not None
    assert report.culprit.ratio is None


def test_where_the_clock_cannot_tell_and_the_kernels_may_not_answer_nobody_is_named() -> None:
    bench = Bench(set(), frozenset({"dep4"}))
    honest = bench.timed
    bench.timed = lambda candidate: dataclasses.replace(honest(candidate), answer=Answer.UNSURE)  # type: ignore[method-assign]
    report = found(bench, fingerprint=False)
    assert (report.conclusion.outcome, report.conclusion.culprits) == ("cannot tell", ())
    assert bench.looked == []


def test_two_culprits_are_both_named() -> None:
    report = found(Bench({"dep0", "dep5"}))
    assert report.conclusion.outcome == "several"
    assert sorted(map(sorted, culprits(report))) == [["dep0"], ["dep5"]]


def test_noise_larger_than_the_change_names_nobody() -> None:
    report = found(Bench({"dep2"}, unsure=True))
    assert report.conclusion.outcome == "cannot tell"
    assert report.conclusion.culprits == ()
    assert set(report.conclusion.suspects) == set(NAMES)


def test_ends_that_are_alike_are_said_to_be() -> None:
    bench = Bench(set())
    report = found(bench)
    assert report.conclusion.outcome == "alike"
    assert len(bench.clocked) == 1


def test_ends_that_are_exchanged_are_said_to_be() -> None:
    bench = Bench(set())
    honest = bench.timed
    bench.timed = lambda candidate: dataclasses.replace(honest(candidate), ratio=0.6, lo=0.5, hi=0.7)  # type: ignore[method-assign]
    assert "are they exchanged?" in found(bench).conclusion.reason


def test_ends_without_a_difference_need_no_measurement() -> None:
    bench = Bench({"dep0"})
    report = find(MixSearch([], lambda _: True, {}, frozenset), bench, lambda _: None)  # type: ignore[arg-type]
    assert report.conclusion.outcome == "alike"
    assert bench.clocked == []


def test_answers_are_kept_by_content_and_an_unfinished_line_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "bisect" / "a.jsonl"
    log = Log(path)
    seen = Measured(Answer.BAD, "slow", 1.5, 1.4, 1.6, "k", "g", clock=False, seconds=2.0, ran=("this", "that"))
    log.put("one", seen)
    log.put("two", Measured(Answer.UNSURE, "noise"))
    with path.open("a") as stream:
        stream.write('{"key": "three", "measu')
    again = Log(path)
    assert (again.get("one"), again.get("two"), again.get("three")) == (seen, None, None)
    assert len(Log(path, fresh=True)) == 0
    assert not path.exists()


def lock_of(packages: dict[str, str], **variables: str) -> Lock:
    pins = tuple(Package(name, version, "0" * 16) for name, version in sorted(packages.items()))
    return Lock("3.11.7", "CPython linux x86_64", pins, variables=tuple(sorted(variables.items())))


def test_a_candidate_is_the_good_end_with_some_of_the_bad() -> None:
    good = lock_of({"a": "1", "b": "1", "gone": "1"}, OMP_NUM_THREADS="4", KMP_AFFINITY="x")
    bad = lock_of({"a": "2", "b": "1", "new": "1"}, OMP_NUM_THREADS="1")
    changes = mixes.changes_between(good, bad)
    names = ["a", "gone", "new", "KMP_AFFINITY", "OMP_NUM_THREADS"]
    assert [one.name for one in changes] == names
    assert [one.kind for one in changes] == ["package"] * 3 + ["variable"] * 2

    def mixed(*names: str) -> Lock:
        candidate: Candidate = frozenset(one for one in changes if one.name in names)
        return mixes.mixed(good, bad, candidate)

    assert mixed() == good
    assert mixed(*(one.name for one in changes)) == bad
    assert mixed("a", "new").versions == {"a": "2", "b": "1", "gone": "1", "new": "1"}
    assert dict(mixed("OMP_NUM_THREADS", "KMP_AFFINITY").variables) == {"OMP_NUM_THREADS": "1"}


def test_packages_of_two_pythons_are_not_mixed() -> None:
    good = lock_of({"a": "1"})
    with pytest.raises(UsageError, match=r"Python 3.11.7 and the bad end 3.12.0: packages of both cannot be mixed"):
        mixes.changes_between(good, dataclasses.replace(good, python="3.12.0"))


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two interpreters that differ in seven packages, one of which sets the pace; one needs another to move with it."""
    folder = tmp_path_factory.mktemp("ends")
    pythons = []
    for end, version in (("good", "1.0"), ("bad", "2.0")):
        wheels = [a_wheel(folder, name, version, {f"{name}.py": f"V = {version}\n"}) for name in NAMES[:-1]]
        wheels.append(a_wheel(folder, NAMES[-1], version, {"tied.py": "T = 1\n"}, (f"dep0=={version}",)))
        wheels.append(a_wheel(folder, "pace", version, {"pace.py": f"TIMES = {3 if end == 'bad' else 1}\n"}))
        pythons.append(an_unpacked_environment(folder / end, *wheels))
    return pythons[0], pythons[1]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: str, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command in a folder of its own, with a clock that is right: what takes long here is to measure."""
    monkeypatch.chdir(tmp_path)

    def measure(self: Laboratory, candidate: Software, policy: object) -> Measured:
        del policy
        lock = candidate.lock(self._cache)
        assert lock is not None
        with candidate.ready(self._cache, lambda _: None) as installed:
            assert Path(installed.python).exists()
        slow = lock.versions["pace"] == "2.0" or dict(lock.variables).get("OMP_WAIT") == "slow"
        assert lock.versions["dep5"] == lock.versions["dep0"], "what cannot be installed was asked for"
        measured.append(lock.digest)
        ratio = 3.0 if slow else 1.0
        return Measured(Answer.BAD if slow else Answer.GOOD, "seen", ratio, ratio, ratio, seconds=1.0, machine="here")

    measured: list[str] = []
    monkeypatch.setattr(Laboratory, "_measure", measure)

    def run(*words: str) -> tuple[int, str, str]:
        measured.clear()
        status = cli.main(["bisect", f"--perf-load={fake}", *CELL, *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err + f"measured {len(measured)}"

    return run


@pytest.mark.process
def test_the_culprit_is_named_with_its_proof_and_how_to_see_it_again(
    command: Callable[..., tuple[int, str, str]], ends: tuple[str, str], tmp_path: Path
) -> None:
    status, out, err = command("--good", ends[0], "--bad", ends[1])
    assert status == 0, err
    assert out.startswith("CULPRIT: pace is enough, and without it the bad end is not slower\n  pace: 1.0 -> 2.0\n")
    assert "time of the culprit alone: +200.0 %" in out
    assert "reproduce ipexperf ab --a lock:" in out
    paths = sorted((tmp_path / ".ipexperf/bisect").glob("*.txt"))
    [bad, good] = [locks.read(path).versions for path in paths]
    assert {name for name in good if good[name] != bad[name]} == {"pace"}
    with History.open(tmp_path / "ipexperf.db") as history:
        [record] = history.bisections()
    assert (record.outcome, [[one.name for one in culprit] for culprit in record.culprits]) == ("culprit", [["pace"]])
    assert locks.parse(record.first_bad, "").versions == bad
    assert "7 differences between both ends" in err
    # The same again asks nothing: every answer is known.
    status, again, err = command("--good", ends[0], "--bad", ends[1])
    assert (status, again) == (0, out)
    assert err.endswith("measured 0")
    status, text, err = command("--good", ends[0], "--bad", ends[1], "--fresh", "--json")
    document = json.loads(text)
    assert document["outcome"] == "culprit"
    assert [one["name"] for one in document["culprits"][0]] == ["pace"]
    assert not err.endswith("measured 0")


@pytest.mark.process
def test_a_variable_may_be_the_culprit(command: Callable[..., tuple[int, str, str]], ends: tuple[str, str]) -> None:
    status, out, _ = command("--good", ends[0], "--bad", f"{ends[0]} OMP_WAIT=slow")
    assert (status, out.splitlines()[:2]) == (
        0,
        ["CULPRIT: OMP_WAIT is enough, and without it the bad end is not slower", "  OMP_WAIT: unset -> slow"],
    )


@pytest.mark.process
def test_both_ends_the_same_is_said(command: Callable[..., tuple[int, str, str]], ends: tuple[str, str]) -> None:
    status, out, err = command("--good", ends[0], "--bad", ends[0])
    assert status == 0
    assert out.startswith("NOTHING TO FIND: nothing differs between both ends\n")
    assert err.endswith("measured 0")


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--bad", "dtype=bf16"), "an end is software and variables"),
        (("--bad", "nowhere"), "--bad 'nowhere': 'nowhere' is no interpreter, no lock"),
        (("--bad", "lock:nowhere.txt"), "there is no lock nowhere.txt"),
        (("--bad", "baseline"), "has 0 locks: name one as baseline:NAME"),
        (("--model", "tiny"), "these options choose 2 (paced-fake-fp32-spin-plain, tiny-"),
        (("--perf-budget", "5"), "--perf-budget is for test runs"),
        (("--max-pairs", "99"), "expected 1 to 24 pairs, got 99"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    command: Callable[..., tuple[int, str, str]], ends: tuple[str, str], words: tuple[str, ...], told: str
) -> None:
    status, out, err = command("--good", ends[0], "--bad", ends[1], *words)
    assert (status, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
