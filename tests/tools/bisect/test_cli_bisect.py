"""`ipexperf bisect` finds the change between two ends that makes a case slower."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "environments"))
from small_wheels import a_wheel, an_unpacked_environment

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf import lock as locks
from ipexperf.bench import registry
from ipexperf.bench.machine.inventory import Package
from ipexperf.bench.networks import own
from ipexperf.case import Case
from ipexperf.commands import command_line
from ipexperf.errors import UsageError
from ipexperf.history import History
from ipexperf.judge.bisection import Answer, Candidate, Change, Search
from ipexperf.lock import Lock
from ipexperf.tools.bisect import command as bisect
from ipexperf.tools.bisect import search
from ipexperf.tools.bisect.answers import AnswerLog, Measured
from ipexperf.tools.bisect.laboratory import Laboratory
from ipexperf.tools.bisect.search import BY_KERNELS, Ends, Report, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipexperf.tools.bisect.software import Software

CELL = ("--model", "paced", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
NAMES = tuple(f"dep{number}" for number in range(6))


def a_change(name: str) -> Change:
    return Change("package", name, "1", "2")


class Bench:
    """A laboratory whose truth is known: which packages make the clock slow, and which change the kernels."""

    def __init__(self, slow: set[str], other_kernels: frozenset[str] = frozenset()) -> None:
        self.slow, self.other_kernels = slow, other_kernels
        self.kernels: tuple[str, str] | None = None
        self.clocked: list[frozenset[str]] = []
        self.looked: list[frozenset[str]] = []

    def timed(self, candidate: frozenset[str]) -> Measured:
        self.clocked.append(candidate)
        bad = bool(self.slow & candidate)
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


def all_packages(*names: str) -> Ends:
    """A search among packages that fit in any mix."""
    nothing: Any = None
    changes = [a_change(name) for name in names]
    return Ends(
        good=nothing,
        bad=nothing,
        names=("good", "bad"),
        python="",
        changes=changes,
        search=lambda: Search(changes, {change: frozenset({change}) for change in changes}),
        software=lambda candidate: frozenset(package.name for package in candidate),  # type: ignore[arg-type, return-value]
        words=str,
        suspected=list,
    )


def search_with(bench: Bench, **options: bool) -> Report:
    """The report of a search among all packages that measures in this laboratory."""
    return find(all_packages(*NAMES), bench, lambda _: None, **options)  # type: ignore[arg-type]


def culprits(report: Report) -> set[str]:
    """The names of the changes that are named."""
    return {change.name for change in report.finding.culprits}


@pytest.mark.parametrize("name", NAMES)
def test_the_clock_finds_a_package_that_runs_the_same_kernels_slower(name: str) -> None:
    bench = Bench({name})
    report = search_with(bench)
    assert report.finding.outcome == "culprit"
    assert culprits(report) == {name}
    assert bench.looked == []
    assert report.ends is not None
    assert report.culprit is not None
    assert (report.ends.ratio, report.culprit.ratio) == (1.5, 1.5)


def test_the_kernels_find_the_culprit_and_the_clock_confirms_it() -> None:
    bench = Bench({"dep4"}, frozenset({"dep4"}))
    report = search_with(bench)
    assert culprits(report) == {"dep4"}
    everything = frozenset(NAMES)
    assert bench.clocked == [everything, {"dep4"}, everything - {"dep4"}]
    assert len(bench.looked) >= 3


def test_a_package_that_changes_kernels_without_costing_time_is_no_culprit() -> None:
    """The clock does not confirm the package that changes the kernels, and finds the other one."""
    bench = Bench({"dep1"}, frozenset({"dep4"}))
    report = search_with(bench)
    assert report.finding.outcome == "culprit"
    assert culprits(report) == {"dep1"}


def test_without_fingerprints_the_clock_answers_everything() -> None:
    bench = Bench({"dep4"}, frozenset({"dep4"}))
    assert culprits(search_with(bench, fingerprint=False)) == {"dep4"}
    assert bench.looked == []


def test_the_kernels_name_the_culprit_if_the_clock_cannot_tell() -> None:
    """How much time they cost stays unknown, and the reason says so."""
    bench = Bench(set(), frozenset({"dep4"}))
    timed = bench.timed
    bench.timed = lambda candidate: dataclasses.replace(timed(candidate), answer=Answer.UNSURE)  # type: ignore[method-assign]
    report = search_with(bench)
    assert (report.finding.outcome, culprits(report)) == ("culprit", {"dep4"})
    assert report.finding.reason.endswith(BY_KERNELS)
    assert bench.clocked == [frozenset(NAMES)]
    assert report.ends is not None
    assert report.ends.answer is Answer.UNSURE
    assert report.culprit is not None
    assert report.culprit.ratio is None


def test_ends_that_are_equally_fast_are_reported_as_alike() -> None:
    bench = Bench(set())
    report = search_with(bench)
    assert report.finding.outcome == "alike"
    assert len(bench.clocked) == 1


def test_a_bad_end_that_is_faster_is_reported_as_exchanged() -> None:
    bench = Bench(set())
    timed = bench.timed
    bench.timed = lambda candidate: dataclasses.replace(timed(candidate), ratio=0.6, lo=0.5, hi=0.7)  # type: ignore[method-assign]
    assert "are they exchanged?" in search_with(bench).finding.reason


def test_ends_without_a_difference_need_no_measurement() -> None:
    bench = Bench({"dep0"})
    report = find(all_packages(), bench, lambda _: None)  # type: ignore[arg-type]
    assert report.finding.outcome == "alike"
    assert bench.clocked == []


def test_a_log_keeps_answers_by_content_and_ignores_an_unfinished_line(tmp_path: Path) -> None:
    path = tmp_path / "bisect" / "a.jsonl"
    log = AnswerLog(path)
    answer = Measured(Answer.BAD, "slow", 1.5, 1.4, 1.6, "k", "g", clock=False, seconds=2.0, ran=("this", "that"))
    log.put("one", answer)
    log.put("two", Measured(Answer.UNSURE, "noise"))
    with path.open("a") as stream:
        stream.write('{"key": "three", "measu')
    reopened = AnswerLog(path)
    assert (reopened.get("one"), reopened.get("two"), reopened.get("three")) == (answer, None, None)
    assert len(AnswerLog(path, fresh=True)) == 0
    assert not path.exists()


def lock_of(packages: dict[str, str], **variables: str) -> Lock:
    pins = tuple(Package(name, version, "0" * 16) for name, version in sorted(packages.items()))
    return Lock("3.11.7", "CPython linux x86_64", pins, variables=tuple(sorted(variables.items())))


def test_a_candidate_is_the_good_end_with_some_changes_of_the_bad_end() -> None:
    good = lock_of({"a": "1", "b": "1", "gone": "1"}, OMP_NUM_THREADS="4", KMP_AFFINITY="x")
    bad = lock_of({"a": "2", "b": "1", "new": "1"}, OMP_NUM_THREADS="1")
    changes = search.changes_between(good, bad)
    names = ["a", "gone", "new", "KMP_AFFINITY", "OMP_NUM_THREADS"]
    assert [change.name for change in changes] == names
    assert [change.kind for change in changes] == ["package"] * 3 + ["variable"] * 2

    def mixed(*names: str) -> Lock:
        candidate: Candidate = frozenset(change for change in changes if change.name in names)
        return search.mixed(good, bad, candidate)

    assert mixed() == good
    assert mixed(*(change.name for change in changes)) == bad
    assert mixed("a", "new").versions == {"a": "2", "b": "1", "gone": "1", "new": "1"}
    assert dict(mixed("OMP_NUM_THREADS", "KMP_AFFINITY").variables) == {"OMP_NUM_THREADS": "1"}


def test_packages_of_two_pythons_are_not_mixed() -> None:
    good = lock_of({"a": "1"})
    with pytest.raises(UsageError, match=r"Python 3.11.7 and the bad end 3.12.0: packages of both cannot be mixed"):
        search.changes_between(good, dataclasses.replace(good, python="3.12.0"))


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two interpreters that differ in seven packages. `pace` makes the bad end slow, and dep5 needs its own dep0."""
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
    """Run the command in a folder of its own, with exact answers in place of measurements, which would take long."""
    monkeypatch.chdir(tmp_path)

    def measure(self: Laboratory, candidate: Software, policy: object) -> Measured:
        del policy
        lock = candidate.lock(self.cache)
        assert lock is not None
        with candidate.ready(self.cache, lambda _: None) as installed:
            assert Path(installed.python).exists()
        slow = lock.versions["pace"] == "2.0" or dict(lock.variables).get("OMP_WAIT") == "slow"
        assert lock.versions["dep5"] == lock.versions["dep0"], "the search asked for packages that do not fit together"
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


