"""The store: installed packages as wheels, by content, so that an environment can be made again."""

import configparser
import dataclasses
import os
import shutil
import sys
from pathlib import Path

import pytest
from made_wheels import a_checkout, a_full_disk, an_environment, installed_files, package_in, packages_folder
from small_wheels import a_wheel, unpack

from ipexperf import acceptance
from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import make
from ipexperf.environments.store import Store
from ipexperf.errors import LockError

pytestmark = pytest.mark.process

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


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def pace(wheels: Path) -> Package:
    """An installed package with all kinds of files. No test changes it."""
    return package_in(an_environment(wheels / "pace", a_wheel(wheels, "pace", "1.0", FILES)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "a cache" / "store")


def nothing(_: str) -> None:
    pass


def again(store: Store, package: Package) -> Path:
    """A new environment that has the package from the store."""
    shutil.rmtree(store.folder.with_name(make.FOLDER), ignore_errors=True)
    here = make.take_inventory()
    lock = locks.Lock(python=here.python, platform=here.platform, packages=(package,))
    return make.make(store.folder.parent, lock, nothing, leasing="off").folder


def test_a_kept_package_is_the_same_elsewhere(store: Store, pace: Package) -> None:
    """And tells again where it came from."""
    store.add(pace, nothing)
    environment = again(store, pace)
    assert installed_files(environment) == installed_files(Path(pace.folder).parents[2])
    there = package_in(environment)
    assert (there.content, there.origin) == (pace.content, "file")


def test_a_package_is_kept_once_and_found_by_name_version_and_content(store: Store, pace: Package) -> None:
    assert store.find(pace) is None
    lines: list[str] = []
    store.add(pace, lines.append)
    store.add(pace, lines.append)
    assert lines == ["keeping pace 1.0"]
    assert [path.name for path in store.folder.iterdir()] == [pace.content]
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
    assert list(store.folder.iterdir()) == []


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
    assert list(store.folder.iterdir()) == []


class TestAnEditableCheckout:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        return a_checkout(tmp_path / "a check out")

    @pytest.fixture
    def package(self, checkout: Path, tmp_path: Path) -> Package:
        return package_in(an_environment(tmp_path / "environment", "--editable", checkout))

    def test_is_built_anew_each_time(self, store: Store, package: Package, checkout: Path, tmp_path: Path) -> None:
        """And kept under its recorded content."""
        lines: list[str] = []
        store.add(package, lines.append)
        installed = package_in(again(store, package))
        assert (installed.name, installed.version, installed.origin) == (package.name, package.version, "file")
        assert installed.content != package.content
        assert package_in(tmp_path / "environment") == package
        (checkout / "pace.py").write_text("TIMES = 2\n")
        store.add(package, lines.append)
        assert lines == ["keeping pace 1.0"] * 2
        after = again(store, package)
        assert (packages_folder(after) / "pace.py").read_text() == "TIMES = 2\n"

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
    unpack(a_wheel(tmp_path, "lag", "1.0", {"lag.py": "\n"}), tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "lib")
    lock = locks.make(make.take_inventory(), software={}, variables={})
    lag = next(package for package in lock.packages if package.name == "lag")
    terms = acceptance.Terms(tmp_path / "baselines", tmp_path / "cache", "it is right", keep="all")
    acceptance.store_packages(dataclasses.replace(lock, packages=(lag,)), sys.executable, terms, nothing)
    assert make.store_of(terms.cache).find(lag)
