"""A verdict in one sentence: what decided, how sure that is, and the first cause."""

from dataclasses import replace

import pytest

from ipexperf.judge.metrics import combined
from ipexperf.judge.sentence import UNEXPLAINED, details, headline, of_time, sentence
from ipexperf.ratio import Ratio
from ipexperf.verdict import BaselineEvidence, Level, PairsEvidence, Structure, Verdict

END = "more than 9.2 % slower is excluded; the budget was spent; both arms are the same (A/A)"
LEVELS = "10.0 -> 10.1 ms"
EDIT = "work.py:16 'out = dict(out)' added"
PAIRS = PairsEvidence("git:main", "the budget was spent", (EDIT, "torch: 2.8 -> 2.9"), (1.5,) * 4)
ITSELF = replace(PAIRS, differences=())
SESSIONS = BaselineEvidence(sessions=3, differences=("torch: 2.8 -> 2.9",))
SLOWER = Verdict("regressed", ratio=Ratio(4.44, 4, 5), bounds=(3.1, 6.3), level=Level(4.27e-3, 0.019), evidence=PAIRS)
OK = replace(SLOWER, outcome="ok", ratio=Ratio(1.01, 0.99, 1.02), bounds=(0.995, 1.012), level=Level(0.01, 0.0101))
DOUBT = replace(OK, outcome="inconclusive", bounds=(0.96, 1.092))
MEMORY = Verdict("regressed", metric="step_memory", ratio=Ratio(3.0), bounds=(2.5, 3.6), level=Level(2**20, 3 * 2**20))
MEAN = Verdict("regressed", "every 10th step takes 30.0 ms longer", "mean_step", Ratio(1.1), bounds=(1.08, 1.12))


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (SLOWER, f"4.4 times slower: 4.27 -> 19.0 ms (3.1 to 6.3 times; 4 pairs); {EDIT} and 1 more difference"),
        (
            replace(OK, outcome="regressed", ratio=Ratio(1.06), bounds=(1.041, 1.08), evidence=SESSIONS),
            f"6.0 % slower: {LEVELS} (+4.1 to +8.0 %; 3 sessions); torch: 2.8 -> 2.9",
        ),
        (
            replace(SLOWER, outcome="improved", ratio=Ratio(0.25), bounds=(0.2, 0.4), evidence=SESSIONS, level=None),
            "4.0 times faster (2.5 to 5.0 times; 3 sessions); torch: 2.8 -> 2.9",
        ),
        (OK, f"at most 1.2 % slower: {LEVELS} (-0.5 to +1.2 %; 4 pairs)"),
        (replace(OK, bounds=(0.9, 0.98)), f"not slower: {LEVELS} (-10.0 to -2.0 %; 4 pairs)"),
        (
            replace(DOUBT, evidence=ITSELF),
            f"could not tell: 4.0 % faster to 9.2 % slower ({LEVELS}; 4 pairs); {END}",
        ),
        (Verdict("failed", "crashed: signal 11", evidence=ITSELF), "crashed: signal 11"),
        (
            Verdict("inconclusive", "one pair has no spread", ratio=Ratio(1.1)),
            "could not tell: 10.0 % slower; one pair has no spread",
        ),
        (
            replace(SLOWER, evidence=ITSELF, level=None, structure=Structure("same", work="+91 % parameters")),
            f"4.4 times slower (3.1 to 6.3 times; 4 pairs); +91 % parameters; {UNEXPLAINED}",
        ),
    ],
)
def test_what_a_verdict_says(verdict: Verdict, told: str) -> None:
    assert sentence(verdict) == told
    assert details(verdict) == []


def test_the_metric_that_failed_is_the_headline() -> None:
    """No time stands beside it that was not judged worse, and what says the same as the headline is left out."""
    grown = combined(OK, [MEMORY])
    assert headline(grown) == "3.0 times more step_memory: 1.00 -> 3.00 MiB (2.5 to 3.6 times; 4 pairs)"
    assert (details(grown), of_time(grown)) == ([], "+1.0 % (-0.5 to +1.2)")
    stalled = combined(OK, [MEAN])
    assert headline(stalled) == f"10.0 % slower mean_step (+8.0 to +12.0 %; 4 pairs); {MEAN.reason}"
    both = combined(SLOWER, [MEAN, MEMORY])
    assert headline(both).startswith("4.4 times slower: ")
    assert details(both) == ["3.0 times more step_memory: 1.00 -> 3.00 MiB (2.5 to 3.6 times; 4 pairs)"]
    faster = replace(SLOWER, outcome="improved", ratio=Ratio(0.9), bounds=(0.88, 0.92), level=None)
    assert details(combined(faster, [MEMORY])) == ["10.0 % faster (-12.0 to -8.0 %; 4 pairs)"]
    assert headline(combined(SLOWER, [MEMORY], gated=False)) == headline(grown)
