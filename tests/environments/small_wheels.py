"""Small wheels that the tests make themselves: no index is asked."""

import base64
import csv
import hashlib
import io
import json
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path


def a_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    requires: tuple[str, ...] = (),
) -> Path:
    """A wheel of these files. Those that begin with `#!` or end with `.so` are executable."""
    stem = f"{name}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires) + "\nA description.\nName: not-me\n"
    about = {
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    whole = {path: _bytes(content) for path, content in {**files, **about}.items()}
    record = io.StringIO()
    rows = [(path, _digest(content), len(content)) for path, content in whole.items()]
    csv.writer(record).writerows([*rows, (f"{stem}.dist-info/RECORD", "", "")])
    whole[f"{stem}.dist-info/RECORD"] = record.getvalue().encode()
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for inside, content in whole.items():
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = (0o100755 if content[:2] == b"#!" or inside.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _digest(content: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()}"


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


def an_unpacked_environment(folder: Path, *wheels: Path) -> str:
    """An environment with these wheels, without pip, which takes a second. Returns its interpreter.

    For wheels of modules, and tests that are not about installations.
    """
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python3*/site-packages")
    for wheel in wheels:
        unpack(wheel, packages)
    return str(folder / "bin" / "python")
