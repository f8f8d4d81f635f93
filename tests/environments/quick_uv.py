"""An installer that only unpacks wheels, for tests of what is done with installed packages.

`ipexperf` asks a `uv` in PATH before pip, which starts two more Pythons for each wheel and takes half a second. What
lies there afterwards is the same by the rule of `inventory`, for wheels that hold modules and nothing else.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

WORDS = ["pip", "install", "--python"]


def put(folder: Path) -> None:
    """Put it into a folder as `uv`."""
    program = folder / "uv"
    program.write_text(f"#!{sys.executable} -SE\n{Path(__file__).read_text()}")
    program.chmod(0o755)


def unpack(wheel: Path, target: Path) -> None:
    """Unpack a wheel of modules into a folder of packages, with a note of where it came from, as pip leaves it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
        [record] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
    origin = {"url": wheel.as_uri(), "archive_info": {}}
    note = target.joinpath(record).with_name("direct_url.json")
    note.write_text(json.dumps(origin))
    with target.joinpath(record).open("a") as rows:
        rows.write(f"{note.relative_to(target)},,\n")


def install(words: list[str]) -> None:
    """Unpack the wheels of `uv pip install --python P ... -r LIST`."""
    if words[:3] != WORDS or words[-2] != "-r" or "--offline" not in words:
        raise SystemExit(f"expected to install wheels that are here, and not: {words}")
    [target] = Path(words[3]).parents[1].glob("lib/python3*/site-packages")
    for line in Path(words[-1]).read_text().splitlines():
        unpack(Path(line), target)


if __name__ == "__main__":
    install(sys.argv[1:])
