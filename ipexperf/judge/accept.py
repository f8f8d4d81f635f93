"""Decide which measurements become baselines. A new session is appended to the stored ones, or replaces them.

- `failed` and `invalid` (unproven, inaccurate) data never gets in. Nor does `contended` data.
- A known slowdown is accepted only with `regression_ok`. A slowdown and an improvement replace the sessions: two levels
  in one baseline would look like noise between sessions.
- While the noise between sessions is unknown, most comparisons are inconclusive. Such a session is appended whichever
  way it leans. Refusing slow ones would give a baseline that is too fast and looks too quiet, and no machine would ever
  reach three sessions. What surely is slower, by all that is known of the machine's noise, is refused even then, also
  if the run ended before measuring it again and called it inconclusive.
- Once the noise is known, an inconclusive session that leans slower than the tolerance is refused: measure it again.
- A session in which a metric beside speed regressed is refused likewise. Where such a metric moved, older sessions lose
  their values of it.
- A session of another network, by its answers or its accuracy, needs `regression_ok` too, and replaces the sessions.
- An inconclusive session with other software, variables or kernels is refused, because it could mix two levels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ipexperf.case import AGAINST, Case
from ipexperf.errors import BaselineError
from ipexperf.judge import metrics
from ipexperf.judge.baseline import Baselines, CaseBaseline, Session, rounded
from ipexperf.judge.environment import IMPORTED, RAN, changed_case, differences, incomparable
from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import accuracy_change, decide
from ipexperf.judge.spread import compare, usual_noise
from ipexperf.outcomes import Outcome, has_numbers
from ipexperf.proof import answers
from ipexperf.redaction import redacted
from ipexperf.result import METRICS, PRIMARY, accuracies
from ipexperf.units import change
from ipexperf.verdict import Verdict

MOVED = ("regressed", "improved")
"""Outcomes of a metric that is at another level than before."""


@dataclass(frozen=True, slots=True)
class ProposedCase:
    """A measured case of a run that is proposed as a baseline, with its verdict."""

    case: Case
    metrics: Mapping[str, tuple[float, ...]]
    """The metrics of every launch that ended well."""
    outcome: Outcome
    ratio: float | None
    environment: Mapping[str, Any]
    run: str
    started_at: str
    commit: str | None
    reason: str = ""
    fingerprint: str | None = None
    """The fingerprint's version and digest, if the launches agree on it."""
    worse: str = ""
    """The metrics beside speed that its run called regressed. `outcome` is that of its speed alone."""
    answers: Mapping[str, Any] | None = None
    """The sketch of its answers."""
    contended: str = ""
    """How other programs disturbed it, if its numbers are those of a busy machine and the user did not allow that."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The resulting baselines, the accepted candidates, and why the others were refused, by case id."""

    baselines: Baselines
    candidates: list[ProposedCase]
    refused: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """A row of a diff between two baselines. `ratio` is the slowdown that the change allows."""

    case: str
    kind: str
    """`added`, `removed`, `replaced`, `extended` or `edited`."""
    ratio: float | None
    sessions: str
    reason: str


class _RefusedError(Exception):
    """Why a candidate is refused. Raised and caught in this file."""


def accept(
    baselines: Baselines,
    records: Iterable[ProposedCase],
    *,
    reason: str,
    by: str,
    now: str,
    regression_ok: bool = False,
    replace: bool = False,
    expires: str | None = None,
) -> Acceptance:
    """Accept the candidates, one of a case, or refuse each with one sentence."""
    if not reason.strip():
        raise BaselineError("accepting needs a reason: say why these numbers are right")
    if expires is not None:
        try:
            date.fromisoformat(expires)
        except ValueError as error:
            raise BaselineError(f"expires must be a date such as 2026-12-31, got {expires!r}") from error
    policy = Policy()
    accepted: list[ProposedCase] = []
    refused: list[tuple[str, str]] = []
    for candidate in records:
        try:
            sessions = _sessions(baselines, candidate, policy, regression_ok=regression_ok, replace=replace)
        except _RefusedError as refusal:
            refused.append((candidate.case.id, str(refusal)))
            continue
        old = baselines.at(candidate.case)
        joined = old is not None and len(sessions) > 1
        # A run older than the newest session may join. Then the environment of the newest session stays.
        late = old if sessions[-1].run != candidate.run else None
        values = _run_metrics(candidate)
        # Keep the accuracy that was accepted first, or it could drift in small steps.
        accuracy = old.accuracy if old and joined else {name: values[name] for name in accuracies() if name in values}
        baselines = baselines.put(
            CaseBaseline(
                case=candidate.case,
                sessions=sessions,
                accuracy=accuracy,
                reason=redacted(reason.strip()),
                accepted_by=by,
                accepted_at=now,
                expires=expires,
                environment=late.environment if late else rounded(candidate.environment),
                fingerprint=(None if late else candidate.fingerprint) or (old.fingerprint if old and joined else None),
                answers=(old.answers if old and joined else None) or candidate.answers,
            )
        )
        accepted.append(candidate)
    return Acceptance(baselines, accepted, refused)


