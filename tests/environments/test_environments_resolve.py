"""Other versions of packages with those that belong to them, from an index that the tests serve and uv asks."""

import functools
import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from small_wheels import a_wheel, an_unpacked_environment

from ipexperf import live_baseline, variables
from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.environments import indexes, make, resolve
from ipexperf.errors import LockError, UsageError
from ipexperf.lock import Lock
from ipexperf.plan.options import Options

pytestmark = pytest.mark.process
HERE = ("torch-2.0", "kernels-2.0", "vision-0.2", "far-1.0")


class Served:
    """Indexes of wheels: the usual one, and PyTorch's for xpu and its nightly builds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels: dict[str, Path] = {}

    def add(self, name: str, version: str, *requires: str, index: str = "simple") -> None:
        place = self.folder / index / name
        place.mkdir(parents=True, exist_ok=True)
        wheel = a_wheel(place, name, version, {f"{name}.py": f"VERSION = {version!r}\n"}, requires)
        self.wheels[f"{name}-{version}"] = wheel
        links = (f'<a href="{path.name.replace("+", "%2B")}">{path.name}</a><br>' for path in place.glob("*.whl"))
        (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    made = Served(tmp_path_factory.mktemp("served"))
    made.add("far", "1.0")
    made.add("far", "2.0")
    made.add("torch", "5.0", "kernels==2.0", "far>=2.0")
    made.add("vision", "0.5", "torch==5.0")
    for version in ("1.0", "2.0"):
        made.add("kernels", version)
        made.add("torch", version, f"kernels=={version}", "far>=1.0")
        made.add("vision", f"0.{version[0]}", f"torch=={version}")
    made.add("kernels", "3.0+xpu", index="whl/xpu")
    made.add("torch", "3.0+xpu", "kernels==3.0+xpu", index="whl/xpu")
    made.add("vision", "0.3+xpu", "torch==3.0", index="whl/xpu")
    for date in ("20261119", "20261120"):
        made.add("torch", f"4.0.dev{date}+xpu", "kernels==3.0+xpu", index="whl/nightly/xpu")
        made.add("kernels", "3.0+xpu", index="whl/nightly/xpu")
        made.add("vision", f"0.4.dev{date}+xpu", f"torch==4.0.dev{date}", index="whl/nightly/xpu")
    return made


@pytest.fixture
def software(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lock, Inventory]]:
    """An environment of packages of which some belong together, while the indexes are served."""
    handler = functools.partial(_Silent, directory=str(served.folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv(variables.PYTORCH_INDEX, f"{address}/whl")
        inventory = make.take_inventory(an_unpacked_environment(tmp_path / "here", *(served.wheels[x] for x in HERE)))
        yield locks.make(inventory, software={}, variables={}), inventory
        server.shutdown()
        thread.join()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        del words


def test_what_belongs_together_moves_together(software: tuple[Lock, Inventory]) -> None:
    """Whichever of them was named. What only has to be new enough stays, if it is that."""
    for pin in (("torch", "1.0"), ("kernels", "1.0"), ("vision", "0.1")):
        found = resolve.with_versions(*software, (pin,))
        assert found.versions == {"torch": "1.0", "kernels": "1.0", "vision": "0.1", "far": "1.0"}
    found = resolve.with_versions(*software, (("torch", "5.0"),))
    assert found.versions == {"torch": "5.0", "kernels": "2.0", "vision": "0.5", "far": "2.0"}


def test_a_package_of_its_own_is_replaced_alone_and_no_index_is_asked(
    software: tuple[Lock, Inventory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "_resolve", lambda *_: pytest.fail("an index was asked"))
    assert resolve.with_versions(*software, (("far", "7.0"),)).versions["far"] == "7.0"
    assert resolve.with_versions(*software, (("torch", "2.0"),)) is software[0]


def test_who_was_installed_without_what_it_requires_is_left_alone(software: tuple[Lock, Inventory]) -> None:
    """Else its old pins would forbid every other version."""
    lock, inventory = software
    old = Package("old", "1.0", "", requires=("torch==0.4", "far==1.0"))
    inventory = replace(inventory, packages=(*inventory.packages, old))
    lock = replace(lock, packages=(*lock.packages, old))
    found = resolve.with_versions(lock, inventory, (("torch", "1.0"),))
    assert (found.versions["torch"], found.versions["old"], found.versions["far"]) == ("1.0", "1.0", "1.0")


def test_versions_of_pytorchs_own_index_are_found_by_their_label(
    software: tuple[Lock, Inventory], tmp_path: Path
) -> None:
    """And their environment is made from there."""
    found = resolve.with_versions(*software, (("torch", "3.0+xpu"),))
    assert found.versions == {"torch": "3.0+xpu", "kernels": "3.0+xpu", "vision": "0.3+xpu", "far": "1.0"}
    assert found.perishable.keys() == {"far"}
    here = str(tmp_path / "here" / "bin" / "python")
    environment = make.make(tmp_path, found, lambda _: None, [here], leasing="off")
    assert make.take_inventory(environment.python).versions == found.versions


def test_versions_that_do_not_go_together_are_one_sentence(software: tuple[Lock, Inventory]) -> None:
    told = r"torch==1\.0 vision==0\.2 do not go together: vision.*2 depends on torch==2\.0"
    with pytest.raises(LockError, match=told):
        resolve.with_versions(*software, (("torch", "1.0"), ("vision", "0.2")))


def test_a_nightly_build_is_named_by_its_date(
    software: tuple[Lock, Inventory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its label is that of torch here, or is given."""
    lock, inventory = software
    monkeypatch.setattr(live_baseline.locked, "current_lock", lambda _: lock)
    monkeypatch.setattr(live_baseline.make, "take_inventory", lambda _: inventory)
    found = live_baseline.lock_named("nightly:20261119+xpu", Options(), "--a")
    assert found.versions["torch"] == "4.0.dev20261119+xpu"
    assert found.versions["vision"] == "0.4.dev20261119+xpu"
    with pytest.raises(UsageError, match="torch here has no label that says for which device"):
        live_baseline.lock_named("nightly:20261119", Options(), "--a")
    lock = replace(lock, packages=(*(x for x in lock.packages if x.name != "torch"), Package("torch", "3.0+xpu", "")))
    with pytest.raises(UsageError, match="has no torch of 2026 for"):
        live_baseline.lock_named("nightly:2026+xpu", Options(), "--a")
    with pytest.raises(UsageError, match=r"has no torch of 20261121 .*the last there: .*20261120\+xpu"):
        live_baseline.lock_named("nightly:20261121", Options(), "--a")


@pytest.mark.parametrize(
    ("package", "address"),
    [
        (("torch", "2.9.0+xpu"), ["https://download.pytorch.org/whl/xpu"]),
        (("torchvision", "0.26.0.dev20261120+cu130"), ["https://download.pytorch.org/whl/nightly/cu130"]),
        (
            ("intel-extension-for-pytorch", "2.8.10+xpu"),
            ["https://pytorch-extension.intel.com/release-whl/stable/xpu/us"],
        ),
        (("torch", "2.9.0"), []),
        (("torch", "2.9.0+gitabcdef"), []),
    ],
)
def test_the_label_of_a_version_names_its_index(
    package: tuple[str, str], address: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variables.PYTORCH_INDEX, raising=False)
    assert indexes.of_packages([package, package]) == address
