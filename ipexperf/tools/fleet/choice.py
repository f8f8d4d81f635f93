"""The language of `--perf-hosts`: `device=xpu and driver>=25 and not room=b`."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ipexperf.errors import UsageError
from ipexperf.tools.fleet.hosts import Host

Test = Callable[[Host], bool]
TOKEN = re.compile(r"\s*(?:(?P<mark>[()])|(?P<compare>>=|<=|!=|=|>|<)|(?P<word>[^\s()<>=!]+))")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
SOURCE = "--perf-hosts"


def chosen(hosts: Sequence[Host], text: str | None) -> list[Host]:
    """Return the hosts that match the text, or all without a text. Raise UsageError if none matches."""
    if not hosts:
        raise UsageError("the fleet has no host: join one by ipexperf fleet join ADDRESS")
    if not text:
        return list(hosts)
    test = _Parser(text, {name for host in hosts for name in host.labels} | {"name"}).parse()
    matching = [host for host in hosts if test(host)]
    if not matching:
        raise UsageError(f"{SOURCE} {text!r}: none of the {len(hosts)} hosts matches: ipexperf fleet hosts lists them")
    return matching


class _Token(NamedTuple):
    kind: str
    text: str


class _Parser:
    """Recursive descent: `or` of `and` of `not` of a comparison or of something in parentheses."""

    def __init__(self, text: str, labels: Iterable[str]) -> None:
        self._text = text
        self._labels = sorted(labels)
        self._tokens = list(self._split())
        self._next = 0

    def _split(self) -> Iterable[_Token]:
        place, text = 0, self._text.rstrip()
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise self._wrong(f"{text[place:].strip()!r} is not understood")
            assert match.lastgroup is not None  # noqa: S101 - one of the groups matched
            yield _Token(match.lastgroup, match[match.lastgroup])
            place = match.end()

    def parse(self) -> Test:
        test = self._or()
        if (rest := self._peek()) is not None:
            raise self._wrong(f"{rest.text!r} is too much")
        return test

    def _or(self) -> Test:
        tests = [self._and()]
        while self._take("or"):
            tests.append(self._and())
        return lambda host: any(test(host) for test in tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._take("and"):
            tests.append(self._not())
        return lambda host: all(test(host) for test in tests)

    def _not(self) -> Test:
        if self._take("not"):
            test = self._not()
            return lambda host: not test(host)
        if self._take("("):
            test = self._or()
            if not self._take(")"):
                raise self._wrong("a parenthesis is not closed")
            return test
        return self._comparison()

    def _comparison(self) -> Test:
        label = self._need("word", "a label")
        if label.text not in self._labels:
            near = difflib.get_close_matches(label.text, self._labels, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._labels)}"
            raise self._wrong(f"no host has a label {label.text}: {hint}")
        sign = self._need("compare", f"a comparison behind {label.text}, such as =")
        value = self._need("word", f"a value behind {label.text}{sign.text}")
        return lambda host: _holds(_values(host, label.text), sign.text, value.text)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.text.lower() != text:
            return False
        self._next += 1
        return True

    def _need(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token is None or token.kind != kind:
            before = f"{token.text!r} instead of " if token else "at its end it lacks "
            raise self._wrong(f"{before}{expected}")
        self._next += 1
        return token

    def _wrong(self, reason: str) -> UsageError:
        return UsageError(f"{SOURCE} {self._text!r}: {reason}")


def _values(host: Host, label: str) -> tuple[str, ...]:
    return (host.name,) if label == "name" else host.words(label)


def _holds(values: Sequence[str], sign: str, expected_value: str) -> bool:
    """Whether a label with these values passes. A host without the label differs from everything."""
    if sign == "!=":
        return expected_value not in values
    if sign == "=":
        return expected_value in values
    return any(COMPARE[sign](_parts(value), _parts(expected_value)) for value in values)


def _parts(text: str) -> list[tuple[int, int, str]]:
    """A version or a number in a form that sorts: `25.9` is before `25.31`."""
    words: list[str] = re.findall(r"\d+|[A-Za-z]+", text)
    return [(1, int(word), "") if word.isdecimal() else (0, 0, word.lower()) for word in words]
