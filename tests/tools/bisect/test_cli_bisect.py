"""`ipexperf bisect` finds the change between two ends that makes a case slower."""

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ipexperf.tools.bisect.software import Software

sys.path.append(str(Path(__file__).parents[2] / "environments"))
from small_wheels import a_wheel, an_unpacked_environment

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf import lock as locks
from ipexperf.bench import registry
from ipexperf.bench.machine.inventory import Package
from ipexperf.bench.networks import own
from ipexperf.case import NetworkCase
from ipexperf.commands import command_line
from ipexperf.errors import UsageError
from ipexperf.history import History
from ipexperf.judge.bisection import Answer, Candidate, Change, SearchResult
from ipexperf.lock import Lock
from ipexperf.ratio import Ratio
from ipexperf.tools.bisect import command as bisect
from ipexperf.tools.bisect import search
from ipexperf.tools.bisect.answers import AnswerLog, Measured
from ipexperf.tools.bisect.laboratory import Laboratory
from ipexperf.tools.bisect.search import Ends

CELL = ("--model", "paced", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
NAMES = tuple(f"dep{number}" for number in range(6))


def a_change(name: str) -> Change:
    return Change("package", name, "1", "2")


class Bench:
    """A laboratory whose truth is known: which packages make the clock slow."""

    def __init__(self, *slow: str, ratio: float = 1.5) -> None:
        self.slow, self.ratio = set(slow), ratio
        self.asked: list[frozenset[str]] = []

    def timed(self, candidate: frozenset[str]) -> Measured:
        self.asked.append(candidate)
        if self.slow & candidate:
            return Measured(Answer.BAD, "seen", Ratio(self.ratio, self.ratio - 0.1, self.ratio + 0.1))
        return Measured(Answer.GOOD, "seen", Ratio(0.99, 0.89, 1.09))

    bad_end = timed


def all_packages(*names: str) -> Ends:
    """A search among packages that fit in any mix."""
    changes = [a_change(name) for name in names]
    return Ends(
        names=("good", "bad"),
        python="",
        changes=changes,
        software=lambda candidate: frozenset(package.name for package in candidate),  # type: ignore[arg-type, return-value]
        needs={change: frozenset({change}) for change in changes},
    )


def search_with(bench: Bench, *names: str) -> tuple[SearchResult, Mapping[Candidate, Measured]]:
    """What a search among these packages finds that measures in this laboratory."""
    return search.find(all_packages(*names), bench, lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_a_package_is_found_measured_alone_and_reverted_alone(name: str) -> None:
    bench = Bench(name)
    finding, answers = search_with(bench, *NAMES)
    assert (finding.outcome, {change.name for change in finding.culprits}) == ("culprit", {name})
    everything = frozenset(NAMES)
    assert bench.asked[0] == everything
    assert {frozenset({name}), everything - {name}} <= set(bench.asked)
    assert finding.shown == {a_change(name)}
    assert answers[finding.shown].ratio.value == 1.5


def test_ends_that_are_equally_fast_are_reported_as_alike() -> None:
    bench = Bench()
    finding, _ = search_with(bench, *NAMES)
    assert finding.outcome == "alike"
    assert len(bench.asked) == 1


def test_a_bad_end_that_is_faster_is_reported_as_exchanged() -> None:
    bench = Bench()
    bench.bad_end = lambda _: Measured(Answer.GOOD, "seen", Ratio(0.6, 0.5, 0.7))  # type: ignore[method-assign]
    finding, _ = search_with(bench, *NAMES)
    assert "are they exchanged?" in finding.reason


def test_ends_without_a_difference_need_no_measurement() -> None:
    bench = Bench("dep0")
    finding, answers = search_with(bench)
    assert (finding.outcome, bench.asked, answers) == ("alike", [], {})


def test_a_log_keeps_answers_by_content_and_ignores_an_unfinished_line(tmp_path: Path) -> None:
    path = tmp_path / "bisect" / "a.jsonl"
    log = AnswerLog(path)
    answer = Measured(Answer.BAD, "slow", Ratio(1.5, 1.4, 1.6), ("this", "that"), "here")
    log.put("one", answer)
    log.put("two", Measured(Answer.UNSURE, "noise"))
    with path.open("a") as stream:
        stream.write('{"key": "three", "measu')
    reopened = AnswerLog(path)
    assert (reopened.get("one"), reopened.get("two"), reopened.get("three")) == (answer, None, None)


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
        return Measured(Answer.BAD if slow else Answer.GOOD, "seen", Ratio(ratio, ratio, ratio), machine="here")

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
    record: Any = SimpleNamespace(
        case=NetworkCase(model.name, "cpu", "fp32", "infer", "stock", 16, model.size, 1, model.data)
    )
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
    assert "time of the culprit alone: 3.0 times" in output
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
    document = json.loads(command("--good", ends[0], "--bad", ends[1], "--json")[1])
    assert document["outcome"] == "culprit"
    assert [change["name"] for change in document["culprits"]] == ["pace"]


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
