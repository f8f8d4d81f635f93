"""Arms that name a network of the user's own, or a tree of files."""

from pathlib import Path

import pytest

from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.networks import own
from ipexperf.case import NetworkCase
from ipexperf.errors import UsageError
from ipexperf.plan import drivers
from ipexperf.plan.arms import parse
from ipexperf.plan.reading import resolve

NETWORK = "def small():\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("good_arm", "bad_arm"):
        (tmp_path / f"{name}.py").write_text(NETWORK)
    return tmp_path


def test_an_arm_with_a_network_of_the_users_own_has_its_data_and_size(folder: Path) -> None:
    """The case that was planned is that of another network."""
    good, bad = own.register("good_arm.py:small@3x8x8"), own.register("bad_arm.py:small@3x16x16")
    planned = NetworkCase(bad, "cpu", "fp32", "infer", "stock", 32, 16, 1, bad)
    case, _ = parse("model=good_arm.py:small@3x8x8", "--a").case(planned, Facts("3.11", {"torch": "2.8.0"}))
    assert (case.axes["model"], case.inputs) == (good, {"batch": 32, "size": 8, "data": good})


def test_the_network_of_an_arm_is_loaded_by_all_workers(folder: Path) -> None:
    options = resolve({"ipexperf_against": "model=good_arm.py:small"}.get)
    assert options.load == ("good_arm.py:small",)


def test_a_folder_is_a_source_unless_it_is_an_environment(folder: Path) -> None:
    (folder / "checkout").mkdir()
    (folder / "venv" / "bin").mkdir(parents=True)
    assert parse("checkout OMP_NUM_THREADS=1", "--a").source == "checkout"
    assert parse("git:main", "--a").source == "git:main"
    with pytest.raises(UsageError, match="name the interpreter in it"):
        parse("venv", "--a")


def test_a_driver_is_the_variables_that_load_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    (folder / "new/igc").mkdir(parents=True)
    (folder / "new/igc/libigc.so.2").touch()
    (folder / "new" / drivers.LIBRARY).symlink_to("/proc/self/exe")
    words = parse("driver:new A=1", "--b")
    paths = {"LD_LIBRARY_PATH": f"{folder}/new:{folder}/new/igc:/mine"}
    assert words.variables == {"A": "1", "ZE_ENABLE_ALT_DRIVERS": f"{folder}/new/{drivers.LIBRARY}", **paths}
    assert words.text == "driver:new A=1"
