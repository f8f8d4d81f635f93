"""Programs that run as a whole, in turns: once in each arm's tree, environment and variables, then again.

A client has a server in each arm. What a run told is one pair for each of the program's numbers, so a hundred of them
cost no more than one.
"""

from __future__ import annotations

import os
import random
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipexperf import scratch, units
from ipexperf.bench.machine import source as users_files
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import ProgramCase
from ipexperf.compare.against import PairPlan
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult, Round
from ipexperf.conduct import process, program
from ipexperf.conduct.conductor import Conductor, now
from ipexperf.conduct.user_server import PORT, Server
from ipexperf.environments import sources
from ipexperf.environments.sources import Say
from ipexperf.errors import UsageError, WorkerError
from ipexperf.formats import OUT, Metrics, Number, all_of, unusable
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import gates
from ipexperf.plan.arms import ArmSpec, policy
from ipexperf.plan.gates import GateWish
from ipexperf.plan.options import Options
from ipexperf.redaction import redacted_command, tuned
from ipexperf.result import PRIMARY, Launch, Sample
from ipexperf.steps import Notice, Step
from ipexperf.variables import SOURCE

WHOLE = ""
"""The name of the number that is the time of the whole program."""
RENEWED = 4
"""After so many pairs servers begin anew: one process may be slower than the next of the same program by chance."""
GATE = (PRIMARY, "cpu_time", "peak_memory")
"""The metrics by which the whole program is judged, unless `--perf-gate` names others."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is run, and what it tells of itself."""

    words: tuple[str, ...]
    metrics: tuple[Metrics, ...]
    timeout: float
    server: tuple[str, ...] = ()
    """What it is a client of."""
    ready: str = ""
    name: str = ""
    """What its series are called, if not as its words."""
    whole: bool = True
    """Whether its own time and memory are judged too."""

    @classmethod
    def of(
        cls,
        words: list[str],
        options: Options,
        metrics: str | Sequence[str] = (),
        server: str = "",
        ready: str = "",
        *,
        name: str = "",
        whole: bool = True,
    ) -> Program:
        """Parse what the user asks for. Raises UsageError."""
        if not words:
            raise UsageError("--program: say what to run behind --: ipexperf ab ... --program -- python bench.py")
        told = [metrics] if isinstance(metrics, str) else metrics
        parsed = tuple(Metrics.parse(text, words) for text in told)
        if any(OUT in word for word in words) and not parsed:
            raise UsageError(f"--program: it writes to {OUT}: say by --metrics in which format")
        for flag, text in (("--server", server), ("--ready", ready or server), ("--program", shlex.join(words))):
            if (server or ready) and PORT not in text:
                raise UsageError(f"{flag}: each arm's server has a port of its own: write {PORT} where it goes")
            try:
                shlex.split(text)
            except ValueError as error:
                raise UsageError(f"{flag} '{text}': {error}") from None
        return cls(tuple(words), parsed, options.timeout, tuple(shlex.split(server)), ready, name, whole)

    @property
    def text(self) -> str:
        """Its command line, without secrets."""
        return self.name or _text(self.words)

    @property
    def knobs(self) -> tuple[tuple[str, str], ...]:
        """What its cases have besides: its server."""
        return (("server", _text(self.server)),) if self.server else ()


def _text(words: Sequence[str]) -> str:
    joined = shlex.join(redacted_command(words))
    return joined.replace(shlex.quote(OUT), OUT).replace(shlex.quote(PORT), PORT)


@dataclass(frozen=True, slots=True)
class Told:
    """What a run took and told: its numbers, the whole time among them."""

    ran: program.Ran
    numbers: Mapping[str, Number]


