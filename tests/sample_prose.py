"""Print a random sample of docstrings and comments, to be read as a stranger: none should need a second reading.

python tests/sample_prose.py [COUNT [SEED]]
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("ipexperf", "suites", "benchmarks")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring and comment in a file."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:", "# fmt:")):
            yield token.start[0], token.string


def main(count: int = 200, seed: int = 0) -> None:
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    parts = [(path.relative_to(ROOT), *part) for path in files for part in prose(path)]
    for path, line, text in sorted(random.Random(seed).sample(parts, min(count, len(parts)))):  # noqa: S311 - no secret
        print(f"{path}:{line}  {' '.join(text.split())}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200, help="how many to print (default: 200)")
    parser.add_argument("seed", type=int, nargs="?", default=0, help="what the sample follows from (default: 0)")
    arguments = parser.parse_args()
    main(arguments.count, arguments.seed)
