"""Small wheels, made and installed by the tests: no index is asked."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import quick_uv


def a_wheel(folder: Path, name: str, version: str, files: dict[str, str], requires: tuple[str, ...] = ()) -> Path:
    """A wheel of these files, with the metadata that an installer needs."""
    stem = f"{name}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires) + "\nA description.\nName: not-me\n"
    wheel = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n"
    whole = {**files, f"{stem}.dist-info/METADATA": metadata, f"{stem}.dist-info/WHEEL": wheel}
    record = io.StringIO()
    rows = [(path, _digest(text), len(text.encode())) for path, text in whole.items()]
    csv.writer(record).writerows([*rows, (f"{stem}.dist-info/RECORD", "", "")])
    whole[f"{stem}.dist-info/RECORD"] = record.getvalue()
    path = folder / f"{stem}-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in whole.items():
            archive.writestr(inside, text)
    return path


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def an_environment(folder: Path, *wheels: Path) -> str:
    """A virtual environment with these wheels, which pip installed, and nothing else. Returns its interpreter."""
    python = _empty(folder)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    if wheels:
        subprocess.run([*command, *map(str, wheels)], check=True, capture_output=True)
    return str(python)


def an_unpacked_environment(folder: Path, *wheels: Path) -> str:
    """The same without pip, which takes a second: for wheels of modules, and tests that are not about installations."""
    python = _empty(folder)
    [packages] = folder.glob("lib/python3*/site-packages")
    for wheel in wheels:
        quick_uv.unpack(wheel, packages)
    return str(python)


def _empty(folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"
