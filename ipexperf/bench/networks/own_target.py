"""The target of a user's own network, given in place of a model: `module:callable`, `hf:NAME` or `timm:NAME`.

What its file says of training is read without running it.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf.bench import optimizers
from ipexperf.errors import UsageError

HUBS = {"hf": "transformers", "timm": "timm"}
"""Prefixes of networks from a hub, with the package that builds them."""
FORMS = "module:callable, file.py:callable, hf:NAME or timm:NAME, each with @SHAPE behind it where that is needed"
BATCH, LOSS = "training_batch", "training_loss"
OPTIMIZER, RATE = "training_optimizer", "training_rate"
"""The names that a file may define. With `CALLABLE_` before it, a name is for this callable alone."""
USUAL = "adam"
"""The optimizer if the file names none: it learns at one rate from losses of any size."""
_SHAPE = re.compile(r"\d+(?:x\d+)*(?:\+\d+(?:x\d+)*)*")

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed target from the command line."""

    text: str
    hub: str
    """`hf`, `timm`, or empty."""
    location: str
    """A module, a file, or the name in the hub."""
    callable_name: str
    """The callable in the module; empty for a hub."""
    shapes: tuple[Shape, ...]
    """The shape of one example of each input, if the target has them."""

    @property
    def local(self) -> Path | None:
        """The local folder of a hub network, if it is named by one."""
        path = Path(os.path.expanduser(self.location))  # noqa: PTH111 - pathlib's raises for unknown users
        return path if self.hub and (self.location.startswith((".", "/", "~")) or path.is_dir()) else None

    @property
    def name(self) -> str:
        """The model name in ids: only letters, digits, `_`, `.` and `-`, for file names and `-k`."""
        if self.hub:
            parts = [self.hub, self.local.resolve().name if self.local else self.location]
        else:
            module = Path(self.location).stem if self.location.endswith(".py") else self.location
            parts = [module, self.callable_name]
        parts += ["_".join("x".join(map(str, shape)) for shape in self.shapes)] if self.shapes else []
        return re.sub(r"[^\w.-]", "_", ".".join(part.replace("/", ".") for part in parts), flags=re.ASCII)


def is_target(text: str) -> bool:
    """Return True if a model's name is the target of a user's own network."""
    return ":" in text


def parse(text: str) -> Target:
    """Parse a target. Raise UsageError if it is invalid."""
    body, at, shape = text.rpartition("@")
    if not at:
        body, shape = text, ""
    if at and not _SHAPE.fullmatch(shape):
        raise UsageError(f"'{text}': expected a shape such as 3x224x224 behind @, got '{shape}'")
    location, _, callable_name = body.partition(":") if body.partition(":")[0] in HUBS else body.rpartition(":")
    shapes = tuple(tuple(map(int, part.split("x"))) for part in shape.split("+")) if shape else ()
    if not (location and callable_name) or any(0 in part for part in shapes):
        raise UsageError(f"'{text}' is not a network: expected {FORMS}")
    if location in HUBS:
        return Target(text, location, callable_name, "", shapes)
    if not callable_name.isidentifier():
        raise UsageError(f"'{text}': '{callable_name}' is not the name of a callable: expected {FORMS}")
    return Target(text, "", location, callable_name, shapes)


def example(path: Path) -> str:
    """A target out of this file: the last class that it defines, else its last function."""
    body = syntax_tree(path).body
    named = [node.name for kind in (ast.FunctionDef, ast.ClassDef) for node in body if isinstance(node, kind)]
    return f"{path}:{named[-1] if named else 'NAME'}"


def importable() -> None:
    """Make modules of the current folder importable, after all others, like `python -m`."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


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
        signatures = {BATCH: f"{BATCH}()", LOSS: f"{LOSS}(answers, targets)"}
        wanted = " and ".join(signatures[name] for name in missing)
        return Training(f"its loss and targets are not known: {advice.format(wanted)}")
    optimizer = _constant(_name(callable_name, OPTIMIZER, values), values, USUAL)
    if not isinstance(optimizer, str) or optimizer not in optimizers.RATES:
        allowed = ", ".join(optimizers.RATES)
        raise UsageError(f"'{text}': {OPTIMIZER} must be one of {allowed}, as text in quotes{_got(optimizer)}")
    rate = _constant(_name(callable_name, RATE, values), values, optimizers.RATES[optimizer])
    if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not rate > 0:
        raise UsageError(f"'{text}': {RATE} must be a number over 0, such as 1e-3{_got(rate)}")
    return Training(None, optimizer, float(rate))


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
