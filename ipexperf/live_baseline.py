"""Live baselines: each case beside the software that its baseline was accepted on, in the same rounds.

A stored number was measured on another day. A baseline whose environment and source can be had again, from its lock and
from the files that are kept of it, is measured again now, so that a change of driver, kernel, neighbours or heat hits
both sides. A case whose software and source are its baseline's has nothing to compare live: its stored numbers then
watch the machine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from ipexperf import lock as locks
from ipexperf import scratch, units
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.compare import arm, locked
from ipexperf.compare.against import FirstArmResults, PairPlan
from ipexperf.environments import indexes, make, resolve, shipped, sources
from ipexperf.environments.sources import Source
from ipexperf.errors import BaselineError, HistoryError, LockError, UsageError
from ipexperf.judge import baseline, screen, spread
from ipexperf.judge.baseline import CaseBaseline
from ipexperf.judge.environment import differences, incomparable
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.lock import Lock
from ipexperf.plan import arms
from ipexperf.plan.arms import ArmSpec
from ipexperf.plan.options import Options
from ipexperf.plan.values import BASELINE, is_requirement
from ipexperf.sentences import few
from ipexperf.verdict import MachineEvidence

SAME = "its software and source are exactly its baseline's"
"""Why a case is judged by stored numbers although its baseline has a lock."""
SEEN = "its software and source are its baseline's as far as was seen"
"""The same where git cannot tell whether other files changed."""
OTHERWISE = "its packages, variables and files are its baseline's, but other things that it ran differ"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a case ran when its baseline was accepted."""

    lock: Lock
    source: Source = field(default_factory=Source)
    changed: tuple[str, ...] = ()
    """The files of the source that are other ones now."""
    unseen: tuple[str, ...] | None = None
    """The other files that changed. None if nobody can tell."""

    @property
    def same(self) -> str:
        """How it is what runs now, if its software and source are."""
        if not self.unseen:
            return SEEN if self.unseen is None else SAME
        return f"{SEEN}; these changed files were not seen to be read, or are data: {few(self.unseen)}"