def disturbed(launches: Sequence[str]) -> str:
    """How other programs disturbed the numbers of these launches, of each of which it is said how; or an empty text.

    Pairs count on a busy machine too, because it slows both arms. The times of one of them are no baseline.
    """
    busy = [launch for launch in launches if launch]
    return busy[0] if 2 * len(busy) >= len(launches) > 0 else ""


def _sessions(
    baselines: Baselines, candidate: ProposedCase, policy: Policy, *, regression_ok: bool, replace: bool
) -> tuple[Session, ...]:
    """The sessions of the case including the candidate."""
    session = _session(baselines, candidate, policy)
    policy = usual_noise([baseline.log_times for baseline in baselines.cases], policy)
    old = baselines.at(candidate.case)
    if old is None:
        return (session,)
    if not replace:
        if session.run in {stored.run for stored in old.sessions}:
            raise _RefusedError(f"run {session.run} is in the baseline already")
        fields = changed_case(old.case, candidate.case) + incomparable(old.environment, candidate.environment)
        if fields:
            raise _RefusedError(f"it is not comparable with the baseline ({'; '.join(fields)}): replace the baseline")
    outcome, ratio = _outcome_now(old, candidate, session, policy)
    moved = _moved(old, candidate, session, policy)
    another = _another_network(old, candidate, session, policy, regression_ok=regression_ok)
    if not regression_ok:
        _refuse_slower(outcome, ratio, policy, sure=replace or len(old.sessions) >= policy.known_sessions)
        if worse := candidate.worse or ", ".join(verdict.metric for verdict in moved if _fails(verdict)):
            raise _RefusedError(f"its {worse} regressed: accept it with --regression-ok")
    if replace or another or outcome in ("regressed", "improved", "platform_shift"):
        return (session,)
    if outcome == "inconclusive":
        _refuse_mixture(old, candidate)
    before = [_without(stored, {verdict.metric for verdict in moved}) for stored in old.sessions]
    sessions = tuple(sorted((*before, session), key=lambda session: session.started_at))[-policy.kept_sessions :]
    if session not in sessions:
        raise _RefusedError(f"it is older than the {policy.kept_sessions} sessions that a baseline keeps")
    return sessions


def _another_network(
    old: CaseBaseline, candidate: ProposedCase, session: Session, policy: Policy, *, regression_ok: bool
) -> bool:
    """Whether accuracy or answers left their bounds. Then the sessions are not of the same network."""
    if changed_case(old.case, candidate.case):
        return False
    answered = answers.difference(old.answers, candidate.answers)
    suspicion = accuracy_change(old.accuracy, session.metrics, policy) or (answered.text if answered.fails else "")
    if suspicion and not regression_ok:
        raise _RefusedError(f"{suspicion}: accept it with --regression-ok")
    return bool(suspicion)


def _refuse_mixture(old: CaseBaseline, candidate: ProposedCase) -> None:
    """Refuse a session of other software, variables or kernels, which may be at another level."""
    if changed := differences(old.environment, candidate.environment, RAN):
        raise _RefusedError(
            f"it is inconclusive and was measured under another environment ({'; '.join(changed[:3])}): "
            "replace the baseline, or measure again"
        )
    before, now = ((fingerprint or "").partition(":") for fingerprint in (old.fingerprint, candidate.fingerprint))
    # Fingerprints of two versions differ by their form alone.
    if before[2] and now[2] and before[0] == now[0] and before != now:
        raise _RefusedError("it is inconclusive and ran other kernels than the baseline: replace the baseline")


def _moved(old: CaseBaseline, candidate: ProposedCase, session: Session, policy: Policy) -> list[Verdict]:
    """The verdicts on metrics beside speed that left the level of the baseline."""
    if changed_case(old.case, candidate.case) or incomparable(old.environment, candidate.environment):
        return []
    gate = [metric.name for metric in METRICS.values() if metric.gate is not None]
    return [
        verdict for verdict in metrics.in_sessions(session.metrics, old, gate, policy.alpha) if verdict.outcome in MOVED
    ]


def _fails(verdict: Verdict) -> bool:
    """Whether a metric regressed that every run judges, whatever its `--perf-gate`."""
    gate = METRICS[verdict.metric].gate
    return verdict.outcome == "regressed" and gate is not None and gate.usual


