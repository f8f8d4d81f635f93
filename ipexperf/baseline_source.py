"""The baselines of a run: accepted files, or the last runs with accepted files as their anchor."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ipexperf.case import AXES
from ipexperf.errors import UsageError
from ipexperf.plan import start
from ipexperf.plan.matrix import ALL
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ipexperf.case import Case
    from ipexperf.history.store import History
    from ipexperf.history.windows import Windows
    from ipexperf.judge.baseline import Baselines, CaseBaseline
    from ipexperf.judge.policy import Policy
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement, Verdict

    Question = Callable[[History], CaseBaseline | None]
    Ask = Callable[[Question, None], CaseBaseline | None]

HISTORY = "history"


def check(options: Options) -> None:
    """Refuse contradictory options before anything is measured."""
    rolling = options.baseline_from == HISTORY
    source = options.sources.get("window", "")
    if source.startswith("--") and not rolling:
        raise UsageError(f"{source}: only --perf-baseline-from history has a window")
    if rolling and options.no_record:
        source = options.sources.get("no_record", "--perf-no-record")
        raise UsageError(f"{source}: --perf-baseline-from history judges against what was recorded: leave it out")


class RunBaselines:
    """The baselines of a run's cases, and the alarm rate that the cases share."""

    def __init__(self, options: Options, cases: Sequence[Case], ask: Ask) -> None:
        """`ask` puts a question about earlier runs to the history. The answer is None if its server went away."""
        self._options = options
        self._cases = cases
        self._ask = ask
        self._files: dict[str, Baselines] = {}
        self._policies: dict[tuple[Any, ...], Policy] = {}
        self._windows: dict[tuple[Any, ...], CaseBaseline | None] = {}

    @property
    def rolling(self) -> bool:
        """Whether the last runs are the baselines, not accepted files."""
        return self._options.baseline_from == HISTORY

    def policy(self, measurement: Measurement) -> Policy:
        """The policy of a case: its share of the run's alarm rate, and the usual noise on its machine.

        Both are determined before the first verdict on the machine, so that every verdict is final.
        """
        from ipexperf.judge.spread import usual_noise

        shared = self._shared(measurement.environment["machine_key"])
        if measurement.failure or measurement.never_began:
            return shared  # has nothing to compare
        key = self._comparable_key(measurement)
        if key not in self._policies:
            self._policies[key] = usual_noise(list(self._series(measurement)), shared)
        return self._policies[key]

    @functools.cache  # noqa: B019 - one run has one of these, and they end together
    def _shared(self, machine_key: str) -> Policy:
        """The policy with only the share of the alarm rate."""
        from ipexperf.judge.policy import Policy

        accepted = self._file(machine_key).of_same_work()
        # Count each case once, also if it may be measured under the name of its fresh variant.
        judged = sum(case in accepted or start.plain(case) in accepted for case in self._cases)
        # A case judged against the last runs and the anchor has two chances of a false alarm.
        return Policy().shared(2 * len(self._cases) if self.rolling else judged)

    def _series(self, measurement: Measurement) -> Iterator[list[list[float]]]:
        """The launches of the sessions of each baseline on this machine in this unit, on the log scale."""
        from ipexperf.judge import yardstick

        environment = measurement.environment
        baselines: Iterable[CaseBaseline | None] = self._file(environment["machine_key"]).cases
        if self.rolling:
            names = dict.fromkeys(name for case in self._cases for name in (case, start.plain(case)))
            baselines = (self._window(name, measurement) for name in names)
        unit = yardstick.content(environment)
        for baseline in baselines:
            if baseline is not None and yardstick.content(baseline.environment) == unit:
                yield baseline.log_times

    def baseline(self, measurement: Measurement) -> CaseBaseline | None:
        """The baseline that a case is judged against, or None."""
        if not self.rolling:
            return self.accepted(measurement)
        return self._window(measurement.case, measurement)

    def _window(self, case: Case, measurement: Measurement) -> CaseBaseline | None:
        """The baseline made of the last runs of a case on this machine. Cached for the run."""
        key = (case.uid, *self._comparable_key(measurement))
        if key not in self._windows:
            environment, before = measurement.environment, measurement.started_at
            self._windows[key] = self._ask(lambda history: self._last(history).of(case, environment, before), None)
        return self._windows[key]

    def _comparable_key(self, measurement: Measurement) -> tuple[Any, ...]:
        """The key of comparable times: machine, unit, and for the last runs the threads."""
        from ipexperf.judge import yardstick

        environment = measurement.environment
        threads = environment["hardware"].get("threads") if self.rolling else None
        return environment["machine_key"], yardstick.content(environment), threads

    @functools.cache  # noqa: B019 - as above
    def _last(self, history: History) -> Windows:
        from ipexperf.history.windows import Windows

        return Windows(history, self._options.window)

    def accepted(self, measurement: Measurement) -> CaseBaseline | None:
        """The accepted baseline of this case on its machine."""
        return self._file(measurement.environment["machine_key"]).find(measurement.case)

    def missing(self, machine_keys: Iterable[str]) -> tuple[Case, ...]:
        """The accepted cases of these machines that the options of the run choose and its plan does not have.

        A case that was renamed or removed is one, and so is one of another preset.
        """
        if self.rolling:
            return ()
        planned = {name.id for case in self._cases for name in (case, start.plain(case))}
        accepted = [entry.case for key in machine_keys for entry in self._file(key).cases]
        return tuple(case for case in accepted if case.id not in planned and self._chosen(case))

    def _chosen(self, case: Case) -> bool:
        """Whether a case has one of the values that the options name, on each axis for which they name any."""
        wishes = {axis: getattr(self._options, axis) for axis in AXES}
        return all(not wish or ALL in wish or getattr(case, axis) in wish for axis, wish in wishes.items())

    def read_files(self) -> None:
        """Read all baseline files now, so that a damaged file ends the run before anything is measured.

        The run uses these contents even if the files change meanwhile.
        """
        from ipexperf.judge import baseline

        for machine_key in baseline.machine_keys(self._options.baselines):
            self._file(machine_key)

    def _file(self, machine_key: str) -> Baselines:
        """The baselines of a machine. Cached, because a run asks for each of its cases."""
        from ipexperf.judge import baseline

        if machine_key not in self._files:
            self._files[machine_key] = baseline.read(self._options.baselines, machine_key)
        return self._files[machine_key]

    def judge(self, measurement: Measurement, gate: Sequence[str]) -> Verdict:
        """Judge a case by these metrics, also against the anchor if it is judged against the last runs."""
        from ipexperf.judge import anchor, screen

        baseline = self.baseline(measurement)
        verdict = self._judged(measurement, baseline, gate)
        if measurement.never_began:
            return verdict
        if not self.rolling:
            known = baseline or self._of_this_host(measurement)
            fails = self._options.moved == "fail"
            return screen.on_changed_host(verdict, measurement, known, self.policy(measurement), fails=fails)
        accepted = self.accepted(measurement)
        return anchor.beside(verdict, self._judged(measurement, accepted, gate) if accepted else None)

    def _of_this_host(self, measurement: Measurement) -> CaseBaseline | None:
        """The newest baseline of the case that this host has under another `machine_key`."""
        environment, host = measurement.environment, measurement.environment.get("hardware", {}).get("host")
        others = [
            self._file(key).find(measurement.case) for key in list(self._files) if key != environment["machine_key"]
        ]
        here = [x for x in others if x and host and x.environment.get("hardware", {}).get("host") == host]
        return max(here, key=lambda x: x.accepted_at, default=None)

    def _judged(self, measurement: Measurement, baseline: CaseBaseline | None, gate: Sequence[str]) -> Verdict:
        from ipexperf.judge import metrics, screen, stalls

        policy = self.policy(measurement)
        verdict = screen.judge(measurement, baseline, policy)
        if baseline is None or measurement.never_began:
            return verdict
        others = metrics.in_sessions(measurement.of_run, baseline, gate, policy.alpha)
        others = stalls.explained(others, measurement.counted)
        return metrics.combined(verdict, others, gated=PRIMARY in gate)
