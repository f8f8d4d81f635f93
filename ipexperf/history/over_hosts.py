"""Compare two softwares case by case over all hosts that measured both, with a verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ipexperf.case import Case
from ipexperf.errors import HistoryError
from ipexperf.history import selectors
from ipexperf.history.comparison import unsound
from ipexperf.history.database import reading
from ipexperf.history.query import known_metric
from ipexperf.history.records import of_case
from ipexperf.judge import several_hosts
from ipexperf.judge.environment import incomparable
from ipexperf.judge.policy import HostsPolicy
from ipexperf.judge.several_hosts import LEAST_HOSTS, HostRatio
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipexperf.history.records import Recorded
    from ipexperf.history.selectors import Member
    from ipexperf.history.store import History

PER_HOST = 3
"""The newest runs of a host that a report compares."""
MUCH = 1.5
"""From this factor over the assumed spread on, a note reports the spread of the hosts."""
NO_SPREAD = "one launch has no spread"
SHOWN = 4
"""Most names that a sentence has. The rest are counted."""


@dataclass(frozen=True, slots=True)
class SoftwareRuns:
    """One of the two softwares: the runs that a selector named."""

    selector: str
    runs: tuple[str, ...]
    hosts: tuple[str, ...]
    software: tuple[str, ...]
    """The software of its runs. More than one: the side mixes them."""
    begin: str
    end: str
    """When its oldest and its newest run began."""


@dataclass(frozen=True, slots=True)
class HostShare:
    """The result of one host for a case."""

    host: str
    ratio: float | None
    """How many times slower the second software is. None if this host has no ratio."""
    runs: tuple[int, int]
    """The runs before and after that count."""
    note: str
    """Why it has no ratio, or that it is odd."""


@dataclass(frozen=True, slots=True)
class OverHosts:
    """One case on hosts of one kind. Without a verdict, `reason` says why."""

    case_id: str
    case_uid: str
    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    batch: int
    machine_key: str
    metric: str
    unit: str
    outcome: str | None
    ratio: float | None
    """How many times slower the second software is. Above 1 is slower."""
    lo: float | None
    hi: float | None
    mde: float | None
    """The smallest slowdown, as a fraction, that would surely have been seen."""
    spread: float | None
    """Standard deviation of the log ratios of its hosts."""
    assumed_spread: float
    """The spread that was assumed: 2 %, or more if the cases of the comparison show more."""
    odd: tuple[str, ...]
    """Hosts that disagree with the others, and are left out of the ratio."""
    disagree: bool
    """Whether the hosts disagree and no single one can be blamed."""
    reason: str
    hosts: tuple[HostShare, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class HostsComparison:
    """Two softwares over all hosts."""

    first: SoftwareRuns
    second: SoftwareRuns
    cases: tuple[OverHosts, ...]
    notes: tuple[str, ...]
    """Warnings and remarks on the comparison as a whole."""


def compare(history: History, first: str, second: str, metric: str = PRIMARY) -> HostsComparison:
    """Compare the runs that two selectors name, on each host of both and over all of them.

    Raise HistoryError if there is no verdict on any case.
    """
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        sides = [selectors.resolve_set(connection, text) for text in (first, second)]
    compared = of_runs(history, (first, second), sides, metric)
    if all(case.outcome is None for case in compared.cases):
        raise HistoryError(
            f"{first!r} and {second!r} have no case that {LEAST_HOSTS} equal hosts {_why_none(compared)}"
        )
    return compared


def _why_none(compared: HostsComparison) -> str:
    """The end of the sentence that says why there is nothing to compare."""
    both = sorted({*compared.first.hosts} & {*compared.second.hosts})
    if not (compared.first.hosts and compared.second.hosts):
        return "measured in both: hosts shared the runs (--perf-spread share), so that each case was on one alone."
    if not both:
        return (
            f"measured in both: {_named(compared.first.hosts)} measured one, {_named(compared.second.hosts)} the other."
        )
    if len(both) == 1:
        return f"measured in both: only {both[0]} did. `ipexperf compare` without --hosts is for one host."
    reasons = Counter(case.reason for case in compared.cases)
    if not reasons:
        return "measured in both: nothing was recorded."
    (reason, count), *_ = reasons.most_common(1)
    return f"measured in both, with a spread. In {count} of {len(compared.cases)} cases, {reason}."


def newest(history: History) -> HostsComparison | None:
    """Compare the newest software that several hosts measured with the one before it. None if there are no such two."""
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        every = selectors.members(connection)
    by_software: dict[str, dict[str, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for member in every:
        if member.host is not None:
            by_software[member.software][member.host].append(member)
    several = [name for name, hosts in by_software.items() if len(hosts) >= LEAST_HOSTS]
    for old in several[1:]:
        hosts = by_software[several[0]].keys() & by_software[old].keys()
        if len(hosts) >= LEAST_HOSTS:
            names = (old, several[0])
            sides = [
                [member for host in sorted(hosts) for member in by_software[name][host][:PER_HOST]] for name in names
            ]
            return of_runs(history, names, sides)
    return None


def of_runs(
    history: History, names: Sequence[str], sides: Sequence[Sequence[Member]], metric: str = PRIMARY
) -> HostsComparison:
    """Compare the runs of two sides. Raise HistoryError if a run is in both, or if the metric is no time."""
    kind = known_metric(metric)
    if kind.unit != "s" or kind.higher_is_better is not False:
        raise HistoryError(f"over several hosts a time is judged, such as {PRIMARY}: {metric} is none.")
    if both := {member.uid for member in sides[0]} & {member.uid for member in sides[1]}:
        raise HistoryError(
            f"{names[0]!r} and {names[1]!r} both name the run {min(both)}: name two fleet runs, days or commits, or "
            "two versions, such as torch=2.8 and torch=2.9."
        )
    old, new = (_cases_of_side(history, side) for side in sides)
    keys = sorted({*old, *new}, key=lambda key: (key[0].id, key[0].uid, key[1]))
    whole = [(key, _shares(old.get(key, {}), new.get(key, {}), metric)) for key in keys]
    judged = sum(shares.judgeable for _, shares in whole)
    policy = HostsPolicy() if kind.gate is None else replace(HostsPolicy(), tolerance=kind.gate.tolerance)
    policies = _policies(whole, policy.shared(judged))
    cases = tuple(_over_hosts(key, shares, metric, kind.unit, policies[key[1]]) for key, shares in whole)
    first, second = (_side(name, side) for name, side in zip(names, sides, strict=True))
    shared = sum(member.host is None for side in sides for member in side)
    return HostsComparison(first, second, cases, tuple(_notes((first, second), shared, cases)))


Key = tuple[Case, str]
"""A case and the kind of its hosts."""


class _Shares(NamedTuple):
    """The results of all hosts for a case, and the ratios of those that have one, for the judge."""

    hosts: list[HostShare]
    ratios: list[HostRatio]

    @property
    def judgeable(self) -> bool:
        return len(self.ratios) >= LEAST_HOSTS


def _cases_of_side(history: History, side: Sequence[Member]) -> dict[Key, dict[str, list[Recorded]]]:
    """Return the recorded cases of a side by case and kind, and then by host. Runs that hosts shared are left out."""
    cases: dict[Key, dict[str, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for member in side:
        if member.host is not None:
            for recorded in history.measurements(member.uid):
                cases[recorded.case, recorded.machine_key][member.host].append(recorded)
    return cases


def _shares(old: Mapping[str, Sequence[Recorded]], new: Mapping[str, Sequence[Recorded]], metric: str) -> _Shares:
    shares = _Shares([], [])
    for host in sorted({*old, *new}):
        sides = (old.get(host, ()), new.get(host, ()))
        sound = [[recorded for recorded in side if not unsound(recorded, metric)] for side in sides]
        note, ratio = _why_not(sides, sound, metric), None
        if not note:
            ratio = several_hosts.of_runs(host, *([recorded.values[metric] for recorded in side] for side in sound))
            note = NO_SPREAD if ratio is None else ""
        if ratio is not None:
            shares.ratios.append(ratio)
        counts = (len(sound[0]), len(sound[1]))
        shares.hosts.append(HostShare(host, ratio.ratio if ratio is not None else None, counts, note))
    return shares


def _why_not(sides: Sequence[Sequence[Recorded]], sound: Sequence[Sequence[Recorded]], metric: str) -> str:
    """Why a host has no ratio, or an empty text."""
    for name, every, good in zip(("first", "second"), sides, sound, strict=True):
        if not every:
            return f"the {name} did not measure it"
        if not good:
            return f"the {name} {unsound(every[0], metric)}"
    fields = incomparable(sound[0][0].environment, sound[1][0].environment)
    return f"other hardware: {', '.join(fields)}" if fields else ""


def _policies(whole: Sequence[tuple[Key, _Shares]], policy: HostsPolicy) -> dict[str, HostsPolicy]:
    """The policy for the hosts of each kind."""
    ratios: dict[str, list[list[HostRatio]]] = defaultdict(list)
    for (_, machine_key), shares in whole:
        ratios[machine_key].append(shares.ratios)
    return {machine_key: several_hosts.corrected(cases, policy) for machine_key, cases in ratios.items()}


def _over_hosts(key: Key, shares: _Shares, metric: str, unit: str, policy: HostsPolicy) -> OverHosts:
    case, machine_key = key
    combined = several_hosts.judge(shares.ratios, policy) if shares.judgeable else None
    odd = combined.odd if combined else ()
    names = ("outcome", "ratio", "lo", "hi", "mde", "spread")
    numbers: dict[str, Any] = {name: getattr(combined, name, None) for name in names}
    return OverHosts(
        **of_case(case),
        machine_key=machine_key,
        metric=metric,
        unit=unit,
        **numbers,
        assumed_spread=policy.likely_spread,
        odd=odd,
        disagree=combined.disagree if combined else False,
        reason=combined.reason if combined else _too_few(shares.hosts),
        hosts=tuple(replace(share, note="odd") if share.host in odd else share for share in shares.hosts),
        policy=policy.label,
    )


def _too_few(shares: Sequence[HostShare]) -> str:
    """Why there is no verdict: one host or none measured both."""
    usable = [share.host for share in shares if share.ratio is not None]
    without: dict[str, list[str]] = defaultdict(list)
    for share in shares:
        if share.ratio is None:
            without[share.note].append(share.host)
    why = "; ".join(f"{reason} on {_named(hosts)}" for reason, hosts in without.items())
    return f"{f'only {usable[0]} measured both' if usable else 'no host measured both'}{f': {why}' if why else ''}"


def _named(names: Sequence[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*names[:SHOWN], *more])


def _side(selector: str, side: Sequence[Member]) -> SoftwareRuns:
    return SoftwareRuns(
        selector,
        tuple(member.uid for member in side),
        tuple(sorted({member.host for member in side if member.host is not None})),
        tuple(dict.fromkeys(member.software for member in side)),
        min(member.started_at for member in side),
        max(member.started_at for member in side),
    )


def _notes(sides: Sequence[SoftwareRuns], shared: int, cases: Sequence[OverHosts]) -> Iterator[str]:
    for side, name in zip(sides, ("first", "second"), strict=True):
        if len(side.software) > 1:
            yield f"the {name} mixes {len(side.software)} softwares: a ratio is over all of them"
    if shared:
        yield f"{shared} runs that several hosts shared are left out: each of their cases was on one host alone"
    if len(kinds := {case.machine_key for case in cases}) > 1:
        yield f"hosts of {len(kinds)} kinds: a ratio is over the hosts of one kind, because others may differ"
    odd = Counter(host for case in cases for host in case.odd)
    judged = sum(case.outcome is not None for case in cases)
    for host, count in odd.most_common():
        yield f"{host} disagrees with its equals in {count} of {judged} cases: look at that machine"
    if alone := sum(case.outcome is None for case in cases):
        yield f"{alone} of {len(cases)} cases have no verdict: fewer than {LEAST_HOSTS} equal hosts measured both"
    for machine_key, spread in sorted({case.machine_key: case.assumed_spread for case in cases}.items()):
        if spread > MUCH * HostsPolicy().spread:
            yield (
                f"on {machine_key} the hosts differ by {spread:.1%}, more than the {HostsPolicy().spread:.0%} that is "
                "assumed: the intervals are as wide as that needs"
            )
