"""Wheels of one module that holds a few values, for benchmarks that install what makes a step slow."""

import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "environments"))

from small_wheels import a_wheel


def wheel(folder: Path, name: str, version: str, values: Mapping[str, object]) -> Path:
    """The wheel of a package whose one module has these values."""
    lines = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    return a_wheel(folder, name, version, {f"{name}.py": lines})