@dataclass(slots=True)
class OtherArms:
    """What the cases of a run are compared with, and why the others are judged by stored numbers."""

    named: PairPlan | None = None
    """The arm that the user named. Then all cases are compared with it."""
    live: dict[Case, PairPlan] = field(default_factory=dict)
    """The software of its baseline, for each case that is judged live."""
    stored: dict[Case, str] = field(default_factory=dict)
    """Why each other case that has a baseline is judged by stored numbers."""
    wanted: Mapping[Case, Wanted] = field(default_factory=dict)
    current: Lock | None = None
    """The software of this run, if it was compared with a lock."""

    def of(self, recorded: Case) -> PairPlan | None:
        """The other arm of a case, as it was recorded."""
        return self.named or self.live.get(recorded)

    def unseen(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """The files that changed since the baselines of these cases, and that they were not seen to read."""
        return tuple(
            dict.fromkeys(name for case in cases if case in self.wanted for name in self.wanted[case].unseen or ())
        )

    def give_up(self, case: Case, reason: str) -> None:
        """Judge a case by stored numbers after all, because the software of its baseline does not run it."""
        del self.live[case]
        self.stored[case] = f"the software of its baseline does not run it: {reason}"

    def lines(self, judged: Mapping[Case, Sequence[str]]) -> list[str]:
        """Summarise how these cases were judged, in a few lines. Cases without a baseline are left out.

        `judged` has what differs from the baseline in the software and source that each case ran.
        """
        lines = []
        for wanted in {_name(wanted): wanted for wanted in self.wanted.values()}.values():
            cases = [case for case in self.live if _name(self.wanted[case]) == _name(wanted)]
            if cases and self.current is not None:
                differing = _short(wanted, self.current)
                lines.append(f"judged live against {_name(wanted)}: {units.plural(len(cases), 'case')}; {differing}")
        reasons: dict[str, int] = {}
        for case, reason in self.stored.items():
            if case in judged:
                same = case in self.wanted and reason == self.wanted[case].same
                text = f"{OTHERWISE}: {few(judged[case])}" if same and judged[case] else reason
                reasons[text] = reasons.get(text, 0) + 1
        lines += [
            f"judged by stored numbers: {units.plural(count, 'case')}: {reason}" for reason, count in reasons.items()
        ]
        return lines


def _name(wanted: Wanted) -> str:
    """What a case is judged live against, for people."""
    lock, source = wanted.lock, f", source {wanted.source.digest}" if wanted.changed else ""
    return f"the lock {lock.digest}{f' ({lock.name})' if lock.name else ''}{source}"


def _short(wanted: Wanted, new: Lock) -> str:
    """The main differences of accepted software and source from those of now: torch and its companions first."""
    first = {
        name: place for place, name in enumerate(("torch", "intel-extension-for-pytorch", "torchvision", "python"))
    }
    rows = sorted(locks.differences(wanted.lock, new), key=lambda difference: first.get(difference.name, len(first)))
    texts = [str(difference) for difference in rows if difference.kind in ("package", "variable", "python")]
    drivers = [difference for difference in rows if difference.kind == "driver"]
    under = f"; accepted under the driver {drivers[0].old}, here is {drivers[0].new}" if drivers else ""
    return (few([*texts, *(f"{name}: changed" for name in wanted.changed)]) or "the same software") + under


def machine(other: FirstArmResults, accepted: CaseBaseline | None, policy: Policy) -> MachineEvidence | None:
    """Compare the baseline's software, as measured now, with its stored numbers. None if the hardware differs."""
    if accepted is None or not other.times or incomparable(accepted.environment, other.environment):
        return None
    compared = spread.compare(other.times, [session.launches for session in accepted.sessions], policy)
    changed = differences(accepted.environment, other.environment, ("hardware",))
    return MachineEvidence(math.exp(compared.log_ratio), screen.decide(compared, policy), tuple(changed))


def find(options: Options, cases: Sequence[Case], facts: Facts, cache: Path, say: Say) -> OtherArms:
    """Decide which cases are judged live, and make the environments that they need, which may take minutes.

    With `--perf-against baseline` each case must have a lock that can be made again.
    """
    words = named(options)
    if words is None and options.against is not None:
        return OtherArms()
    must = words is not None
    source = options.source("against")
    words = words or arms.ArmSpec(text=BASELINE, lock=BASELINE)
    key = functools.partial(locked.machine_key, facts=facts, options=options)
    wanted, stored = _locks_of(words, options, cases, key, source, must=must)
    if not wanted:
        return OtherArms(stored=stored)
    current = replace(locked.current_lock(options), driver=facts.driver)
    live: dict[Case, PairPlan] = {}
    for name, accepted in {_name(accepted): accepted for accepted in wanted.values()}.items():
        ours = [case for case, other in wanted.items() if _name(other) == name]
        if locks.same_software(accepted.lock, current) and not accepted.changed and not words.more:
            stored |= {case: wanted[case].same for case in ours}
            continue
        policy = PairPolicy(**arms.policy(options)).shared(len(wanted))
        try:
            old = _with_source(words, accepted, options, cache, say)
            compared, unable = locked.against(old, accepted.lock, ours, source, policy, options, cache, say)
        except UsageError as error:  # it cannot be made, or does not import
            if must:
                raise UsageError(f"{source}: {error}" if isinstance(error, LockError) else str(error)) from error
            changed = f" with its source ({few(accepted.changed)} changed since)" if accepted.changed else ""
            stored |= dict.fromkeys(ours, f"its lock {accepted.lock.digest}{changed} cannot be made again: {error}")
            continue
        if unable and must:
            case, reason = next(iter(unable.items()))
            raise UsageError(f"{source}: {case.id} cannot be measured in pairs: {reason}")
        stored |= unable
        live |= dict.fromkeys(compared.cases, compared)
    return OtherArms(live=live, stored=stored, wanted=wanted, current=current)


def _with_source(words: ArmSpec, wanted: Wanted, options: Options, cache: Path, say: Say) -> ArmSpec:
    """The arm with the accepted files, if those that are here are other ones."""
    if not wanted.changed:
        return words
    path = sources.path_of(options.baselines, wanted.source.digest)
    kept = sources.read(path)
    if kept.source != wanted.source:
        raise BaselineError(f"{path} has other files than its baseline: restore it with git, or accept anew")
    return replace(words, variables={**words.variables, **sources.tree_of(kept, cache, say).variables})


def named(options: Options) -> ArmSpec | None:
    """The arm that names a lock by `baseline`, `baseline:NAME`, `run:RUN` or `lock:FILE`, or None."""
    words = None if options.arm is None else arms.parse(options.arm, options.source("against"))
    return words if words and words.lock else None


def _locks_of(
    words: ArmSpec, options: Options, cases: Sequence[Case], key: Callable[[str], str], source: str, *, must: bool
) -> tuple[dict[Case, Wanted], dict[Case, str]]:
    """The lock and the source of each case that has a baseline, or why it has none."""
    if words.lock != BASELINE:
        return dict.fromkeys(cases, Wanted(lock_named(words.lock, options, source))), {}
    wanted: dict[Case, Wanted] = {}
    stored: dict[Case, str] = {}
    files = _baselines_of(options, cases, key)
    since: dict[str, list[str] | None] = {}
    for case in cases:
        accepted = files.get(case)
        if accepted is None:
            continue
        if reason := _why_unlocked(case, accepted):
            stored[case] = reason
            continue
        path = locks.path_of(options.baselines, accepted.lock)
        if not path.exists() and not must:
            stored[case] = f"{path}, its lock, is not there"
            continue
        lock, ran = locks.read(path), Source.of(accepted.environment)
        if lock.digest != accepted.lock:
            raise LockError(f"{path} was edited: its content has the digest {lock.digest}. Restore it with git")
        git = accepted.environment.get("git") or {}
        if str(git) not in since:
            since[str(git)] = sources.others_changed(git, options.baselines)
        others = since[str(git)]
        unseen = None if others is None else tuple(name for name in others if name not in ran.files)
        wanted[case] = Wanted(lock, ran, tuple(ran.changed()), unseen)
    if must and not wanted:
        never = "none was accepted on this machine" if cases else "there is no case"
        reason = next(iter(stored.values()), never)
        raise UsageError(f"{source}: no case has a baseline that can run again: {reason}; name an arm, as git:HEAD~1")
    return wanted, stored


def _why_unlocked(case: Case, accepted: CaseBaseline) -> str:
    if accepted.case != case:
        return "the work of its case changed since its baseline was accepted"
    return "" if accepted.lock else "its baseline was accepted before locks were kept: accept it anew"


def _baselines_of(options: Options, cases: Iterable[Case], key: Callable[[str], str]) -> dict[Case, CaseBaseline]:
    """The accepted baselines of these cases. `key` has the machine_key of a device."""
    if not any(options.baselines.glob("*.json")):
        return {}  # spares asking a card for its properties
    files: dict[str, baseline.Baselines] = {}
    answer = {}
    for case in cases:
        if case.device not in files:
            files[case.device] = baseline.read(options.baselines, key(case.device))
        if accepted := files[case.device].find(case):
            answer[case] = accepted
    return answer


def lock_named(reference: str, options: Options, source: str) -> Lock:
    """The lock that a word such as `baseline:NAME`, `shipped:NAME` or `torch==2.9.0` names."""
    kind, _, name = reference.partition(":")
    if is_requirement(reference.partition(",")[0]):
        return _with_versions(reference.split(","), options, source)
    if reference == BASELINE:
        choices = locks.every(options.baselines)
        if len(choices) != 1:
            raise UsageError(f"{source}: {options.baselines} has {len(choices)} locks: name one as baseline:NAME")
        return choices[0]
    if kind == "lock":
        return locks.read(Path(name))
    if kind == "shipped":
        return shipped.lock(name)
    if kind == "run":
        return _lock_of_run(name, options, source)
    if kind == "nightly":
        return _of_night(name, options, source)
    return locks.find(options.baselines, name)


def _with_versions(requirements: Sequence[str], options: Options, source: str) -> Lock:
    """The software here with other versions of these packages, and of those that belong to them."""
    lock = locked.current_lock(options)
    pins = []
    for requirement in requirements:
        name, _, version = requirement.partition("==")
        name = canonicalize_name(name)
        if name not in lock.versions:
            raise UsageError(f"{source}: {name} is not installed here, so there is nothing to replace by {requirement}")
        pins.append((str(name), version))
    return resolve.with_versions(lock, make.take_inventory(options.python), tuple(pins))


def _of_night(text: str, options: Options, source: str) -> Lock:
    """The software here with PyTorch's nightly build of a date, such as `20261120`, or `20261120+xpu`."""
    date, _, label = text.partition("+")
    lock = locked.current_lock(options)
    label = label or locks.label_of(lock.versions.get("torch", ""))
    if not label:
        raise UsageError(
            f"{source}: torch here has no label that says for which device: say nightly:{date}+cpu or +xpu"
        )
    url = indexes.of_label(label, nightly=True)
    try:
        nights = [str(version) for version in indexes.versions("torch", lock.python, url)]
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    night = next((version for version in reversed(nights) if indexes.night_of(version) == date), None)
    if night is None:
        last = ", ".join(nights[-3:]) or "none"
        raise UsageError(f"{source}: {url} has no torch of {date} for Python {lock.python} (the last there: {last})")
    return _with_versions([f"torch=={night}"], options, source)


def _lock_of_run(selector: str, options: Options, source: str) -> Lock:
    from ipexperf.history.store import History

    try:
        with History.open(options.db, create=False) as history:
            digests = [recorded.environment.get("lock") for recorded in history.measurements(selector)]
            commonest = max({digest for digest in digests if digest}, key=digests.count, default=None)
            text = history.lock(commonest) if commonest else None
    except HistoryError as error:
        raise UsageError(f"{source}: {error}") from error
    if text is None:
        raise UsageError(f"{source}: the run {selector} was recorded before locks were kept")
    return locks.parse(text, f"the lock of the run {selector}")


def resolved(words: ArmSpec, options: Options, say: Say, source: str) -> ArmSpec:
    """An arm with the interpreter of its lock and the tree of its source, if it names one."""
    cache = scratch.cache(options.cache)
    words = arm.with_source(words, options, source, say)
    if not words.lock:
        return words
    return locked.with_lock(words, lock_named(words.lock, options, source), options, cache, say)
