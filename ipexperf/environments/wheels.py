"""Make a wheel of an installed distribution, from the files that are installed of it.

An index may drop a nightly build and a local file may be gone. Installing the wheel elsewhere gives the package the
same content as here, by the rule of `inventory`.
"""

from __future__ import annotations

import csv
import email
import hashlib
import io
import json
import os
import posixpath
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlparse

from ipexperf.bench.machine.inventory import Package
from ipexperf.environments.copying import encoded, information
from ipexperf.errors import LockError

OF_ONE_INSTALLATION = frozenset(
    {
        "RECORD",
        "RECORD.jws",
        "RECORD.p7s",
        "INSTALLER",
        "REQUESTED",
        "direct_url.json",
        "provenance_url.json",
        "uv_build.json",
        "uv_cache.json",
    }
)
"""Metadata that describes one installation, or signs its RECORD. It is left out of the wheel."""
HASHES = frozenset({"sha256", "sha384", "sha512"})
"""The hashes that RECORD may use."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a wheel, so that equal files make equal wheels. The earliest that a zip file can hold."""
EPOCH_SECONDS = "315532800"
LEVEL = 1
"""The level of compression. Level 6 takes several times as long and saves about a tenth of a library."""
PIECE = 2**20
"""Bytes read at once: a library may be larger than the memory that is free."""
BUILD_SECONDS = 3600.0
"""Time limit for building an editable checkout."""
_INSTALLED_PYTHON = re.compile(
    rb"#!(?:/bin/sh\n'''exec' \"?(/[^\n\"]*?/python[0-9.]*)\"? \"\$0\" \"\$@\"\n' '''|(/.*/python[0-9.]*))"
)
"""The first line of a script whose interpreter an installer filled in. The first form is for long paths."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file to put into a wheel."""

    source: Path
    name: str
    """Its name in the wheel."""
    digest: str
    """Its recorded hash, or empty."""
    size: str
    """Its recorded size, or empty."""
    script: bool = False


def repack(package: Package, target_folder: Path) -> Path:
    """Write the wheel of an installed distribution into an empty folder. On an error, a part of it may lie there.

    The same files make the same wheel. The wheel of an editable checkout is built from its source as it is now.
    Raise LockError if a file was edited since it was installed, or if no wheel can be made. METADATA is not checked: it
    is no part of the content of a package, and some published wheels record a wrong hash of it.
    """
    metadata = information(package)
    try:
        if package.origin == "editable":
            return _build(package, metadata, target_folder)
        return _pack(package, metadata, target_folder)
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise _refusal(package, str(error)) from error


def _refusal(package: Package, reason: str) -> LockError:
    return LockError(f"{package.name} {package.version} cannot be kept: {reason}")


def _pack(package: Package, metadata: Path, folder: Path) -> Path:
    name = metadata.name.removesuffix(".dist-info").rpartition("-")[0]
    build, tag = _build_and_tag(package, metadata)
    parts = [name.replace("-", "_"), _in_file_name(package.version), *build, tag]
    path = folder / f"{'-'.join(parts)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as wheel:
        rows = [(member.name, *_add(wheel, member, package)) for member in _members(package, metadata)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (f"{metadata.name}/RECORD", "", "")])
        wheel.writestr(_entry(f"{metadata.name}/RECORD", executable=False), text.getvalue())
    return path


def _in_file_name(version: str) -> str:
    """Spell a version as the name of a wheel does, where `-` separates the parts."""
    return version.replace("-", "_")


