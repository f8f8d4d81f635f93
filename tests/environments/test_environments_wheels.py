"""Wheels made of what is installed: the same content wherever they are installed again."""

from __future__ import annotations

import base64
import configparser
import csv
import dataclasses
import hashlib
import io
import os
import random
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from made_wheels import a_checkout, an_environment, installed_files, package_in, packages_of
from small_wheels import a_wheel

from ipexperf.bench.machine.inventory import Package
from ipexperf.environments.wheels import _portable, repack
from ipexperf.errors import LockError

pytestmark = pytest.mark.process

NOISE = random.Random(1).randbytes(200_000)  # noqa: S311 - it only has to be hard to compress
FILES = {
    "pace/__init__.py": "def main(): print('pace')\n",
    "pace/native.cpython-311-x86_64-linux-gnu.so": b"\x7fELF" + NOISE,
    "pace/with, comma and é.txt": "a name that RECORD quotes\n",
    "pace/tool.sh": "#!/bin/sh\n",
    "spaces/pace/plugin.py": "a namespace package: no __init__.py\n",
    "spaces/pace/empty.py": "",
    "pace_top.py": "TOP = True\n",
    "pace-1.0.data/scripts/pace-run": "#!python\nprint('run')\n",
    "pace-1.0.data/scripts/pace-shell": "#!/bin/sh\necho shell\n",
    "pace-1.0.data/scripts/pace-binary": b"\x7fELF\0\xff" + NOISE[:100],
    "pace-1.0.data/headers/pace.h": "#define PACE 1\n",
    "pace-1.0.data/data/include/pace/deep.h": "#define DEEP 1\n",
    "pace-1.0.data/data/share/man/man1/pace.1": ".TH PACE\n",
    "pace-1.0.data/data/lib/libpace.so": b"\x7fELF beside the packages",
    "pace-1.0.data/purelib/pace_pure.py": "PURE = True\n",
    "pace-1.0.dist-info/entry_points.txt": "[console_scripts]\npace = pace:main\n\n[pytest11]\npace-run = pace\n",
    "pace-1.0.dist-info/licenses/RECORD": "a licence with an unlucky name\n",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with all kinds of files. No test changes it."""
    folder = tmp_path_factory.mktemp("installed")
    return an_environment(folder / "environment", a_wheel(folder, "pace", "1.0", FILES))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def installed(folder: Path, files: Mapping[str, str | bytes]) -> Package:
    """A package of these files."""
    return package_in(an_environment(folder / "environment", a_wheel(folder, "pace", "1.0", files)))


def with_record(package: Package, change: Callable[[list[list[str]]], None]) -> Package:
    """The package after somebody changed its RECORD."""
    folder = Path(package.folder)
    path = folder / "pace-1.0.dist-info" / "RECORD"
    rows = list(csv.reader(path.read_text().splitlines()))
    change(rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue())
    return package_in(folder.parents[2])


def test_a_wheel_installs_the_same_files_elsewhere(environment: Path, target: Path, tmp_path: Path) -> None:
    again = an_environment(tmp_path / "a-place-with-another-name" / "again", repack(package_in(environment), target))
    assert installed_files(again) == installed_files(environment)
    assert package_in(again).content == package_in(environment).content


def test_a_wheel_of_a_wheel_is_the_same_wheel(environment: Path, target: Path, tmp_path: Path) -> None:
    first = repack(package_in(environment), target)
    again = an_environment(tmp_path / "again", first)
    (tmp_path / "second").mkdir()
    second = repack(package_in(again), tmp_path / "second")
    assert (second.name, second.read_bytes()) == (first.name, first.read_bytes())


def test_the_new_record_has_the_hash_and_size_of_every_file(environment: Path, target: Path) -> None:
    with zipfile.ZipFile(repack(package_in(environment), target)) as wheel:
        rows = {row[0]: row[1:] for row in csv.reader(wheel.read("pace-1.0.dist-info/RECORD").decode().splitlines())}
        assert list(rows) == wheel.namelist()
        assert rows.pop("pace-1.0.dist-info/RECORD") == ["", ""]
        for name, (digest, size) in rows.items():
            content = wheel.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (name, digest, size) == (name, f"sha256={right}", str(len(content)))


@pytest.mark.parametrize(
    ("head", "portable"),
    [
        (b"#!{bin}/python3.11\nx", b"#!python\nx"),
        (b"#!{bin}/python -E\nx", b"#!python -E\nx"),
        (b"#!/gone/environment.part/bin/python\nx", b"#!python\nx"),
        (b"#!/bin/sh\n'''exec' \"{bin}/python\" \"$0\" \"$@\"\n' '''\nx", b"#!python\nx"),
        (b"#!/bin/sh\n'''exec' {bin}/python3 \"$0\" \"$@\"\n' '''\nx", b"#!python\nx"),
        (b"#!/usr/bin/env python\nx", b"#!/usr/bin/env python\nx"),
        (b"#!/bin/sh\nexec {bin}/python\n", b"#!/bin/sh\nexec {bin}/python\n"),
        (b"\x7fELF{bin}/python", b"\x7fELF{bin}/python"),
    ],
)
def test_only_an_interpreter_that_an_installer_filled_in_is_taken_out(
    tmp_path: Path, head: bytes, portable: bytes
) -> None:
    (tmp_path / "python").touch()
    head, portable = (text.replace(b"{bin}", os.fsencode(tmp_path)) for text in (head, portable))
    assert _portable(head, tmp_path) == portable


def test_the_tags_of_a_wheel_become_one_compressed_tag(target: Path, tmp_path: Path) -> None:
    tags = ["py3-none-manylinux_2_17_x86_64", "py2-none-any", "py3-none-any", "py2-none-manylinux_2_17_x86_64"]
    original = a_wheel(tmp_path, "pace", "1.0+cpu", {"pace.py": ""}, tags=tags, build="7")
    wheel = repack(package_in(an_environment(tmp_path / "environment", original)), target)
    assert wheel.name == "pace-1.0+cpu-7-py2.py3-none-any.manylinux_2_17_x86_64.whl"
    an_environment(tmp_path / "again", wheel)


def test_compiled_files_and_forgotten_ones_are_left_out(target: Path, tmp_path: Path) -> None:
    files = {"pace.py": "", "pace_compiled.pyc": b"the only form of this module", "__pycache__/pace.pyc": b"shipped"}
    environment = an_environment(tmp_path / "environment", a_wheel(tmp_path, "pace", "1.0", files))
    (packages_of(environment) / "not_recorded.py").touch()
    assert names(repack(package_in(environment), target))[:-3] == ["pace.py", "pace_compiled.pyc"]


@pytest.mark.parametrize("path", ["pace.py", "../../../bin/pace-run"])
def test_a_file_that_was_edited_is_refused_by_name(target: Path, tmp_path: Path, path: str) -> None:
    files = {"pace.py": "", "pace-1.0.data/scripts/pace-run": "#!python\n"}
    package = installed(tmp_path, files)
    with (Path(package.folder) / path).open("a") as stream:
        stream.write("# edited\n")
    with pytest.raises(LockError, match=rf"pace 1\.0 cannot be kept: .*/{path} was edited after it was installed"):
        repack(package, target)


def test_a_file_that_was_removed_is_refused_by_name(target: Path, tmp_path: Path) -> None:
    package = installed(tmp_path, {"pace.py": "", "pacer.py": ""})
    (Path(package.folder) / "pacer.py").unlink()
    with pytest.raises(LockError, match=r"/pacer\.py was removed after it was installed"):
        repack(package, target)


def test_what_cannot_be_made_again_is_refused(target: Path, tmp_path: Path) -> None:
    package = installed(tmp_path, {"pace.py": ""})

    def refusal(package: Package) -> str:
        with pytest.raises(LockError) as caught:
            repack(package, target)
        return str(caught.value)

    assert "is no longer in " in refusal(dataclasses.replace(package, name="peace"))
    outside = with_record(package, lambda rows: rows.append(["../../../../outside.txt", "sha256=A", "1"]))
    assert "outside.txt is outside of " in refusal(outside)
    absolute = with_record(package, lambda rows: rows.__setitem__(-1, ["/etc/hosts", "sha256=A", "1"]))
    assert "its file /etc/hosts is outside of " in refusal(absolute)
    unchecked = with_record(package, lambda rows: rows.__setitem__(-1, ["pacer.py", "", ""]))
    assert "RECORD lists pacer.py without a hash" in refusal(unchecked)
    (Path(package.folder) / "pace-1.0.dist-info" / "WHEEL").unlink()
    assert "it was not installed from a wheel" in refusal(unchecked)


@pytest.mark.parametrize("digest", ["", "sha256=DsAYMP3NWZH1N-dZUoo7Ra5j1MTPqfl_iH578n8ohNQ"])
def test_metadata_with_a_wrong_hash_or_none_gets_the_right_one(target: Path, tmp_path: Path, digest: str) -> None:
    """The wheel of intel-extension-for-pytorch 2.8.0 has a wrong one."""
    package = installed(tmp_path, {"pace.py": ""})
    package = with_record(package, lambda rows: [row.__setitem__(1, digest) for row in rows if "METADATA" in row[0]])
    with zipfile.ZipFile(repack(package, target)) as wheel:
        metadata, record = (wheel.read(f"pace-1.0.dist-info/{name}") for name in ("METADATA", "RECORD"))
    right = base64.urlsafe_b64encode(hashlib.sha256(metadata).digest()).rstrip(b"=")
    assert b"pace-1.0.dist-info/METADATA,sha256=%b,%d\n" % (right, len(metadata)) in record


def test_a_large_file_is_never_in_memory_as_a_whole(target: Path, tmp_path: Path) -> None:
    files = {"pace/large.so": bytes(64 * 2**20)}
    package = installed(tmp_path, files)
    tracemalloc.start()
    repack(package, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20


class TestAnEditableCheckout:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        return a_checkout(tmp_path / "a check out")

    @pytest.fixture
    def package(self, checkout: Path, tmp_path: Path) -> Package:
        [package] = [package_in(an_environment(tmp_path / "environment", "--editable", checkout))]
        assert package.origin == "editable"
        return package

    def test_becomes_a_wheel_of_its_source_as_it_is_now(
        self, package: Package, checkout: Path, target: Path, tmp_path: Path
    ) -> None:
        (checkout / "pace.py").write_text("TIMES = 2\n")
        before = {path.name for path in checkout.iterdir()}
        wheel = repack(package, target)
        assert (packages_of(an_environment(tmp_path / "again", wheel)) / "pace.py").read_text() == "TIMES = 2\n"
        assert {path.name for path in checkout.iterdir()} - {"__pycache__"} == before - {"__pycache__"}

    def test_is_built_beside_its_source_by_setuptools(
        self, package: Package, checkout: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What an earlier build left in the checkout would else get into the wheel."""
        with (checkout / "backend.py").open("a") as backend:
            backend.write(
                "import os\nprint(Path(os.environ['DIST_EXTRA_CONFIG']).read_text(), file=open('seen', 'w'))\n"
            )
        monkeypatch.chdir(target.parent)
        wheel = repack(package, Path(target.name))
        assert wheel == Path(target.name) / "pace-1.0-py3-none-any.whl"
        config = configparser.ConfigParser()
        config.read(checkout / "seen")
        for place in (config["build"]["build_base"], config["egg_info"]["egg_base"]):
            assert Path(place).is_relative_to(target)

    def test_is_refused_with_the_reason_of_its_build_backend(
        self, package: Package, checkout: Path, target: Path
    ) -> None:
        (checkout / "backend.py").write_text("def build_wheel(*_):\n    raise RuntimeError('no compiler')\n")
        with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: no wheel .*a check out: RuntimeError: no comp"):
            repack(package, target)

    def test_is_refused_if_its_source_has_another_version_by_now(
        self, package: Package, checkout: Path, target: Path
    ) -> None:
        a_checkout(checkout, version="1.1")
        with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: .*a check out is version 1\.1 by now"):
            repack(package, target)

    def test_is_refused_if_its_source_is_gone(self, package: Package, checkout: Path, target: Path) -> None:
        checkout.rename(checkout.with_name("moved"))
        with pytest.raises(LockError, match=r"source folder .*a check out does not exist"):
            repack(package, target)
