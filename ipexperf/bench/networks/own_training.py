"""Read from a user's file how to train its network. The plan parses the file, and runs nothing of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf.bench import optimizers
from ipexperf.errors import UsageError

BATCH, LOSS = "training_batch", "training_loss"
OPTIMIZER, RATE = "training_optimizer", "training_rate"
"""The names that a file may define. With `CALLABLE_` before it, a name is for this callable alone."""
USUAL = "adam"
"""The optimizer if the file names none: it learns at one rate from losses of any size."""
PAGE = "docs/how-to/measure-your-own.md"


@dataclass(frozen=True, slots=True)
class Training:
    """How to train a network, or the reason why that is not known."""

    why_not: str | None = None
    optimizer: str = USUAL
    rate: float = optimizers.RATES[USUAL]


def declared(text: str, callable_name: str, path: Path | None) -> Training:
    """Read how to train the network of a callable. Raise UsageError for an impossible value."""
    values = dict(_definitions(syntax_tree(path).body)) if path else {}
    if missing := [name for name in (BATCH, LOSS) if _name(callable_name, name, values) is None]:
        advice = "write {} into its file" if path else "name a callable of a file that has {}"
        return Training(f"its loss and targets are not known: {advice.format(_signatures(missing))}, see {PAGE}")
    optimizer = _constant(_name(callable_name, OPTIMIZER, values), values, USUAL)
    if not isinstance(optimizer, str) or optimizer not in optimizers.RATES:
        allowed = ", ".join(optimizers.RATES)
        raise UsageError(f"'{text}': {OPTIMIZER} must be one of {allowed}, as text in quotes{_got(optimizer)}")
    rate = _constant(_name(callable_name, RATE, values), values, optimizers.RATES[optimizer])
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not rate > 0:
        raise UsageError(f"'{text}': {RATE} must be a number over 0, such as 1e-3{_got(rate)}")
    return Training(None, optimizer, float(rate))


def _signatures(names: Iterable[str]) -> str:
    return " and ".join({BATCH: f"{BATCH}()", LOSS: f"{LOSS}(answers, targets)"}[name] for name in names)


def _got(value: Any) -> str:
    return "" if value is Ellipsis else f", got {value!r}"


def _name(callable_name: str, name: str, values: dict[str, ast.expr | None]) -> str | None:
    """Return the name that a file defines for a callable: `CALLABLE_name` before `name`, or None."""
    return next((candidate for candidate in (f"{callable_name}_{name}", name) if candidate in values), None)


def _constant(name: str | None, values: dict[str, ast.expr | None], default: Any) -> Any:
    """Return the value of a constant, or Ellipsis if it is an expression, which only a run of the file evaluates."""
    if name is None:
        return default
    value = values[name]
    try:
        return Ellipsis if value is None else ast.literal_eval(value)
    except ValueError:
        return Ellipsis


def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file, without running it. Empty if the file cannot be read or parsed."""
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])  # building the network reports what is wrong


def _definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that these statements define, with the expressions of plain assignments."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, None
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name, None) for alias in node.names)
