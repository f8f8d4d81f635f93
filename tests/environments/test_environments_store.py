"""The store: installed packages by content, within a limit, so that an environment can be made again."""

from __future__ import annotations

import argparse
import configparser
import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick_uv
from made_wheels import a_checkout, a_full_disk, an_environment, installed_files, package_in
from small_wheels import a_wheel

from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Package
from ipexperf.commands import baseline
from ipexperf.environments import copying, make
from ipexperf.environments.store import Store
from ipexperf.errors import LockError

pytestmark = pytest.mark.process

WAIT = 60.0
FILES = {
    "pace/__init__.py": "def main(): print('pace')\n",
    "pace/native.cpython-311-x86_64-linux-gnu.so": b"\x7fELF",
    "pace/with, comma and é.txt": "a name that RECORD quotes\n",
    "pace/tool.sh": "#!/bin/sh\n",
    "spaces/pace/plugin.py": "a namespace package: no __init__.py\n",
    "pace_top.py": "TOP = True\n",
    "pace-1.0.data/headers/pace.h": "#define PACE 1\n",
    "pace-1.0.data/data/share/man/man1/pace.1": ".TH PACE\n",
    "pace-1.0.data/data/lib/libpace.so": b"\x7fELF beside the packages",
    "pace-1.0.dist-info/licenses/RECORD": "a licence with an unlucky name\n",
}
ADD = """
import sys, time
from pathlib import Path
from ipexperf.bench.machine.inventory import _packages
from ipexperf.environments import store

place, packages, begin = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
[package] = [one for one in _packages(packages) if one.name == "pace"]
copy = store._copy

def slow(package, folder):
    (folder / "half a package").write_text("half")
    (begin.parent / "writing").touch()
    time.sleep(float(sys.argv[4]))
    copy(package, folder)

store._copy = slow
print("ready", flush=True)
while not begin.exists():
    time.sleep(0.01)
store.Store(place).add(package, lambda line: print(line, flush=True))
"""
"""A process that adds a package as soon as a file is there, and takes this many seconds to copy it."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def pace(wheels: Path) -> Package:
    """An installed package with all kinds of files. No test changes it."""
    return package_in(an_environment(wheels / "pace", a_wheel(wheels, "pace", "1.0", FILES)))


@pytest.fixture(scope="module")
def three(wheels: Path) -> list[Package]:
    """Three versions of a package, with other content each."""
    made = [a_wheel(wheels, "pace", f"2.{n}", {"pace.py": f"TIMES = {n}\n"}) for n in range(3)]
    return [package_in(an_environment(wheels / wheel.stem, wheel)) for wheel in made]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache" / "store")


def nothing(_: str) -> None:
    pass


def content_of(store: Store) -> set[str]:
    """What lies in the store, but for its lock."""
    return {path.name for path in store.folder.iterdir()} - {".lock"}


def used_at(store: Store, package: Package, seconds: float) -> None:
    """Let a package be last used so many seconds after the epoch."""
    os.utime(store.folder_of(package), (seconds, seconds))


def again(store: Store, package: Package, folder: Path) -> Path:
    """An environment that has the package from the store."""
    kept = store.find(package)
    assert kept is not None
    environment = an_environment(folder)
    copying.install_from(kept, copying.packages_folder(environment), link=False)
    return environment


def test_a_kept_package_is_the_same_elsewhere(store: Store, pace: Package, tmp_path: Path) -> None:
    store.add(pace, nothing)
    environment = again(store, pace, tmp_path / "a-place-with-another-name")
    assert installed_files(environment) == installed_files(Path(pace.folder).parents[2])
    assert package_in(environment).content == pace.content


def test_a_package_is_kept_once_and_found_by_name_version_and_content(store: Store, pace: Package) -> None:
    assert store.find(pace) is None
    lines: list[str] = []
    store.add(pace, lines.append)
    store.add(pace, lines.append)
    assert lines == ["keeping pace 1.0"]
    assert content_of(store) == {pace.content}
    assert store.find(pace) is not None
    for other in ({"name": "peace"}, {"version": "1.1"}, {"content": "0" * 16}, {"content": ""}):
        assert store.find(dataclasses.replace(pace, **other)) is None


def test_packages_of_requirements_only_share_a_content_and_are_kept_apart(store: Store, tmp_path: Path) -> None:
    both = an_environment(tmp_path / "both", *(a_wheel(tmp_path, name, "1", {}) for name in ("one", "two")))
    packages = [package_in(both, "one"), package_in(both, "two")]
    for package in packages:
        store.add(package, nothing)
    assert len({package.content for package in packages}) == 1
    shutil.rmtree(store.folder_of(packages[0]))
    assert [store.find(package) is None for package in packages] == [True, False]


def test_what_exceeds_the_limit_is_refused(store: Store, three: list[Package]) -> None:
    store.add(three[0], nothing)
    small = Store(store.folder, limit=store.size() + 1)
    held = r"pace 2\.1 takes 0\.00 GB, and .*/store holds 0\.00 GB of at most 0\.00 GB: remove packages from there"
    with pytest.raises(LockError, match=held):
        small.add(three[1], nothing)
    small.add(three[0], nothing)
    assert content_of(small) == {three[0].content}


@pytest.mark.parametrize("change", ["edited", "removed"])
def test_a_file_that_is_not_what_was_installed_is_refused_by_name(store: Store, tmp_path: Path, change: str) -> None:
    package = package_in(an_environment(tmp_path / "here", a_wheel(tmp_path, "pace", "1.0", {"pace.py": ""})))
    path = Path(package.folder) / "pace.py"
    if change == "edited":
        path.write_text("# edited\n")
    else:
        path.unlink()
    with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: .*/pace\.py is not what was installed"):
        store.add(package, nothing)
    assert content_of(store) == set()


def test_what_cannot_be_kept_is_one_sentence(store: Store, tmp_path: Path, pace: Package) -> None:
    with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: its installer recorded no files of it"):
        store.add(dataclasses.replace(pace, content=""), nothing)
    with pytest.raises(LockError, match=r"peace 1\.0 is no longer in "):
        store.add(dataclasses.replace(pace, name="peace"), nothing)
    (tmp_path / "store").write_text("a file")
    with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept in .*/store: .*File exists"):
        Store(tmp_path / "store").add(pace, nothing)


def test_a_full_disk_leaves_nothing(store: Store, tmp_path: Path) -> None:
    files_of_it = {"pace.bin": os.urandom(100_000)}
    package = package_in(an_environment(tmp_path / "environment", a_wheel(tmp_path, "pace", "1.0", files_of_it)))
    with a_full_disk(after=50_000), pytest.raises(LockError, match=r"pace 1\.0 cannot be kept in .*File too large"):
        store.add(package, nothing)
    assert content_of(store) == set()


@contextlib.contextmanager
def adding(store: Store, package: Package, begin: Path, seconds: float = 0.0) -> Iterator[subprocess.Popen[str]]:
    """Another process that is ready to add a package."""
    command = [sys.executable, "-c", ADD, str(store.folder), package.folder, str(begin), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> None:
    end = time.monotonic() + WAIT
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


def test_two_processes_add_a_package_one_after_the_other(store: Store, three: list[Package], tmp_path: Path) -> None:
    begin = tmp_path / "begin"
    with adding(store, three[0], begin, 1.0) as first, adding(store, three[0], begin, 1.0) as second:
        begin.touch()
        outputs = sorted(process.communicate(timeout=WAIT)[0].splitlines() for process in (first, second))
    assert outputs == [
        ["keeping pace 2.0"],
        [f"waiting for another process that writes to {store.folder}", "keeping pace 2.0"],
    ]
    assert content_of(store) == {three[0].content}


def test_what_a_killed_process_left_is_no_package_and_is_removed_later(
    store: Store, three: list[Package], tmp_path: Path
) -> None:
    begin = tmp_path / "begin"
    with adding(store, three[1], begin, WAIT) as process:
        begin.touch()
        wait_for(tmp_path / "writing")
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT)
    assert content_of(store) == {".part"}
    assert (store.find(three[1]), store.every()) == (None, [])
    store.add(three[0], nothing)
    assert content_of(store) == {three[0].content}


class TestAnEditableCheckout:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        return a_checkout(tmp_path / "a check out")

    @pytest.fixture
    def package(self, checkout: Path, tmp_path: Path) -> Package:
        return package_in(an_environment(tmp_path / "environment", "--editable", checkout))

    def test_is_built_and_kept_under_its_recorded_content(self, store: Store, package: Package, tmp_path: Path) -> None:
        store.add(package, nothing)
        installed = package_in(again(store, package, tmp_path / "again"))
        assert (installed.name, installed.version) == (package.name, package.version)
        assert installed.content != package.content
        assert package_in(tmp_path / "environment") == package

    def test_is_replaced_if_its_source_has_changed_since(self, store: Store, package: Package, checkout: Path) -> None:
        lines: list[str] = []
        store.add(package, lines.append)
        store.add(package, lines.append)
        assert lines == ["keeping pace 1.0"] * 2
        (checkout / "pace.py").write_text("TIMES = 2\n")
        store.add(package, lines.append)
        assert lines[-1] == "pace 1.0: its source has changed since it was kept, so it is replaced"
        kept = store.find(package)
        assert kept is not None
        assert Path(kept.folder, "pace.py").read_text() == "TIMES = 2\n"

    def test_is_built_outside_of_the_checkout(self, store: Store, package: Package, checkout: Path) -> None:
        """What an earlier build left in the checkout would else be kept too."""
        with (checkout / "backend.py").open("a") as backend:
            backend.write(
                "import os\nprint(Path(os.environ['DIST_EXTRA_CONFIG']).read_text(), file=open('seen', 'w'))\n"
            )
        store.add(package, nothing)
        config = configparser.ConfigParser()
        config.read(checkout / "seen")
        for place in (config["build"]["build_base"], config["egg_info"]["egg_base"]):
            assert not Path(place).is_relative_to(checkout)

    def test_is_refused_with_the_reason(self, store: Store, package: Package, checkout: Path) -> None:
        (checkout / "backend.py").write_text("def build_wheel(*_):\n    raise RuntimeError('no compiler')\n")
        with pytest.raises(
            LockError, match=r"pace 1\.0 cannot be kept: .*a check out cannot be built: Runtim.*no comp"
        ):
            store.add(package, nothing)
        a_checkout(checkout, version="1.1")
        with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: .*a check out is version 1\.1 by now"):
            store.add(package, nothing)
        checkout.rename(checkout.with_name("moved"))
        with pytest.raises(LockError, match=r"source folder .*a check out does not exist"):
            store.add(package, nothing)


def test_a_package_on_the_path_of_the_run_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pip install --target lib` and `PYTHONPATH=lib` have it, from the folder of both."""
    quick_uv.unpack(a_wheel(tmp_path, "lag", "1.0", {"lag.py": "\n"}), tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "lib")
    lock = locks.make(make.take_inventory(), software={}, variables={})
    lag = next(package for package in lock.packages if package.name == "lag")
    arguments = argparse.Namespace(keep="all", cache=tmp_path / "cache")
    baseline._store(dataclasses.replace(lock, packages=(lag,)), sys.executable, arguments)
    assert make.store_of(arguments.cache).find(lag)
