"""Differences between two environments in words, and whether their times may be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ipexperf.case import Case
from ipexperf.sentences import few

SOURCE = "source"
"""The section with the digest of each of the user's files that ran."""
IMPORTED = "imported"
"""The key whose value is the tool that measured, where that was another one."""
FINDINGS = ("variables", "software", "libraries", SOURCE, "hardware", "placement")
"""The sections whose differences explain a verdict. Not `git`, which differs in every run."""
RAN = ("variables", "software", "libraries", SOURCE)
"""The sections that say what ran, as against where. What two measurements made apart must share to have a ratio."""
DESCRIBED = frozenset({"software", "libraries", "hardware"})
"""Sections that are compared in what both sides have: not every process maps every library of the system."""
VOLATILE = frozenset({"frequency_khz", "executable"})
"""Fields that change without meaning: the clock at one moment, the path of an interpreter."""
FIRST = frozenset({"torch", "ipex", "torchvision"})
"""What is named first: other packages mostly follow it."""
PACKAGES = "packages"
"""The part of the software that lists installed packages."""
LONGEST = 60
"""Values longer than this are not shown, only that they changed."""
FEW = 2
"""The most differences that a cell of a table shows."""
CARD = "accelerator"
"""The part of the software that is the card's: its driver."""
PLACEMENT = ("cpu", "cpu_model", "cores", "threads")
"""Hardware whose change forbids comparing times. Not software, because losing AMX must raise an alarm."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any], sections: Sequence[str] = FINDINGS) -> list[str]:
    """The changes from one environment to another, one line each: 'torch: 2.8.0 -> 2.9.0'."""
    lines: list[str] = []
    for section in sections:
        if section == SOURCE:
            lines += _files(old.get(SOURCE), new.get(SOURCE))
            continue
        sides = [_named(side.get(section, {})) for side in (old, new)]
        if section in DESCRIBED:
            # An environment that was recorded before we looked at a fact lacks it. That is no difference.
            shared = {*sides[0]} & {*sides[1]}
            sides = [{name: value for name, value in side.items() if name in shared} for side in sides]
        before, after = (dict(_flat(side)) for side in sides)
        names = sorted({*before, *after} - VOLATILE, key=lambda name: (name not in FIRST, name))
        # A library that reports its own version needs no second line for the installed package.
        all_names = set(names)
        names = [name for name in names if not _has_own_field(name, all_names)]
        lines += _changes(before, after, names)
    return list(dict.fromkeys(lines))


def _files(old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> list[str]:
    """The files that differ. Nothing if one side did not record its files."""
    if old is None or new is None:
        return []
    words = {(True, True): "changed", (True, False): "gone", (False, True): "new"}
    names = (name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
    return [f"{name}: {words[name in old, name in new]}" for name in names]


def _has_own_field(name: str, names: set[str]) -> bool:
    """Whether a package also has a field of its own, such as torch."""
    return name.startswith(f"{PACKAGES}.") and name.removeprefix(f"{PACKAGES}.") in names


def conditions_differ(old: Mapping[str, Any], new: Mapping[str, Any], *, same_case: bool) -> str:
    """Why what was measured apart under these has no ratio, in a few words, or an empty text."""
    lines = differences(old, new, RAN) if same_case else _differing_conditions(old, new)
    return f"other environments: {in_few_words(lines)}" if lines else ""


def _differing_conditions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The differences that two cases do not make by themselves, as by what they import and what their libraries set."""
    same_lock = old.get("lock") is not None and old["lock"] == new.get("lock")  # it has what their runs were given
    files = [side.get(SOURCE) or {} for side in (old, new)]
    first, second = ({SOURCE: {name: side[name] for name in files[0] if name in files[1]}} for side in files)
    software = _of_driver(old, new) if same_lock else differences(old, new, ("variables", "software"))
    return [*software, *differences(first, second, (SOURCE,))]


def _of_driver(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The change of the driver, if both ran on a card: locks that are the same may be of two drivers."""
    cards = [side.get("software", {}).get(CARD) for side in (old, new)]
    before, after = ({"software": {CARD: card}} for card in cards)
    return differences(before, after, ("software",)) if all(cards) else []


def in_few_words(lines: Sequence[str]) -> str:
    """The first differences, and how many more there are."""
    return few(lines, FEW, between="; ")


def incomparable(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The differences that forbid comparing times: machine, processor, threads."""
    before, after = map(_placement, (old, new))
    return _changes(before, after, list(dict.fromkeys([*before, *after])))


def hardware_changes(first: Mapping[str, Any], later: Mapping[str, Any]) -> list[str]:
    """The differences in hardware between two launches, where both know it: without torch a launch knows no threads."""
    before, after = map(_placement, (first, later))
    return _changes(before, after, [name for name in before if None not in (before[name], after.get(name))])


def changed_case(old: Case, new: Case) -> list[str]:
    """The differences in the work of two cases: 'batch: 8 -> 16'."""
    before, after = old.to_json(), new.to_json()
    return [f"{name}: {was} -> {after.get(name)}" for name, was in before.items() if was != after.get(name)]


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [
        f"{name}: {_change(before.get(name), after.get(name))}" for name in names if before.get(name) != after.get(name)
    ]


def _change(before: object, after: object) -> str:
    if (
        isinstance(before, list)
        and isinstance(after, list)
        and all(isinstance(name, str) for name in (*before, *after))
    ):
        lost = [name for name in before if name not in after]
        gained = [name for name in after if name not in before]
        parts = [f"{word} {', '.join(names)}" for word, names in (("lost", lost), ("gained", gained)) if names]
        return "; ".join(parts) or "in another order"
    texts = ["unset" if value is None else str(value) for value in (before, after)]
    return "changed" if any(len(text) > LONGEST or "\n" in text for text in texts) else " -> ".join(texts)


def _placement(environment: Mapping[str, Any]) -> dict[str, Any]:
    hardware = environment.get("hardware", {})
    placement = _flat({name: hardware[name] for name in PLACEMENT if name in hardware})
    return {"machine_key": environment.get("machine_key"), **dict(placement)}


def _named(section: Any) -> Mapping[str, Any]:
    """A section as a mapping. The list of several instances gets numbers as names."""
    return (
        section
        if isinstance(section, Mapping)
        else {f"instance {place}": instance for place, instance in enumerate(section)}
    )


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            # JSON turns tuples into lists.
            yield f"{prefix}{name}", list(value) if isinstance(value, tuple) else value