def test_the_command_to_see_it_again_names_a_network_as_the_user_did() -> None:
    """Its case has a name that is fit for files, which no command takes for a network."""
    target = f"{Path(__file__).parents[2] / 'fakes' / 'mynets.py'}:small"
    model = registry.models.get(own.register(target))
    record: Any = SimpleNamespace(case=Case(model.name, "cpu", "fp32", "infer", "stock", 16, model.size, 1, model.data))
    arguments = command_line.make_parser().parse_args(["bisect", "--good", "a", "--bad", "b", "--model", target])
    told = bisect._again(record, ("good.txt", "bad file.txt"), arguments)
    chosen = f"--perf-model {target} --perf-device cpu --perf-dtype fp32 --perf-mode infer --perf-stack stock"
    assert told == f"ipexperf ab --a lock:good.txt --b lock:'bad file.txt' {chosen} --perf-batch 16"


def test_a_search_does_not_write_to_a_server(command: Callable[..., tuple[int, str, str]]) -> None:
    """It is refused before an end is looked at."""
    status, _, errors = command("--good", "nowhere", "--bad", "here", "--perf-db", "postgresql://me:secret@host/perf")
    assert status == cli.USAGE_ERROR
    assert "a run cannot write to the history postgresql://***@host/perf" in errors


