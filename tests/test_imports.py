"""Imports between modules have no cycles, lazy imports and those for types included."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import ipexperf

ROOT = Path(ipexperf.__file__).parent


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    paths = (path for path in ROOT.rglob("*.py") if "migrations" not in path.parts)
    names = {path: ".".join(("ipexperf", *path.relative_to(ROOT).with_suffix("").parts)) for path in paths}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def imports(source: str, known: dict[str, Path]) -> set[str]:
    """The modules that a source imports anywhere, also within functions and `if TYPE_CHECKING`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= below & set(known) or {node.module}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {part.value for part in node.args if isinstance(part, ast.Constant)}
    return found & set(known)


def test_imports_have_no_cycles() -> None:
    """A topological sort finds an order, or raises with the cycle."""
    known = modules()
    graph = {name: imports(path.read_text(encoding="utf-8"), known) - {name} for name, path in known.items()}
    assert sum(map(len, graph.values())) > 1000
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert len(order) == len(known)
