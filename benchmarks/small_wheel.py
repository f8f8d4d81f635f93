"""Wheels of one module that holds a few values, for benchmarks that install what makes a step slow."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path


def wheel(folder: Path, name: str, version: str, values: Mapping[str, object]) -> Path:
    """The wheel of a package whose one module has these values."""
    stem = f"{name}-{version}"
    kind = "Wheel-Version: 1.0\nGenerator: trials\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    files = {
        f"{name}.py": f'"""Version {version}."""\n\n{lines}',
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{stem}.dist-info/WHEEL": kind,
    }
    record = io.StringIO()
    rows = csv.writer(record)
    for inside, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.writerow([inside, f"sha256={digest}", len(text.encode())])
    rows.writerow([f"{stem}.dist-info/RECORD", "", ""])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in {**files, f"{stem}.dist-info/RECORD": record.getvalue()}.items():
            archive.writestr(inside, text)
    return path
