"""Records that queries return."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, TypedDict, cast

from ipexperf.case import AXES, Case
from ipexperf.history.values import evidence_document
from ipexperf.judge.bisection import BisectionRecord
from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import NEVER_BEGAN, has_numbers
from ipexperf.proof import structure
from ipexperf.proof.structure import Fingerprint
from ipexperf.ratio import flat
from ipexperf.result import PRIMARY, Check, Launch, LaunchOutcome, Measurement, RoundRecord, accuracies
from ipexperf.verdict import Structure, Verdict

Wanted: TypeAlias = "str | Sequence[str] | None"
"""One name, several names, or None for any."""
CASE = (*AXES, "batch")
"""The fields of a record that say which case it is about, for readers."""


def of_case(case: Case) -> dict[str, Any]:
    """The fields of a record that say which case it is about. What a function lacks is None."""
    return {"case_id": case.id, "case_uid": case.uid, **{name: getattr(case, name, None) for name in CASE}}


class Filters(TypedDict, total=False):
    """Filters of a query: axes, tests of functions, machines, branches, and a range of dates, moments or runs."""

    model: Wanted
    device: Wanted
    dtype: Wanted
    mode: Wanted
    stack: Wanted
    test: Wanted
    machine: Wanted
    branch: Wanted
    since: str | None
    until: str | None


class TrendFilters(Filters, total=False):
    """Filters of a trend. `limit` keeps the newest runs of a series."""

    limit: int | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One invocation of the suite. `outcomes` counts its cases by the outcome of their newest verdict, if asked for."""

    uid: str
    started_at: str
    finished_at: str | None
    status: str
    branch: str | None
    commit: str | None
    torch_version: str | None
    ipex_version: str | None
    machine_key: str
    outcomes: Mapping[str, int]
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, row: Mapping[Any, Any], outcomes: Mapping[str, int]) -> RunRecord:
        """The record of a row of `statements.runs`."""
        stored = {field.name: row[field.name] for field in fields(cls) if field.name != "outcomes"}
        return cls(**stored, outcomes=outcomes)

    @property
    def settled(self) -> Mapping[str, Any]:
        """The verdict on the run as a whole, which no single case may show. Empty if there is none."""
        whole: Mapping[str, Any] = self.meta.get("settled", {})
        return whole


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric over the launches of one case: `lo` and `hi` are the smallest and the largest launch.

    The numbers are None where the measurement failed; `mad` is None for fewer than two launches.
    """

    metric: str
    unit: str
    higher_is_better: bool | None
    n: int
    median: float | None
    mean: float | None
    mad: float | None
    lo: float | None
    hi: float | None
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One recorded launch. A failed one has its reason and the last lines of its log."""

    index: int
    outcome: str
    reason: str
    document: Mapping[str, Any]
    log: str

    @property
    def launch(self) -> Launch:
        """The launch as it was recorded, without its samples."""
        stored = {field.name: self.document[field.name] for field in fields(Launch) if field.name in self.document}
        stored |= {name: tuple(Check(**check) for check in stored.get(name, ())) for name in ("proof", "accuracy")}
        stored["metrics"] = {name: value for name, value in stored.get("metrics", {}).items() if value is not None}
        return Launch(self.index, cast("LaunchOutcome", self.outcome), self.reason, log=self.log, **stored)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One case of one run, from which a baseline can be accepted. `values` has one number per good launch.

    `outcome` is that of the newest verdict; `started_at` is when the case began. `tested` is the outcome that decided
    its test, which stays the same if the run as a whole is judged `platform_shift`.
    """

    run_uid: str
    case: Case
    outcome: str
    verdict: Verdict | None
    values: Mapping[str, tuple[float, ...]]
    metrics: Mapping[str, Summary]
    launches: tuple[LaunchRecord, ...]
    environment: Mapping[str, Any]
    machine_key: str
    started_at: str
    commit: str | None
    tested: str | None = None

    @property
    def counted(self) -> tuple[LaunchRecord, ...]:
        """The launches that count: not those that were contended and measured again."""
        return tuple(launch for launch in self.launches if launch.outcome != "contended")

    @property
    def measurement(self) -> Measurement:
        """The case as it was measured, without its samples."""
        launches = tuple(record.launch for record in self.launches)
        cut = "" if launches else self.metrics[PRIMARY].reason
        return Measurement(self.case, launches, self.environment, self.started_at, self.started_at, cut)

    @property
    def common_fingerprint(self) -> tuple[Structure, Fingerprint | None]:
        """Whether the launches that count have the same fingerprint, and that of the first of them."""
        return structure.common([launch.document.get("fingerprint") for launch in self.counted])

    @property
    def fingerprint(self) -> Fingerprint | None:
        return self.common_fingerprint[1]

    def judged(self, metric: str) -> Verdict | None:
        """The verdict on one metric, if it was judged."""
        judged = (self.verdict, *self.verdict.others) if self.verdict else ()
        return next((verdict for verdict in judged if verdict.metric == metric), None)

    @property
    def medians(self) -> dict[str, float | None]:
        """The median of each metric over the launches."""
        return {name: summary.median for name, summary in self.metrics.items()}

    @property
    def accuracy(self) -> tuple[str, float] | None:
        """The name and the median of the metric that describes the accuracy best."""
        medians = ((name, self.medians.get(name)) for name in accuracies())
        return next(((name, value) for name, value in medians if value is not None), None)

    def unsound(self, metric: str) -> str:
        """Return why these numbers must not be compared, or an empty text."""
        if not has_numbers(self.outcome):
            return f"is {self.outcome}"
        values = self.values.get(metric, ())
        if not values:
            return f"has no {metric}"
        if not all(0 < value < math.inf for value in values):
            return f"has a {metric} of 0 or less"
        return ""

    @property
    def test_failed(self) -> bool:
        """Whether the case's own test failed, even if the run as a whole says that the platform moved."""
        if self.verdict is None:
            return self.outcome == "failed"
        return self.tested == "regressed" or self.verdict.fails

    @property
    def untold(self) -> bool:
        """Whether a case that did not fail could not be told: it never began, is in doubt, or the machine was busy."""
        return self.outcome in (NEVER_BEGAN, "inconclusive", "invalid")

    @property
    def lost(self) -> tuple[str, ...]:
        """The optimisations whose loss failed the case's test. They need no clock: a busy machine changes nothing."""
        compared = self.verdict.structure if self.verdict else None
        return compared.losses if compared is not None and compared.fails else ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """One session of one case that became a baseline.

    `current_runs` names the runs whose sessions are the baseline now. All other rows are superseded, also those of
    `former`: the case as it was accepted before, if it has a new version and so a new series.
    """

    run_uid: str
    case: Case
    former: Case
    machine_key: str
    current_runs: frozenset[str]
    at: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its environment, every case of it, and the rounds in which the cases were measured."""

    run: RunRecord
    environment: Mapping[str, Any]
    cases: tuple[Recorded, ...]
    rounds: tuple[RoundRecord, ...] = ()
    bisections: tuple[BisectionRecord, ...] = ()
    """The searches for culprits of its cases on its machine, whenever they were made."""
    format: Literal[1] = 1
    """The number of the schema of its document in docs/schemas."""

    def to_json(self) -> dict[str, Any]:
        """All of it as a document, in which the evidence of a verdict is called `baseline`, as in the database."""
        document = asdict(self)
        for case, recorded in zip(document["cases"], self.cases, strict=True):
            if recorded.verdict is not None:
                replaced = {"evidence": evidence_document(recorded.verdict.evidence)}
                fields = {**_verdict_document(recorded.verdict), **replaced}.items()
                case["verdict"] = {"baseline" if name == "evidence" else name: value for name, value in fields}
        document["bisections"] = [search.to_json() for search in self.bisections]
        return document

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per case and metric. Verdicts are in the rows of the metrics that were judged."""
        return [_row(recorded, summary) for recorded in self.cases for summary in recorded.metrics.values()]