@dataclass(slots=True)
class Place:
    """Where an arm runs the program, and what it runs there. Errors name the arm."""

    name: str
    folder: Path
    variables: Mapping[str, str]
    """All of its environment variables."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """The environment as it is recorded."""
    server: Server | None = None
    first: Told | None = None
    """The first run, which fills caches: its times do not count."""

    def run(self, what: Program) -> Told:
        """Run the program once. Starts the server that it needs. Raises WorkerError that names the arm."""
        at = self.folder, self.variables, what.timeout
        try:
            if what.server and not self.server:
                self.server = Server(what.server, what.ready, *at)
            with scratch.folder("program") as folder:
                out = folder / "out"
                words = [word.replace(OUT, str(out)) for word in what.words]
                ran = (self.server.run if self.server else program.run)(words, *at)
                numbers = all_of(what.metrics, out, self.folder, ran.printed)
            whole = {WHOLE: Number(ran.wall, "s", higher=False)} if what.whole else {}
            return Told(ran, {**whole, **numbers})
        except WorkerError as error:
            raise WorkerError(error.outcome, error.detail, error.log, self.name) from None
        except ValueError as error:
            raise WorkerError("error", str(error), ran.log, self.name) from None

    def end(self) -> None:
        """End the server, if there is one."""
        if self.server:
            self.server.close()
            self.server = self.first = None


def places(arms: Sequence[ArmSpec], names: Sequence[str], options: Options, say: Say) -> list[Place]:
    """Where these arms run a program. Each tree is built once, if `--perf-build` says how."""
    here, top = Path.cwd(), str(users_files.tree())
    trees = [Replaced.of(words.variables) or Replaced(top, top, users_files.roots()) for words in arms]
    found, machine = [], surroundings.of_machine()
    for words, name, tree in zip(arms, names, trees, strict=True):
        if named := [*words.axes, *words.knobs]:
            raise UsageError(f"{name}: a program has no {', '.join(named)}")
        _build(words, tree, options, name, say)
        folder = users_files.place(tree.by, users_files.name(here, tree.tree))
        if not folder.is_dir():
            raise UsageError(f"{name}: there is no folder {folder}: run ipexperf where the programs of both arms are")
        variables = _variables(words, tree, others=len({each.by for each in trees}) > 1)
        described = {**machine, "variables": tuned(variables)}
        if len(trees) > 1:  # else nobody knows what it runs
            described["source"] = _digests(tree, trees)
        found.append(Place(name, folder, variables, described))
    return found


def _build(words: ArmSpec, tree: Replaced, options: Options, name: str, say: Say) -> None:
    if not options.build:
        return
    if words.build:  # of a commit, which is built once for all runs
        reason = sources.unbuilt(tree, words.build, options.timeout, say)
    else:
        say(f"building {tree.by}: {options.build}")
        log = scratch.cache(options.cache).absolute() / "build.log"
        reason = sources.run_build(options.build, Path(tree.by), log, options.timeout)
    if reason:
        raise UsageError(f"{name}: {reason}")


def _variables(words: ArmSpec, tree: Replaced, *, others: bool) -> dict[str, str]:
    """The variables of an arm. If arms have `others` trees, each imports from its own before what is installed."""
    variables = process.variables_for(words.python, {**words.variables})
    variables.pop(SOURCE, None)
    if words.python:
        folder = Path(words.python).absolute().parent
        variables["PATH"] = f"{folder}{os.pathsep}{variables.get('PATH', os.defpath)}"
    if others:
        entries = [str(Path(tree.by, root)) for root in tree.paths if Path(tree.by, root).is_dir()]
        before = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
        entries += [str(tree.moved(Path(entry))) for entry in before]
        variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(entries))
    return variables


def _digests(own: Replaced, trees: Sequence[Replaced]) -> dict[str, str]:
    """The digests of those files of a tree that another tree has otherwise."""
    names = sources.unlike(*dict.fromkeys(Path(tree.by) for tree in trees))
    return {name: users_files.digest_of(path) for name in names if (path := Path(own.by, name)).is_file()}


class ProgramRuns:
    """The schedule of a program's numbers: it runs once in each of its arms, and each number has a round of that."""

    def __init__(self, what: Program, arms: Sequence[Place]) -> None:
        self._program = what
        self._places = arms
        self._first: int | None = None
        """The arm that began the last round."""
        self._pairs = 0
        self._apart = False
        """Whether only one server can live at a time."""

    def close(self) -> None:
        """End the servers."""
        for place in self._places:
            place.end()

    def names(self, say: Say, known: Collection[str] = ()) -> tuple[Mapping[str, Number], list[str]]:
        """Run it in each arm for the names of its numbers, and to fill caches: no time of these runs counts.

        Returns the numbers that can be compared, and of each that cannot why: an arm does not tell it, or none tells it
        as a number above 0. One that only some tell as such, or that is `known` to have been one, fails when it runs.
        """
        told = []
        for place in self._places:
            told.append(self._begun(place, say))
            if left := told[-1].ran.left:
                left_over = units.plural(left, "process", "processes")
                say(Notice(f"{place.name}: the program left {left_over}, and each run ends them"))
        able, unable = {}, []
        for name in dict.fromkeys(name for each in told for name in each.numbers):
            whys = [unusable(each.numbers.get(name)) for each in told]
            texts = [f"{place.name}: {name} {why}" for place, why in zip(self._places, whys, strict=True) if why]
            fails = all(name in each.numbers for each in told) and (len(set(whys)) > 1 or name in known)
            if fails or not texts:
                able[name] = told[-1].numbers[name]
            else:
                unable.append("; ".join(texts))
        return able, unable

    def play(
        self, rounds: Sequence[Sequence[Arm]], chance: random.Random, say: Callable[[str], None]
    ) -> Iterator[Round]:
        """Run it once in each arm. Who is first alternates, so that a steady drift of the machine cancels out."""
        last = len(self._places) - 1
        if self._pairs and self._pairs % (RENEWED if last else 1) == 0:  # without another arm each run is a launch
            self.close()
        self._pairs += 1
        self._first = chance.randint(0, last) if self._first is None else last - self._first
        began, started = time.monotonic(), now()
        order = dict.fromkeys((self._first, last - self._first))
        told = {} if self._apart else {place: self._attempt(place, say, first=True) for place in order}
        if not any(isinstance(first, WorkerError) for first in told.values()):
            told = {place: self._attempt(place, say, first=False) for place in order}
        for arms in rounds:
            results = [self._result(arm, place, told[place]) for place, arm in enumerate(arms)]
            yield Round(tuple(results), "apart", started, 1, seconds=time.monotonic() - began)

    def _begun(self, place: Place, say: Say) -> Told:
        """The first run in an arm, whose server lives from then on. Servers that cannot live together end before."""
        if self._apart and not place.server:
            self.close()
        if place.first is None:
            say(Step(f"first run, which does not count: {place.name}"))
            try:
                place.first = place.run(self._program)
            except WorkerError as error:
                hangs = place.server is not None and error.outcome == "timed_out"  # its client does, ready as it is
                if hangs or not any(each.server for each in self._places if each is not place):
                    raise
                self.close()
                place.first = place.run(self._program)
                self._apart = True
                say(Notice(f"{error.reason}; alone it is ready: the servers run one after the other"))
        return place.first

    def _attempt(self, place: int, say: Say, *, first: bool) -> Told | WorkerError:
        try:
            begun = self._begun(self._places[place], say)
            return begun if first else self._places[place].run(self._program)
        except WorkerError as error:
            return error

    def _result(self, arm: Arm, place: int, told: Told | WorkerError) -> ArmResult:
        case, described = arm.case, self._places[place].described
        assert isinstance(case, ProgramCase)  # noqa: S101 - no other case is given to a program
        if isinstance(told, Told):
            number = told.numbers.get(case.number)
            if not (why := unusable(number)) and number is not None:
                launch = _launch(arm, case, told, number.value)
                return ArmResult(arm, launch, described, ((case.cost(number.value),),))
            told = WorkerError(
                "error", f"in run {arm.index + 1} {case.number} {why}", told.ran.log, self._places[place].name
            )
        return ArmResult(arm, Launch(arm.index, "error", told.reason, log=told.log), described, error=told)


