"""What the cases of a run are measured in pairs with: another arm, and what the judge says of the pairs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ipexperf.case import AGAINST, ITSELF
from ipexperf.conduct import pairs, turns
from ipexperf.errors import UsageError
from ipexperf.plan import arms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipexperf.case import Case
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Against:
    """An arm, what named it, each case as the arm has it, and how the pairs are judged."""

    words: arms.ArmWords
    source: str
    cases: Mapping[Case, Case]
    policy: PairPolicy

    def check(self, options: Options) -> None:
        """Ends the run before anything is measured where the arm cannot even import what it needs."""
        pairs.check_imports(self.cases.values(), self.words, options, self.source)

    def measure(
        self, case: Case, conductor: Conductor, tolerance: float | None
    ) -> tuple[Measurement, Verdict, PairPolicy]:
        """The case in pairs with the other arm, until the judge is sure. A test may have a tolerance of its own."""
        from ipexperf.judge import against as judge

        policy = self.policy if tolerance is None else dataclasses.replace(self.policy, tolerance=tolerance)
        measurement, found = conductor.against(case, self.cases[case], self.words, policy)
        if found is None:
            return measurement, judge.judge(measurement, None, {}, policy), policy
        facts = {
            AGAINST: self.words.text or ITSELF,
            "stopped": found.stopped,
            "differences": list(found.differences),
            "log_ratios": found.log_ratios,
            "trimmed": found.decision.trimmed,
            "apart": turns.APART if found.apart else "",
        }
        verdict = judge.judge(measurement, found.decision, facts, policy)
        return measurement, _armed(measurement, verdict), policy


def find(options: Options, cases: Sequence[Case]) -> Against | None:
    """The other arm of a run, or None. One that some case cannot have is refused before anything is measured."""
    from ipexperf.judge.policy import PairPolicy

    if options.against is None:
        arms.check_launches(options)
        return None
    arms.check(options)
    source = options.sources.get("against", pairs.FLAG)
    words = arms.parse(options.against, source)
    facts = pairs.facts(words, options, source)
    found = {}
    for case in cases:
        found[case], unmet = words.case(case, facts)
        if reason := arms.why_not(found[case], facts, unmet, words.threads):
            raise UsageError(f"{source}: {found[case].id} cannot run: {reason}")
        if reason := arms.no_turns(case):
            raise UsageError(f"{source}: {case.id} cannot be measured in pairs: {reason}")
    return Against(words, source, found, PairPolicy(**arms.policy(options)).shared(len(cases)))


def _armed(measurement: Measurement, verdict: Verdict) -> Verdict:
    """The verdict on pairs, with what the case runs otherwise than the other arm."""
    from ipexperf.judge import structure

    if measurement.failure or not measurement.counted:
        return verdict
    first = measurement.counted[0]
    return dataclasses.replace(verdict, structure=structure.between(first.against, first.fingerprint))
