"""The page says the same on the terminal, as markdown, as HTML and as JSON."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from migrate_records import findings_of, measured, plan, rounds
from rich.console import Console

from ipexperf.tools.migrate import page
from ipexperf.tools.migrate.findings import Findings


def made(findings: Findings | None = None) -> page.Page:
    return page.make("tiny", findings or findings_of(plan()), ["old: torch 2.8.0", "new: torch <2.14>"])


def printed(of: page.Page) -> str:
    console = Console(file=io.StringIO(), width=200)
    page.write(of, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_row_has_the_best_and_both_sides() -> None:
    """An arrow leads from the old stack to the new one."""
    [spin, *_] = made().rows
    assert spin[:2] == ("fp32 on old, spin", "fp32 on new, whirl")
    assert re.fullmatch(r"2\.0\d? \(1\.9\d to 2\.0\d\)|2\.00 \(1\.9\d to 2\.0\d\)", spin[2])
    assert spin[3:] == (
        "acc 98.0% → acc 98.0%",
        "1.00 MiB → 1.00 MiB",
        "1.50 s → 1.50 s",
        "2 of 2 → 2 of 2",
    )


def test_a_row_that_has_no_equal_or_was_not_measured_says_why() -> None:
    plain = plan()
    case = plain.rows[0].case
    rows = {row[0]: row[1] for row in made(findings_of(plain, changed={case: None})).rows}
    assert rows["fp32 on old, spin"] == "not measured: old: its round was not made"
    assert rows["fp32 on old, teach, with update=own"] == "no equal: own comes with old: new has none"


def test_rows_that_were_never_begun_are_one_line() -> None:
    """Otherwise a budget that ends after the first contest would hide it among twenty rows without a number."""
    of = plan(mode=("spin", "teach"))
    trainings = {case: None for case in of.cases if case.mode == "teach"}
    content = made(findings_of(of, changed=trainings))
    assert [row[0] for row in content.rows] == ["fp32 on old, spin", "fp32 on old, teach, with update=own"]
    assert "fp32 on old, teach; fp32 on old, teach, with update=quick: old: its round was not made" in content.missing
    assert {line[0] for line in content.candidates} == {"fp32 on old, spin"}


def test_the_terminal_and_markdown_have_the_same_content() -> None:
    whole = made()
    states = [line[-1] for line in whole.candidates if line[0] == "fp32 on old, spin"]
    assert states == ["", "the best", ""]
    shown, text = printed(whole), page.markdown(whole)
    for line in (whole.title, *whole.advice):
        assert line in re.sub(r"\\(.)", r"\1", text)
        assert line.replace("\n", " ") in re.sub(r"\s+", " ", shown)
    for patch in whole.patches:
        assert "\n".join(patch.lines) in text
        assert all(line in shown for line in patch.lines)
    assert text.count("```diff") == len(whole.patches) > 0


def test_the_html_loads_nothing_and_escapes_what_it_shows() -> None:
    text = page.html(made())
    assert "new: torch &lt;2.14&gt;" in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert "url(" not in text

    opened = re.findall(r"<(\w+)[ >]", text)
    closed = re.findall(r"</(\w+)>", text)
    assert sorted(set(opened) - {"meta", "link"}) == sorted(set(closed))
    assert all(opened.count(name) == closed.count(name) for name in closed)


def test_the_software_of_each_stack_is_listed_once() -> None:
    cases = plan().cases[:3]
    lines = page.environments([measured(case, 0.01) for case in cases], ["old", "new"])
    assert lines == ["old: torch 2.8.0", "new: torch 2.8.0", "machine: a fake, 2 cores, fake-2c"]
    never = [replace(measured(case, 0.01), launches=(), environment={}) for case in cases]
    assert page.environments(never, ["old"]) == ["old: nothing was measured"]


def test_a_warning_says_if_other_work_disturbed_the_rounds() -> None:
    """Programs suffer from it unequally, and so do ratios."""
    calm = rounds(dict.fromkeys(plan().contests[0].cases, 0.01), "a contest")
    assert page.rounds(calm) == "3 rounds of cases that took turns, in 27.0 s"
    busy = [replace(one, turns=2, dropped=9) for one in calm[:2]]
    assert "in most of the turns of 2: measure again on an idle machine" in page.rounds([*busy, calm[2]])


def test_the_energy_of_an_item_is_shown_if_both_stacks_have_it() -> None:
    """On the terminal, as markdown, as HTML and as JSON. Items are those of a step, here two."""
    plain = plan(mode=("spin",))
    [old] = [one.case for one in plain.rows]
    [new] = plain.rows[0].candidates
    known = {
        old: measured(old, 0.01, energy=0.5, throughput=200.0),
        new: measured(new, 0.005, energy=0.375, throughput=400.0),
    }
    findings = findings_of(plain, changed=known)
    whole, line = made(findings), "fp32 on old, spin: 0.250 → 0.188 J an item"
    assert whole.energy == (line,)
    assert all(
        line in re.sub(r"\\(.)", r"\1", shown) for shown in (printed(whole), page.markdown(whole), page.html(whole))
    )
    [row] = page.document(whole, findings, None)["rows"]
    assert (row["case"]["energy"], row["candidates"][0]["energy"]) == (0.25, 0.1875)
    alone = made(findings_of(plain, changed={old: known[old]}))
    assert alone.energy == ()
    assert "Energy" not in page.markdown(alone)
