"""A network's file can replace the clocks of Python, and changes no time that is measured."""

from __future__ import annotations

import ast
from pathlib import Path

import ipexperf.bench
from ipexperf.bench import clocks

ROOT = Path(ipexperf.bench.__file__).parent


def test_what_measures_takes_the_clocks_that_nobody_can_replace() -> None:
    """No file of the worker's side reads a clock from the module `time`, where a network's file can replace it."""
    names = set(clocks.__all__)
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.name != "clocks.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "time")
        or (isinstance(node, ast.ImportFrom) and node.module == "time" and names & {one.name for one in node.names})
    ]
    assert wrong == []
