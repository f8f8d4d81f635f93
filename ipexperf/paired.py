"""What the cases of a run are measured in pairs with: another arm, and what the judge says of the pairs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ipexperf.case import AGAINST, ITSELF
from ipexperf.conduct import pairs
from ipexperf.conduct.conductor import FLAG
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
    """An arm, each case as the arm has it, and how the pairs are judged."""

    words: arms.ArmWords
    cases: Mapping[Case, Case]
    policy: PairPolicy

    def measure(self, case: Case, conductor: Conductor) -> tuple[Measurement, Verdict]:
        """The case in pairs with the other arm, until the judge is sure."""
        from ipexperf.judge import against as judge

        measurement, found = conductor.against(case, self.cases[case], self.words, self.policy)
        if found is None:
            return measurement, judge.judge(measurement, None, {}, self.policy)
        facts = {
            AGAINST: self.words.text or ITSELF,
            "stopped": found.stopped,
            "differences": list(found.differences),
            "log_ratios": found.log_ratios,
            "trimmed": found.decision.trimmed,
        }
        verdict = judge.judge(measurement, found.decision, facts, self.policy)
        return measurement, _armed(measurement, verdict)


def find(options: Options, cases: Sequence[Case]) -> Against | None:
    """The other arm of a run, or None. One that some case cannot have is refused before anything is measured."""
    from ipexperf.judge.policy import PairPolicy

    if options.against is None:
        arms.check_launches(options)
        return None
    arms.check(options)
    source = options.sources.get("against", FLAG)
    words = arms.parse(options.against, source)
    facts = pairs.facts(words, options)
    found = {}
    for case in cases:
        found[case], unmet = words.case(case, facts)
        if reason := arms.why_not(found[case], facts, unmet):
            raise UsageError(f"{source}: {found[case].id} cannot run: {reason}")
        if reason := arms.no_turns(case):
            raise UsageError(f"{source}: {case.id} cannot be measured in pairs: {reason}")
    return Against(words, found, PairPolicy(**arms.policy(options)).shared(len(cases)))


def _armed(measurement: Measurement, verdict: Verdict) -> Verdict:
    """The verdict on pairs, with what the case runs otherwise than the other arm."""
    from ipexperf.judge import structure

    if measurement.failure or not measurement.counted:
        return verdict
    first = measurement.counted[0]
    return dataclasses.replace(verdict, structure=structure.between(first.against, first.fingerprint))
