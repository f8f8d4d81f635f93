"""The commands that a run prints: how a case is measured again, how it is accepted, and where to look next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import outcomes
from ipexperf.conduct import process
from ipexperf.plan.values import BASELINE
from ipexperf.report import rerun
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.against import Against
    from ipexperf.judge.run import RunVerdict
    from ipexperf.plan.options import Options
    from ipexperf.result import Measurement


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The commands of a run with these options, which made so many launches of a case."""

    options: Options
    launches: int
    places: Sequence[str]
    """The files and folders that pytest was given."""

    def reproduce(self, case: Case, against: Against | None) -> str:
        """The command that measures a case again, beside this arm if it was."""
        # The name of a lock does not name its source; `baseline` names both.
        arm = None if against is None else BASELINE if against.tree else against.words.text
        variables = process.tuned_by_user(os.environ)
        if case.is_call:
            own = against.own.text if against else ""
            return rerun.of_function(
                case.model, arm, own, variables, benchmark=self.options.benchmark, build=self.options.build
            )
        named = rerun.named(case, self.options)
        return rerun.command(case, self.launches, places=self.places, against=arm, variables=variables, **named)

    def accept(self, case: Case, uid: str | None) -> str:
        """The command that accepts a case of a run as a baseline, or an empty text if it is not recorded."""
        if "record" in self.options.without:
            return ""
        run, stores = uid[:18] if uid else "last", "".join(self._stores())
        return f'ipexperf baseline accept {run} --case {shlex.quote(case.id)}{stores} --regression-ok --reason "WHY"'

    def further(
        self, name: str, settled: RunVerdict, measurements: Sequence[Measurement], *, acceptable: bool
    ) -> list[str]:
        """The commands that say more of a recorded run of this name, each with what it shows.

        `acceptable`: whether its cases may become baselines.
        """
        from ipexperf.judge.policy import Policy

        database, baselines = self._stores()
        commands = [f"ipexperf show {name}{database}    every number of this run"]
        found = [settled.verdicts[x.case.uid].outcome for x in measurements]
        numbered = [x for x, outcome in zip(measurements, found, strict=True) if outcomes.has_numbers(outcome)]
        if numbered:
            commands.append(f"ipexperf trend{database}        the same cases through time")
        else:
            commands.append("ipexperf doctor    what on this machine disturbs a measurement")
        loud = set(found) - {"no_baseline"}
        if puzzling := [outcome for outcome in outcomes.OUTCOMES if outcome in loud and not outcomes.is_fine(outcome)]:
            commands.append(f"ipexperf help {puzzling[0]}    what it means, and what to do")
        enough = Policy().minimum_launches
        if acceptable and any(len(x.values(PRIMARY)) >= enough for x in numbered):
            accept = f'ipexperf baseline accept {name}{database}{baselines} --reason "..."'
            commands.append(f"{accept}    judge later runs against this one")
        return commands

    def _stores(self) -> tuple[str, str]:
        """The `--db` and `--baselines` options that `ipexperf` needs to find a run; empty for the default places."""
        database, folder = self.options.db, self.options.baselines
        return (
            "" if database == "ipexperf.db" else f" --db {shlex.quote(database)}",
            "" if folder == Path("baselines") else f" --baselines {shlex.quote(str(folder))}",
        )