def _build_and_tag(package: Package, metadata: Path) -> tuple[list[str], str]:
    """Return the build number, if there is one, and the tag of the wheel that was installed."""
    try:
        fields = email.message_from_string((metadata / "WHEEL").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _refusal(package, "it was not installed from a wheel") from None
    tags = [str(tag).strip().split("-") for tag in fields.get_all("Tag", [])]
    build = [str(fields["Build"]).strip()] if fields["Build"] else []
    return build, "-".join(".".join(sorted(set(part))) for part in zip(*tags, strict=True))


def _members(package: Package, metadata: Path) -> list[_Member]:
    """Return the files of the wheel: the package's files by name, then its metadata, as the format recommends."""
    generated = _generated_scripts(package, metadata)
    members = {}
    text = (metadata / "RECORD").read_text(encoding="utf-8")
    for row in csv.reader(text.splitlines()):
        if not row:
            continue
        recorded, digest, size = [*row, "", ""][:3]
        path = PurePosixPath(posixpath.normpath(recorded))
        of_metadata = path.parts[0] == metadata.name
        if "__pycache__" in path.parts or (path.suffix == ".pyc" and not digest):
            continue  # Python writes it again
        if of_metadata and len(path.parts) == 2 and path.name in OF_ONE_INSTALLATION:
            continue
        if re.fullmatch(r"(\.\./)+bin/[^/]+", str(path)) and path.name in generated:
            continue  # the installer writes it again
        if str(path) == f"{metadata.name}/METADATA":
            digest = size = ""  # Intel edits it after hashing it, in intel-extension-for-pytorch 2.8.0 for one
        if digest.partition("=")[0] not in HASHES and not (of_metadata and not digest):
            raise _refusal(package, f"RECORD lists {recorded} without a hash, so nobody can tell if it was edited")
        name, script = _place(package, metadata, path)
        members[name] = _Member(metadata.parent / recorded, name, digest, size, script)
    return sorted(members.values(), key=lambda member: (member.name.startswith(f"{metadata.name}/"), member.name))


def _generated_scripts(package: Package, metadata: Path) -> set[str]:
    """Return the names of the scripts that an installer makes of the package's entry points."""
    points = PathDistribution(metadata).entry_points
    names = {point.name for group in ("console_scripts", "gui_scripts") for point in points.select(group=group)}
    if package.name == "pip":  # an installation of pip adds names with its version
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        series = re.search(r"python(\d+\.\d+)", package.folder)
        names |= {"pip3", f"pip{series[1] if series else version}"}
    return names


def _place(package: Package, metadata: Path, path: PurePosixPath) -> tuple[str, bool]:
    """Return the name in the wheel of an installed file, and True if it is a script.

    Headers become data: where an installer puts those in `headers` depends on how the user spelt the package's name,
    and on whether the environment is virtual.
    """
    if path.parts[0] != ".." and not path.is_absolute():
        return str(path), False
    folder = posixpath.abspath(metadata.parent)
    environment = posixpath.normpath(posixpath.join(folder, "../../.."))
    inside = PurePosixPath(posixpath.relpath(posixpath.join(folder, path), environment))
    if path.is_absolute() or inside.parts[0] == "..":
        raise _refusal(package, f"its file {path} is outside of {environment}")
    data = f"{metadata.name.removesuffix('.dist-info')}.data"
    if inside.parts[0] == "bin" and len(inside.parts) == 2:
        return f"{data}/scripts/{inside.name}", True
    return f"{data}/data/{inside}", False


def _entry(name: str, *, executable: bool) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    return entry


def _add(wheel: zipfile.ZipFile, member: _Member, package: Package) -> tuple[str, str]:
    """Add a file to the wheel, piece by piece, and check its hash. Return its hash and size for RECORD.

    They must equal the recorded ones digit by digit: the content of a package is a digest of them.
    """
    try:
        state = member.source.stat()
        stream = member.source.open("rb")
    except FileNotFoundError:
        raise _refusal(package, f"{member.source} was removed after it was installed") from None
    entry = _entry(member.name, executable=bool(state.st_mode & 0o100))
    read_hash, written_hash = hashlib.new(member.digest.partition("=")[0] or "sha256"), hashlib.sha256()
    size = 0
    # Half of the largest size without zip64, because a file may grow while it is read.
    with stream, wheel.open(entry, "w", force_zip64=state.st_size > 2**30) as target:
        while piece := stream.read(PIECE):
            read_hash.update(piece)
            if member.script:
                piece = piece if size else _portable(piece, member.source.parent)
                written_hash.update(piece)
            target.write(piece)
            size += len(piece)
    digest = encoded(read_hash.name, read_hash.digest())
    if member.digest and digest != member.digest.rstrip("="):
        raise _refusal(package, f"{member.source} was edited after it was installed")
    if member.script:
        return encoded("sha256", written_hash.digest()), str(size)
    return member.digest or digest, member.size or str(size)


def _portable(head: bytes, folder: Path) -> bytes:
    """Return the beginning of a script, with `#!python` in place of an interpreter that an installer filled in.

    An installer fills in the interpreter in the folder of the script. Environments are copied and moved, so one in any
    virtual environment counts too, and one that does not exist. Any other was the author's choice.
    """
    match = _INSTALLED_PYTHON.match(head)
    if match is None:
        return head
    interpreter = Path(os.fsdecode(match[1] or match[2]))
    virtual = (interpreter.parent.parent / "pyvenv.cfg").exists()
    if interpreter.exists() and not virtual and not interpreter.parent.samefile(folder):
        return head
    return b"#!python" + head[match.end() :]


def _build(package: Package, metadata: Path, folder: Path) -> Path:
    """Build the wheel of an editable checkout with its own build backend. Download nothing."""
    source = _source(package, metadata)
    place = folder.absolute()  # the build backend runs in the checkout
    # Otherwise setuptools builds in the checkout, with modules that an earlier build left there.
    extra = place / "setup.cfg"
    options = f"[build]\nbuild_base = {place / 'build'}\n[egg_info]\negg_base = {place}\n"
    extra.write_text(options, encoding="utf-8")
    python = metadata.parent / "../../../bin/python"
    switches = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "--python", str(python if python.exists() else sys.executable), "wheel"]
    try:
        completed = subprocess.run(
            [*command, *switches, "--wheel-dir", str(place), str(source)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=BUILD_SECONDS,
            env={"DIST_EXTRA_CONFIG": str(extra), **os.environ, "SOURCE_DATE_EPOCH": EPOCH_SECONDS},
        )
    except subprocess.TimeoutExpired:
        raise _refusal(package, f"building {source} took more than {BUILD_SECONDS:.0f} s") from None
    if completed.returncode:
        raise _refusal(package, f"no wheel can be built of {source}: {reason(completed.stderr)}")
    [built] = place.glob("*.whl")
    version = _version(built)
    if version != package.version:
        raise _refusal(package, f"{source} is version {version} by now")
    name, _, *other_parts = built.name.split("-")
    return built.rename(folder / "-".join([name, _in_file_name(version), *other_parts]))


def _source(package: Package, metadata: Path) -> Path:
    """Return the folder of an editable checkout."""
    url = json.loads((metadata / "direct_url.json").read_text(encoding="utf-8"))["url"]
    source = Path(unquote(urlparse(url).path))
    if not source.is_dir():
        raise _refusal(package, f"its source folder {source} does not exist")
    return source


def _version(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        names = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        return str(email.message_from_bytes(archive.read(next(names)))["Version"])


def reason(text: str) -> str:
    """Return the line of an installer's or an interpreter's messages that tells the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unavailable|Invalid)\b.*:", line)]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (causes or errors or lines or ["no message"])[-1].removeprefix("ERROR: ")
