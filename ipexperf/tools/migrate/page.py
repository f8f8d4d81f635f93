"""The page of a migration: one content, for the terminal, as markdown, as HTML, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.dashboard import single_page
from ipexperf.report import units
from ipexperf.report.lines import named, shortened
from ipexperf.report.words import Words
from ipexperf.result import METRICS
from ipexperf.tools.migrate import advice
from ipexperf.tools.migrate.findings import CaseResult, Replacement

if TYPE_CHECKING:
    from rich.console import Console

    from ipexperf.report.speeds import SpeedRatio
    from ipexperf.result import Measurement, RoundRecord
    from ipexperf.tools.migrate.advice import Patch
    from ipexperf.tools.migrate.findings import Candidate, Finding, Findings

TEMPLATE = Path(__file__).with_name("page.html")
HEAD = ("what you do", "best of the new stack", "times as fast", "accuracy", "peak memory", "start", "proof")
CANDIDATES = ("what you do", "candidate", "times as fast", "accuracy", "peak memory", "start", "proof", "state")
NOTES = (
    "Times as fast: throughput over that of the old stack, from turns in the same rounds, with the 95 % interval.",
    "The best is the plainest candidate that is not surely slower than the fastest.",
    "A candidate of another round is the best only if it is surely faster than those that took turns with the row.",
    "Peak memory and start are of fresh processes. Start: to import everything, optimise and compile.",
    "An arrow leads from the old stack to the new one. Proof counts the checks that held.",
)
SHOWN = 3
"""Most cells to name that are left out for one reason."""
_WORDS = Words()


@dataclass(frozen=True, slots=True)
class Page:
    """The content."""

    title: str
    lead: tuple[str, ...]
    """Environments, machine, and how it was measured."""
    rows: tuple[tuple[str, ...], ...]
    ran: tuple[str, ...]
    energy: tuple[str, ...]
    """The joules of both, where both are known."""
    advice: tuple[str, ...]
    patches: tuple[Patch, ...]
    candidates: tuple[tuple[str, ...], ...]
    missing: tuple[str, ...]
    """Rows and cases that were not measured, by reason."""

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Its parts that are lists, by their titles."""
        return (
            ("Advice", self.advice),
            ("What ran otherwise", self.ran),
            ("Energy", self.energy),
            ("Not measured", self.missing),
        )


def make(model: str, findings: Findings, lead: Sequence[str]) -> Page:
    """Make the page of a model's findings."""
    measured = [finding for finding in findings.rows if finding.best is not None]
    return Page(
        f"{model}: from {findings.rows[0].row.case.stack} to {_other(findings)}",
        tuple(lead),
        tuple(_row(finding) for finding in findings.answered),
        tuple(f"{_WORDS.explicit(finding.row.case)}: {finding.ran}" for finding in measured if finding.ran),
        tuple(line for finding in measured for line in _energy(finding)),
        tuple(advice.advice(findings)),
        tuple(advice.patches(findings)),
        tuple(_candidate(finding, candidate) for finding in findings.answered for candidate in finding.candidates),
        (
            *(f"{'; '.join(map(_WORDS.explicit, cases))}: {reason}" for reason, cases in findings.never_begun.items()),
            *(f"{named(ids, SHOWN)}: {reason}" for reason, ids in findings.left_out.items()),
        ),
    )


def environments(measurements: Sequence[Measurement], stacks: Sequence[str]) -> list[str]:
    """The software that the cases of each stack ran on, and the machine."""
    lines, machines = [], dict.fromkeys(_machine(measurement) for measurement in measurements if measurement.launches)
    for stack in stacks:
        software = dict.fromkeys(
            _software(measurement.environment) for measurement in measurements if measurement.case.stack == stack
        )
        lines.append(f"{stack}: {'; '.join(filter(None, software)) or 'nothing was measured'}")
    return [*lines, *(f"machine: {machine}" for machine in machines)]


def rounds(records: Sequence[RoundRecord]) -> str:
    """Summarise the rounds: how many, how long they took, and whether other work disturbed them."""
    seconds = sum(record.seconds for record in records)
    text = f"{units.plural(len(records), 'round')} of cases that took turns, in {units.seconds(seconds)}"
    if busy := sum(record.dropped > record.turns for record in records):
        return f"{text}; OTHER WORK WAS ON THE CORES in most of the turns of {busy}: measure again on an idle machine"
    return text


def _software(environment: Mapping[str, Any]) -> str:
    software = environment.get("software", {})
    names = ("torch", "ipex", "torchvision", "python")
    return ", ".join(f"{name} {software[name]}" for name in names if software.get(name))


def _machine(measured: Measurement) -> str:
    hardware = measured.environment.get("hardware", {})
    cores = f"{hardware['cores']} cores" if hardware.get("cores") else ""
    return ", ".join(filter(None, (hardware.get("cpu"), cores, measured.environment.get("machine_key"))))


def _other(findings: Findings) -> str:
    return next(
        (finding.row.candidates[0].stack for finding in findings.rows if finding.row.candidates), "another stack"
    )