SHOWN = (
    *("run_uid", "case_id", "case_uid", *CASE, *(field.name for field in fields(Summary))),
    *("verdict", "ratio", "launches", "machine_key"),
)
"""The columns of these rows."""


def _row(recorded: Recorded, summary: Summary) -> dict[str, Any]:
    verdict = recorded.judged(summary.metric)
    return {
        "run_uid": recorded.run_uid,
        **of_case(recorded.case),
        **asdict(summary),
        "verdict": verdict.outcome if verdict else None,
        "ratio": verdict.times if verdict else None,
        "launches": len(recorded.counted),
        "machine_key": recorded.machine_key,
    }


LEFT_OUT = ("level", "constants", "bounds")
"""The fields of a verdict that its document has not."""
OF_OTHERS = ("metric", "outcome", "reason", "ratio", "lo", "hi", "p_value", "mde", "level", "policy")
"""The fields of a document for the verdict on another metric than speed."""


def _verdict_document(verdict: Verdict) -> dict[str, Any]:
    """The document of a verdict on a case, with those on its other metrics."""
    document = {name: value for name, value in flat(verdict).items() if name not in LEFT_OUT}
    others = [{name: other[name] for name in OF_OTHERS} for other in map(flat, verdict.others)]
    return {**document, "sentence": sentence(verdict), "others": others}
