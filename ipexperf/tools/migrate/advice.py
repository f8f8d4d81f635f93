"""The advice of a migration: sentences, and changes to a script. Pure functions of the findings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.bench import registry
from ipexperf.report import units
from ipexperf.report.lines import shortened
from ipexperf.report.words import Words
from ipexperf.tools.migrate import plan as migration
from ipexperf.tools.migrate.findings import Replacement

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.tools.migrate.findings import Candidate, Finding, Findings, Worth

MORE_MEMORY = 1.1
"""From this factor on, the advice mentions that a candidate takes more memory."""
_WORDS = Words()


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes to a user's script for one row: lines with `-`, `+` or a space before them."""

    title: str
    lines: tuple[str, ...]


def advice(findings: Findings) -> list[str]:
    """A sentence for each row with an answer, for unknown training, for lacking settings, and for replaced modules."""
    lines = [_sentence(finding) for finding in findings.answered]
    lines += [f"training was not compared: {findings.untrained}"] if findings.untrained else []
    lines += [_worth(finding) for finding in findings.worths]
    return [*lines, *dict.fromkeys(line for finding in findings.rows for line in _replaced(finding))]


def _sentence(finding: Finding) -> str:
    subject = _WORDS.explicit(finding.row.case)
    if finding.replacement is Replacement.NONE:
        return f"{subject}: has no equal: {finding.why_not}. Keep it where it is, or do without"
    if finding.best is None:
        return f"{subject}: not known: {shortened(finding.why_not)}"
    return f"{subject}: {_answer(finding, finding.best)}"


def _answer(finding: Finding, best: Candidate) -> str:
    assert best.speed is not None  # noqa: S101 - the best has a ratio
    name, ratio = f"{_WORDS.explicit(best.result.case)},", best.speed.cell
    lacking = f"{finding.row.no_equal}; instead, " if finding.row.no_equal else ""
    text = {
        Replacement.FASTER: f"{lacking}{name} is {ratio} times as fast: move",
        Replacement.EQUAL: f"{lacking}{name} is as fast, {ratio} times: move",
        Replacement.SLOWER: f"{lacking}{name} is the best there is, and {ratio} times as fast: moving costs speed",
        Replacement.UNCLEAR: f"{lacking}{name} is {ratio} times as fast: no difference was seen, and none is excluded",
    }[finding.replacement]
    if not best.direct:
        text += "; the two took turns in different rounds, each with a case of both"
    if (lost := finding.less_accurate) is not None:
        text += f"; its accuracy is {100 * lost:.1f} points lower, {_doubt(best)}"
    if unchecked := [
        result.case for result in (finding.old, best.result) if not result.checked and _trains(result.case)
    ]:
        text += f"; {_untrained(unchecked)}"
    if finding.old.peak and best.result.peak and best.result.peak > MORE_MEMORY * finding.old.peak:
        text += f"; it takes {units.digits(best.result.peak / finding.old.peak)} times the memory"
    return text


def _doubt(best: Candidate) -> str:
    """Explain a lower accuracy. One short training of each proves little, because training amplifies rounding."""
    if _trains(best.result.case):
        return "after one short training each, which rounding alone can move: train yours to the end before you move"
    return "more than rounding explains: do not move unchecked"


def _trains(case: Case) -> bool:
    return registry.modes.get(case.mode).trains


def _untrained(cases: Sequence[Case]) -> str:
    """Name the cases that were timed but not trained to the end, which takes minutes."""
    whose = f"{_WORDS.explicit(cases[0])}, was not" if len(cases) == 1 else "neither was"
    return f"{whose} trained to the end, so their accuracy was not compared: give it more --minutes"


def _worth(worth: Worth) -> str:
    setting = worth.setting
    where = _WORDS.explicit(setting.on)
    text = f"{setting.knob.name} ({setting.knob.help}): only {setting.on.stack} has this setting"
    if worth.speed is None:
        return f"{text}; what it is worth was not measured"
    if not worth.speed.differs:
        return f"{text}; for {where} it makes no difference that was seen ({worth.speed.cell} times as fast with it)"
    effect = "is worth having" if worth.speed.ratio.ratio > 1 else "costs time"
    return f"{text}; for {where} it {effect}: {worth.speed.cell} times as fast with it, which the ratios above contain"


def _replaced(finding: Finding) -> Iterator[str]:
    """The modules that the model has replaced for the old stack alone."""
    if not finding.row.candidates:
        return
    model, old, new = (
        registry.models.get(finding.row.case.model),
        finding.row.case.stack,
        finding.row.candidates[0].stack,
    )
    if old in model.tuned and new not in model.tuned:
        operators = ", ".join(model.operators.get(old, ())) or "its own modules"
        yield (
            f"{model.name} has modules replaced for {old} ({operators}); {new} has none and runs the network as it is. "
            "The ratios above are with them"
        )


def script(case: Case) -> tuple[str, ...]:
    """The lines of a user's script that do what a case does."""
    model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
    lines = mode.script(migration.cell(case), registry.stacks.get(case.stack))
    return (*model.scripts.get(case.stack, ()), *lines) if lines else ()


def patches(findings: Findings) -> list[Patch]:
    """The patch for each row that has a best candidate. Rows with the same change share one."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for finding in findings.rows:
        if finding.best is not None:
            lines = changed(script(finding.row.case), script(finding.best.result.case))
            title = f"{_WORDS.explicit(finding.row.case)} -> {_WORDS.explicit(finding.best.result.case)}"
            shared.setdefault(lines, []).append(title)
    return [Patch("; ".join(titles), lines) for lines, titles in shared.items() if lines]


def changed(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """The lines of both scripts with `-`, `+` or a space before each. Empty if one of them is not written down."""
    if not old or not new:
        return ()
    lines: list[str] = []
    for kind, *where in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        first, last, begin, end = where
        if kind == "equal":
            lines += (f"  {line}" for line in old[first:last])
            continue
        lines += (f"- {line}" for line in old[first:last])
        lines += (f"+ {line}" for line in new[begin:end])
    return tuple(lines)
