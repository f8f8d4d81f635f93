"""What a user's file says of how a network of its own is trained. The plan reads it, and runs nothing of it."""

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
"""The names of the file. `CALLABLE_` before one of them makes it that of this callable alone."""
USUAL = "adam"
"""The optimizer of a file that names none: it learns at one rate from losses of any size."""
PAGE = "docs/how-to/measure-your-own.md"


@dataclass(frozen=True, slots=True)
class Training:
    """How a network is trained, or why it is not known."""

    why_not: str | None = None
    optimizer: str = USUAL
    rate: float = optimizers.RATES[USUAL]


def declared(text: str, what: str, path: Path | None) -> Training:
    """Read what a file says of its callable `what`. Raise UsageError for a value that cannot be."""
    values = _values(path) if path else {}
    if missing := [name for name in (BATCH, LOSS) if _name(what, name, values) is None]:
        where = "write {} into its file" if path else "name a callable of a file that has {}"
        return Training(f"its loss and targets are not known: {where.format(_named(missing))}, see {PAGE}")
    optimizer = _constant(_name(what, OPTIMIZER, values), values, USUAL)
    if not isinstance(optimizer, str) or optimizer not in optimizers.RATES:
        allowed = ", ".join(optimizers.RATES)
        raise UsageError(f"'{text}': {OPTIMIZER} must be one of {allowed}, as text in quotes{_got(optimizer)}")
    rate = _constant(_name(what, RATE, values), values, optimizers.RATES[optimizer])
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not rate > 0:
        raise UsageError(f"'{text}': {RATE} must be a number over 0, such as 1e-3{_got(rate)}")
    return Training(None, optimizer, float(rate))


def _named(names: Iterable[str]) -> str:
    return " and ".join({BATCH: f"{BATCH}()", LOSS: f"{LOSS}(answers, targets)"}[name] for name in names)


def _got(value: Any) -> str:
    return "" if value is Ellipsis else f", got {value!r}"


def _name(what: str, name: str, values: dict[str, ast.expr | None]) -> str | None:
    """Return the name by which a file has something for a callable: its own before that for all."""
    return next((one for one in (f"{what}_{name}", name) if one in values), None)


def _constant(name: str | None, values: dict[str, ast.expr | None], default: Any) -> Any:
    """Return the value of a constant. Ellipsis: it is no constant, which only running the file would tell."""
    if name is None:
        return default
    value = values[name]
    try:
        return Ellipsis if value is None else ast.literal_eval(value)
    except ValueError:
        return Ellipsis


def _values(path: Path) -> dict[str, ast.expr | None]:
    """Return what a file defines, with the expressions of plain assignments. Empty if it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}  # whoever builds the network reports what is wrong
    return dict(_definitions(tree.body))


def _definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, None
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name, None) for alias in node.names)
