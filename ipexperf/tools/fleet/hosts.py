"""The hosts of a fleet, those that `--perf-hosts` chooses, and which of several equal hosts measures a group."""

from __future__ import annotations

import ast
import difflib
import hashlib
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipexperf.errors import UsageError

COMPARISON = re.compile(r"([^\s()<>=!]+)\s*(>=|<=|!=|=|>|<)\s*([^\s()<>=!]+)")
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
JOINED_BY = ("and", "or", "not")
"""What stands between comparisons, beside parentheses."""
LOGIC = (ast.Name, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not)


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the fleet, as it described itself when it joined."""

    name: str
    node: str
    """Ray's id of it."""
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its devices, processor, memory and versions, and the labels of its owner. `device` may have several words."""

    def words(self, label: str) -> tuple[str, ...]:
        """The values of a label."""
        if label == "name":
            return (self.name,)
        value = self.labels.get(label)
        if value is None:
            return ()
        return tuple(value.split("_")) if label == "device" else (value,)


def chosen(hosts: Sequence[Host], text: str | None) -> list[Host]:
    """Return the hosts that match a text such as `device=xpu and not room=b`, or all without a text.

    Raise UsageError if the text is wrong or no host matches.
    """
    if not hosts:
        raise UsageError("the fleet has no host: join one by ipexperf fleet join ADDRESS")
    if not text:
        return list(hosts)
    try:
        logic, comparisons = _parsed(text)
        _check_labels([label for label, _, _ in comparisons], {name for host in hosts for name in host.labels})
    except ValueError as error:
        raise UsageError(f"--perf-hosts {text!r}: {error}") from None
    matching = [host for host in hosts if _holds(logic, [_passes(host, *one) for one in comparisons])]
    if not matching:
        reason = f"none of the {len(hosts)} hosts matches: ipexperf fleet hosts lists them"
        raise UsageError(f"--perf-hosts {text!r}: {reason}")
    return matching


def _parsed(text: str) -> tuple[ast.expr, list[tuple[str, str, str]]]:
    """Return the logic of a text, in which `_0` is the first comparison, and the comparisons."""
    for word in re.findall(r"[^\s()]+", COMPARISON.sub(" ", text)):
        if word.lower() not in JOINED_BY:
            raise ValueError(f"{word!r} is no comparison such as device=xpu")
    comparisons: list[tuple[str, str, str]] = []

    def numbered(match: re.Match[str]) -> str:
        comparisons.append((match[1], match[2], match[3]))
        return f" _{len(comparisons) - 1} "

    try:
        logic = ast.parse(f"({COMPARISON.sub(numbered, text).lower()})", mode="eval").body
    except SyntaxError:
        logic = ast.Constant(None)
    if not all(isinstance(node, LOGIC) for node in ast.walk(logic)):
        raise ValueError("expected comparisons with and, or or not between them, and both parentheses of each pair")
    return logic, comparisons


def _holds(logic: ast.expr, answers: Sequence[bool]) -> bool:
    """Whether a parsed text is true if its comparisons have these answers."""
    if isinstance(logic, ast.BoolOp):
        joined = all if isinstance(logic.op, ast.And) else any
        return joined(_holds(part, answers) for part in logic.values)
    if isinstance(logic, ast.UnaryOp):
        return not _holds(logic.operand, answers)
    assert isinstance(logic, ast.Name)  # noqa: S101 - nothing else was let through
    return answers[int(logic.id[1:])]


def _check_labels(asked: Iterable[str], known: Iterable[str]) -> None:
    labels = sorted({*known, "name"})
    for label in asked:
        if label not in labels:
            near = difflib.get_close_matches(label, labels, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(labels)}"
            raise ValueError(f"no host has a label {label}: {hint}")


def _passes(host: Host, label: str, sign: str, expected: str) -> bool:
    """Whether a host passes a comparison. A host without the label differs from everything."""
    values = host.words(label)
    if sign == "!=":
        return expected not in values
    if sign == "=":
        return expected in values
    return any(ORDER[sign](_parts(value), _parts(expected)) for value in values)


def _parts(text: str) -> list[tuple[int, int, str]]:
    """A version or a number in a form that sorts: `25.9` is before `25.31`."""
    words: list[str] = re.findall(r"\d+|[A-Za-z]+", text)
    return [(1, int(word), "") if word.isdecimal() else (0, 0, word.lower()) for word in words]


def ghosts(hosts: Iterable[Host]) -> list[str]:
    """Names that one address has twice, because the host joined again and Ray still lists its first node."""
    return [name for (name, _), count in Counter((host.name, host.address) for host in hosts).items() if count > 1]


def check_names(hosts: Iterable[Host]) -> None:
    """Raise UsageError if two hosts have one name: the history could not tell them apart."""
    twice = [name for name, count in Counter(host.name for host in hosts).items() if count > 1]
    if twice:
        raise UsageError(
            f"two hosts of the fleet are called {twice[0]}: give one another name, by ipexperf fleet join --name"
        )


def ranked(hosts: Sequence[str], key: str) -> list[str]:
    """Order the hosts for a group: the first measures it, or the next one if that is lost.

    By rendezvous hashing: the order of two hosts depends only on them and the group. When a host leaves, only its
    groups move, and they come back when it does.
    """
    return sorted(hosts, key=lambda name: hashlib.sha256(f"{name}\0{key}".encode()).digest())