@pytest.mark.process
def test_the_culprit_is_named_with_its_proof_and_how_to_see_it_again(
    command: Callable[..., tuple[int, str, str]], ends: tuple[str, str], tmp_path: Path
) -> None:
    status, output, errors = command("--good", ends[0], "--bad", ends[1])
    assert status == 0, errors
    assert output.startswith("CULPRIT: pace is enough, and without it the bad end is not slower\n  pace: 1.0 -> 2.0\n")
    assert "time of the culprit alone: +200.0 %" in output
    assert "reproduce ipexperf ab --a lock:" in output
    paths = sorted((tmp_path / ".ipexperf/bisect").glob("*.txt"))
    [bad, good] = [locks.read(path).versions for path in paths]
    assert {name for name in good if good[name] != bad[name]} == {"pace"}
    with History.open(tmp_path / "ipexperf.db") as history:
        [record] = history.bisections()
    assert (record.outcome, [change.name for change in record.culprits]) == ("culprit", ["pace"])
    assert locks.parse(record.first_bad, "").versions == bad
    assert "7 differences between both ends" in errors
    # The same again asks nothing: every answer is known.
    status, second_output, errors = command("--good", ends[0], "--bad", ends[1])
    assert (status, second_output) == (0, output)
    assert errors.endswith("measured 0")
    status, third_output, errors = command("--good", ends[0], "--bad", ends[1], "--fresh", "--json")
    document = json.loads(third_output)
    assert document["outcome"] == "culprit"
    assert [change["name"] for change in document["culprits"]] == ["pace"]
    assert not errors.endswith("measured 0")


@pytest.mark.process
def test_a_variable_may_be_the_culprit(command: Callable[..., tuple[int, str, str]], ends: tuple[str, str]) -> None:
    status, output, _ = command("--good", ends[0], "--bad", f"{ends[0]} OMP_WAIT=slow")
    assert (status, output.splitlines()[:2]) == (
        0,
        ["CULPRIT: OMP_WAIT is enough, and without it the bad end is not slower", "  OMP_WAIT: unset -> slow"],
    )
    status, output, _ = command("--good", ends[0], "--bad", f"{ends[1]} OMP_WAIT=slow")
    assert (status, output.partition(":")[0]) == (0, "NOT THIS ONE ALONE")


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--bad", "dtype=bf16"), "an end is software and variables"),
        (("--bad", "nowhere"), "--bad 'nowhere': 'nowhere' is no interpreter, no lock"),
        (("--bad", "lock:nowhere.txt"), "there is no lock nowhere.txt"),
        (("--bad", "baseline"), "has 0 locks: name one as baseline:NAME"),
        (("--model", "tiny"), "these options choose 2 (paced-fake-fp32-spin-plain, tiny-"),
        (("--max-pairs", "99"), "expected 1 to 24 pairs, got 99"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    command: Callable[..., tuple[int, str, str]], ends: tuple[str, str], words: tuple[str, ...], refusal: str
) -> None:
    status, output, errors = command("--good", ends[0], "--bad", ends[1], *words)
    assert (status, output) == (2, "")
    assert refusal in errors
    assert "Traceback" not in errors