def _without(session: Session, names: Collection[str]) -> Session:
    """A session without these metrics. They moved, and two levels in one baseline would look like noise."""
    rest = {name: value for name, value in session.metrics.items() if name not in names}
    return dataclasses.replace(session, metrics=rest)


def _refuse_slower(outcome: Outcome, ratio: float | None, policy: Policy, *, sure: bool) -> None:
    """Refuse slower candidates, and those that lean that way unless more sessions are needed to know."""
    above = ratio is not None and ratio > 1 + policy.tolerance
    how_much = "an unknown share slower" if ratio is None else change(ratio)
    if outcome == "regressed" or (outcome == "platform_shift" and above):
        raise _RefusedError(f"it is {how_much} than the baseline: accept it with --regression-ok")
    if outcome == "inconclusive" and above and sure:
        raise _RefusedError(f"it may be {how_much} than the baseline (inconclusive): measure it again")


def _session(baselines: Baselines, candidate: ProposedCase, policy: Policy) -> Session:
    if tool := candidate.environment.get(IMPORTED):
        raise _RefusedError(f"it was imported from {tool}: measure it with ipexperf, and accept that")
    if not has_numbers(candidate.outcome):
        raise _RefusedError(f"it is {candidate.outcome}" + (f": {candidate.reason}" if candidate.reason else ""))
    if candidate.contended:
        why = f"it was measured on a busy machine ({candidate.contended})"
        raise _RefusedError(f"{why}: measure it again, or accept it with --contended-ok")
    if arm := dict(candidate.case.knobs).get(AGAINST):
        raise _RefusedError(f"it was measured in pairs with another arm ({arm}): measure it alone")
    machine_key = candidate.environment.get("machine_key")
    if machine_key != baselines.machine_key:
        raise _RefusedError(f"it was measured on {machine_key}, these baselines are of {baselines.machine_key}")
    launches = tuple(candidate.metrics.get(PRIMARY, ()))
    if len(launches) < policy.minimum_launches:
        raise _RefusedError(f"it has {len(launches)} launches with a {PRIMARY}, {policy.minimum_launches} are needed")
    if not all(0 < value < math.inf for value in launches):
        raise _RefusedError(f"it has a {PRIMARY} of 0 or less")
    return Session(
        run=candidate.run,
        started_at=candidate.started_at,
        commit=candidate.commit or "",
        launches=tuple(rounded(float(value)) for value in launches),
        metrics=_run_metrics(candidate),
    )


def _outcome_now(
    old: CaseBaseline, candidate: ProposedCase, session: Session, policy: Policy
) -> tuple[Outcome, float | None]:
    """The outcome and ratio of the candidate, judged now if its run had no baseline."""
    judged = candidate.outcome not in ("no_baseline", "not_comparable")
    if judged and candidate.outcome != "inconclusive":
        return candidate.outcome, candidate.ratio
    verdict, ratio = _compared(old, candidate, session, policy)
    # A run that ended before it measured again calls even a sure slowdown inconclusive. Refuse it all the same.
    return (candidate.outcome, candidate.ratio) if judged and verdict != "regressed" else (verdict, ratio)


def _compared(
    old: CaseBaseline, candidate: ProposedCase, session: Session, policy: Policy
) -> tuple[Outcome, float | None]:
    if changed_case(old.case, candidate.case) or incomparable(old.environment, candidate.environment):
        return "not_comparable", None
    comparison = compare(list(map(old.case.cost, session.launches)), old.costs, policy)
    return decide(comparison, policy), math.exp(comparison.log_ratio)


def _run_metrics(candidate: ProposedCase) -> dict[str, float]:
    return {
        name: rounded(float(METRICS[name].of_launches(candidate.metrics[name])))
        for name in sorted(METRICS)
        if candidate.metrics.get(name)
    }


def diff(old: Baselines, new: Baselines) -> list[BaselineChange]:
    """The changes that a reviewer should see: added, removed and changed cases, and how much slower each may now be."""
    before, after = ({entry.case.slot: entry for entry in side.cases} for side in (old, new))
    rows = []
    for place in sorted({*before, *after}):
        left, right = before.get(place), after.get(place)
        newest = right or left
        if left == right or newest is None:
            continue
        rows.append(
            BaselineChange(
                case=newest.case.label,
                kind=_kind_of_change(left, right),
                ratio=newest.case.cost(right.step_time / left.step_time) if left and right else None,
                sessions=f"{len(left.sessions) if left else 0} -> {len(right.sessions) if right else 0}",
                reason=right.reason if right else "",
            )
        )
    return rows


def _kind_of_change(old: CaseBaseline | None, new: CaseBaseline | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    before, after = ({session.run for session in side.sessions} for side in (old, new))
    if not before & after:
        return "replaced"
    return "extended" if old.sessions != new.sessions else "edited"