def _launch(arm: Arm, case: ProgramCase, told: Told, value: float) -> Launch:
    ran, notes = told.ran, arm.conditions.notes
    if case.number:
        return Launch(arm.index, "ok", metrics={PRIMARY: value}, notes=notes)
    taken = {PRIMARY: ran.wall, "cpu_time": ran.cpu, "peak_memory": float(ran.peak)}
    return Launch(arm.index, "ok", samples=(Sample(ran.wall, ran.cpu, 0.0),), metrics=taken, notes=notes, log=ran.log)


class MeasuredProgram:
    """A program in both arms, or in one: the cases of its numbers, once it has run, and their rounds."""

    def __init__(
        self,
        what: Program,
        device: str,
        against: PairPlan | None,
        options: Options,
        conductor: Conductor,
        say: Say,
        **variables: str,
    ) -> None:
        """Get the trees of its arms ready, of which `against` has both. These `variables` are for all of them."""
        self.whole = ProgramCase(what.text, device, knobs=what.knobs)
        self.against = against
        self.wishes: dict[ProgramCase, GateWish] = {}
        """How each of its numbers is to be judged."""
        self._options, self._conductor, self._say = options, conductor, say
        conductor.reserve([self.whole])  # before a build, which disturbs others as a run does
        both = (against.words, against.own) if against else (ArmSpec(),)
        specs = [replace(words, variables={**variables, **words.variables}) for words in both]
        self.places = places(specs, against.names if against else [what.text], options, say)
        self.runs = ProgramRuns(what, self.places)

    def learn(self, wish: GateWish = gates.AS_ALL, known: Collection[str] = ()) -> list[str]:
        """Run it for its numbers, unless the budget is spent. Returns why some cannot be measured.

        `wish` is that of its test. Raises WorkerError if it fails.
        """
        numbers: Mapping[str, Number] = {WHOLE: Number(0.0, "s", higher=False)}
        unable: list[str] = []
        if not self._conductor.spent():
            numbers, unable = self.runs.names(self._say, known)
        gate = wish.gate or (GATE if self._options.gate is None else gates.gate(self._options))
        for name, number in numbers.items():
            case = replace(self.whole, number=name, unit=number.unit, higher=bool(number.higher))
            self.wishes[case] = GateWish(wish.tolerance, (PRIMARY,) if name else gate)
        if self.against:
            shared = PairPolicy(**policy(self._options)).shared(len(self.wishes))
            self.against = replace(self.against, cases={case: case for case in self.wishes}, policy=shared)
        return unable