def _row(finding: Finding) -> tuple[str, ...]:
    name = _WORDS.explicit(finding.row.case)
    if finding.best is None:
        word = "no equal" if finding.replacement is Replacement.NONE else "not measured"
        return name, f"{word}: {shortened(finding.why_not)}", "-", *_facts(finding.old)
    best = finding.best.result
    pairs = zip(_facts(finding.old), _facts(best), strict=True)
    return name, _WORDS.explicit(best.case), _speed(finding.best.speed), *(f"{old} → {new}" for old, new in pairs)


def _candidate(finding: Finding, candidate: Candidate) -> tuple[str, ...]:
    state = shortened(candidate.result.problem) or ("the best" if candidate == finding.best else "")
    if not state and candidate.speed is None:
        state = f"nothing to compare with: {shortened(finding.old.problem)}"
    if candidate.speed is not None and not candidate.direct:
        through = "in another round: compared through a case of both"
        state = f"{state}, {through}" if state else f"{through}, and not surely faster than the best"
    name = _WORDS.explicit(finding.row.case)
    return name, _WORDS.explicit(candidate.result.case), _speed(candidate.speed), *_facts(candidate.result), state


def _energy(one: Finding) -> list[str]:
    """The joules of an item, if both stacks have them."""
    old, new = one.old.energy, one.best.result.energy if one.best else None
    if old is None or new is None:
        return []
    return [f"{_WORDS.explicit(one.row.case)}: {units.digits(old)} → {units.digits(new)} J an item"]


def _speed(speed: SpeedRatio | None) -> str:
    return "-" if speed is None else speed.cell


def _facts(result: CaseResult) -> tuple[str, str, str, str]:
    """Accuracy, peak memory, start and proof of a case."""
    passed, count = result.proof
    return (
        "-" if result.quality is None else _quality(*result.quality),
        "-" if result.peak is None else units.size(result.peak),
        "-" if result.start is None else units.seconds(result.start),
        f"{passed} of {count}" if count else "-",
    )


def _quality(name: str, value: float) -> str:
    accuracy = METRICS[name].accuracy
    assert accuracy is not None  # noqa: S101 - only such metrics are chosen
    return accuracy.brief.format(value)


def markdown(page: Page) -> str:
    """The page as markdown."""
    from ipexperf.report.markdown import plain

    parts = [f"# {plain(page.title)}", "\n".join(f"- {plain(line)}" for line in page.lead), _table(HEAD, page.rows)]
    for title, lines in page.lists:
        if lines:
            parts += [f"## {title}", "\n".join(f"- {plain(line)}" for line in lines)]
    if page.patches:
        parts.append("## What to change in your script")
        parts += [f"{plain(patch.title)}:\n\n```diff\n{chr(10).join(patch.lines)}\n```" for patch in page.patches]
    parts += ["## Every candidate", _table(CANDIDATES, page.candidates)] if page.candidates else []
    return "\n\n".join([*parts, " ".join(NOTES)]) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from ipexperf.report.markdown import plain

    lines = [head, ["---"] * len(head), *([plain(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html(page: Page) -> str:
    """The page as one file of HTML, which loads nothing."""
    return single_page.render(TEMPLATE, page=page, head=HEAD, candidates=CANDIDATES, notes=NOTES)


def write(page: Page, console: Console) -> None:
    """Print the page on a terminal or into a pipe."""
    from rich.table import Table

    def say(text: str = "") -> None:
        console.print(text, markup=False, highlight=False)

    say(page.title)
    for line in page.lead:
        say(f"  {line}")
    table = Table(*HEAD)
    for row in page.rows:
        table.add_row(*(text.replace("[", r"\[") for text in row))
    console.print(table)
    for title, lines in page.lists:
        if lines:
            say(f"\n{title}")
            for line in lines:
                say(f"- {line}")
    for patch in page.patches:
        say(f"\nWhat to change: {patch.title}")
        for line in patch.lines:
            say(f"  {line}")


def document(page: Page, findings: Findings, run: str | None) -> dict[str, Any]:
    """The page as JSON values."""
    return {
        "title": page.title,
        "lead": list(page.lead),
        "run": run,
        "rows": [_document(one) for one in findings.rows],
        "settings": [
            {"knob": one.setting.knob.name, "case": one.setting.on.id, "with_it": _ratio(one.speed)}
            for one in findings.worths
        ],
        "advice": list(page.advice),
        "patches": [{"title": one.title, "lines": list(one.lines)} for one in page.patches],
        "left_out": {reason: list(ids) for reason, ids in findings.left_out.items()},
    }


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "case": _measured(finding.old),
        "replacement": finding.replacement.value,
        "no_equal": finding.row.no_equal,
        "why_not": finding.why_not,
        "best": finding.best.result.case.id if finding.best else None,
        "ran": finding.ran,
        "candidates": [
            {**_measured(candidate.result), "times_as_fast": _ratio(candidate.speed)}
            for candidate in finding.candidates
        ],
    }


def _measured(result: CaseResult) -> dict[str, Any]:
    quality = dict([result.quality]) if result.quality else {}
    return {
        "id": result.case.id,
        "problem": result.problem,
        "throughput": result.rate,
        "accuracy": quality,
        "peak_memory": result.peak,
        "start": result.start,
        "energy": result.energy,
        "proof": list(result.proof),
    }


def _ratio(speed: SpeedRatio | None) -> dict[str, float | None] | None:
    return None if speed is None else {"ratio": speed.ratio.ratio, "lo": speed.ratio.lo, "hi": speed.ratio.hi}
