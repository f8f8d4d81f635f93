"""The baselines of a run, and the verdicts against them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ipexperf.case import NetworkCase, ProgramCase, networks
from ipexperf.plan.matrix import ALL
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ipexperf.case import Case
    from ipexperf.judge.baseline import Baselines, CaseBaseline
    from ipexperf.judge.policy import Policy
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement
    from ipexperf.verdict import Verdict


class RunBaselines:
    """The baselines of a run's cases, and the alarm rate that the cases share."""

    def __init__(self, options: Options, cases: Sequence[Case]) -> None:
        self._options = options
        self.cases = list(cases)
        """Those of the plan, and the numbers of programs that have run."""
        self._files: dict[str, Baselines] = {}

    def policy(self, measurement: Measurement) -> Policy:
        """The policy of a case: its share of the alarm rate of the run, or its program, and the usual noise here."""
        case = measurement.case
        program = case.whole if isinstance(case, ProgramCase) else None
        return self._policy(measurement.environment["machine_key"], program)

    @functools.cache  # noqa: B019 - one run has one of these, and they end together
    def _policy(self, machine_key: str, program: ProgramCase | None) -> Policy:
        """The policy of a machine, determined before the first verdict on it, so that every verdict is final."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.spread import usual_noise

        baselines = self._file(machine_key)
        accepted = {baseline.case for baseline in baselines.cases}
        alone = [case for case in self.cases if case in accepted and not isinstance(case, ProgramCase)]
        judged = self.numbers(machine_key, program) if program else alone  # only those can raise an alarm
        return usual_noise([baseline.log_times for baseline in baselines.cases], Policy().shared(len(judged)))

    def accepted(self, measurement: Measurement) -> CaseBaseline | None:
        """The accepted baseline of this case on its machine."""
        return self._file(measurement.environment["machine_key"]).find(measurement.case)

    def numbers(self, machine_key: str, program: ProgramCase) -> set[str]:
        """The accepted numbers of a program on a machine."""
        cases = [entry.case for entry in self._file(machine_key).cases]
        return {case.number for case in cases if isinstance(case, ProgramCase) and case.whole == program}

    def missing(self, machine_keys: Iterable[str], has_place: Callable[[str], bool]) -> tuple[Case, ...]:
        """The accepted cases of these machines that the options of the run choose and its plan does not have.

        A case that was renamed or removed is one, and so is one of another preset. `has_place` says whether a test that
        is not there would have been in this run.
        """
        planned = {case.id for case in self.cases}
        any_network = bool(networks(self.cases))  # a run may be of functions alone
        programs = {case.whole for case in self.cases if isinstance(case, ProgramCase)}
        accepted = [entry.case for key in machine_keys for entry in self._file(key).cases]

        def expected(case: Case) -> bool:
            if isinstance(case, ProgramCase):
                return case.whole in programs
            return any_network if isinstance(case, NetworkCase) else has_place(case.name)

        lost = [case for case in accepted if case.id not in planned and self._chosen(case)]
        return tuple(filter(expected, lost))

    def _chosen(self, case: Case) -> bool:
        """Whether a case has one of the values that the options name, on each axis for which they name any."""
        wishes = ((self._options.axis(axis), value) for axis, value in case.axes.items())
        return all(not wish or ALL in wish or value in wish for wish, value in wishes)

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
        """Judge a case by these metrics."""
        from ipexperf.judge import screen

        baseline = self.accepted(measurement)
        verdict = self._judged(measurement, baseline, gate)
        if measurement.never_began:
            return verdict
        known = baseline or self._of_this_host(measurement)
        return screen.on_changed_host(verdict, measurement, known, self.policy(measurement))

    def _of_this_host(self, measurement: Measurement) -> CaseBaseline | None:
        """The newest baseline of the case that this host, with this of its cards, has under another `machine_key`."""
        environment = measurement.environment
        place = _place(environment)
        others = [
            self._file(key).find(measurement.case) for key in list(self._files) if key != environment["machine_key"]
        ]
        here = [other for other in others if other and place[0] and _place(other.environment) == place]
        return max(here, key=lambda baseline: baseline.accepted_at, default=None)

    def _judged(self, measurement: Measurement, baseline: CaseBaseline | None, gate: Sequence[str]) -> Verdict:
        from ipexperf.judge import metrics, screen, stalls

        policy = self.policy(measurement)
        verdict = screen.judge(measurement, baseline, policy)
        if baseline is None or measurement.never_began:
            return verdict
        others = metrics.in_sessions(measurement.of_run, baseline, gate, policy.alpha)
        others = stalls.explained(others, measurement.counted)
        return metrics.combined(verdict, others, gated=PRIMARY in gate)


def _place(environment: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The host, and by which number its card was chosen: two cards of one host may be of two products."""
    hardware = environment.get("hardware", {})
    return hardware.get("host"), (hardware.get("accelerator") or {}).get("pinned")
