"""The yardstick: an environment named by its content, whose worker takes turns with a case."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import conduct_play
import pytest

from ipexperf import cli
from ipexperf.bench import loading
from ipexperf.bench.api import Settings
from ipexperf.bench.process import yardstick as works
from ipexperf.case import Case
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import Spell, Stepper, Turn, Yardstick
from ipexperf.conduct import process, yardstick
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.yardstick import Stick
from ipexperf.errors import UsageError
from ipexperf.result import Launch, Sample

CASE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")


def wheel(folder: Path, code: str) -> Path:
    """A wheel with one file."""
    path, info = folder / "anchor-1.0-py3-none-any.whl", "anchor-1.0.dist-info"
    digest = base64.urlsafe_b64encode(hashlib.sha256(code.encode()).digest()).rstrip(b"=").decode()
    files = {
        "anchor.py": code,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: anchor\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": f"anchor.py,sha256={digest},{len(code)}\n{info}/METADATA,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def made(cache: Path, code: str | None = None) -> dict[str, Any]:
    """A yardstick with this package, or without any, and its description."""
    cache.mkdir(exist_ok=True)
    packages = cache / "packages.txt"
    packages.write_text(f"{wheel(cache, code)}\n" if code else "# nothing\n")
    python = yardstick.make(cache, packages, lambda _: None)
    return yardstick.ask(str(python))


@pytest.fixture(scope="module")
def stick(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a yardstick without any package."""
    cache = tmp_path_factory.mktemp("cache")
    made(cache)
    return yardstick.find(cache)


def conditions(fake: str, **more: Any) -> Conditions:
    loading.load((fake,))
    return Conditions(Settings(load=(fake,)), timeout=60, samples=6, seconds=0.01, **more)


@pytest.mark.process
def test_a_yardstick_is_named_by_its_content(tmp_path: Path) -> None:
    """The same files in another folder have the same name. One changed byte gives another."""
    one, same, other = (
        made(tmp_path / name, code) for name, code in (("a", "X = 1\n"), ("b", "X = 1\n"), ("c", "X = 2\n"))
    )
    assert one["packages"] == other["packages"] == ["anchor 1.0"]
    assert one["content"] == same["content"] != other["content"]


def test_a_changed_work_is_another_yardstick(monkeypatch: pytest.MonkeyPatch) -> None:
    found = works.content([("torch 2.8", "abc")])
    assert found == works.content([("torch 2.8", "abc")]) != works.content([("torch 2.8", "abd")])
    monkeypatch.setattr(works, "VERSION", works.VERSION + 1)
    assert works.content([("torch 2.8", "abc")]) != found


@pytest.mark.process
def test_a_launch_takes_turns_with_the_yardstick(fake: str, stick: str) -> None:
    """Its time is in seconds and in steps of the yardstick, which the environment names."""
    done, environment = conduct_play.launch(CASE, 0, conditions(fake, yardstick=stick), accuracy=False)
    assert (done.outcome, done.reason) == ("ok", "")
    assert len(done.samples) >= 6
    assert (done.gate["arms"], done.gate["turns"] + done.gate["turns_dropped"] > 0) == (2.0, True)
    assert done.metrics["relative_time"] > 0
    assert done.metrics["yardstick_time"] > 0
    found = environment["yardstick"]
    assert (len(found["content"]), found["packages"], found["work"]) == (12, [], "arithmetic")


@pytest.mark.process
def test_a_launch_without_a_yardstick_has_no_relative_time(fake: str) -> None:
    done, environment = conduct_play.launch(CASE, 0, conditions(fake), accuracy=False)
    assert "yardstick" not in environment
    assert not {"relative_time", "yardstick_time"} & set(done.metrics)


@pytest.mark.process
def test_the_reason_names_the_yardstick_if_that_fails(fake: str, tmp_path: Path) -> None:
    """The case itself is not at fault."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    done, _ = conduct_play.launch(CASE, 0, conditions(fake, yardstick=str(broken)), accuracy=False)
    assert (done.outcome, done.reason) == ("error", "the yardstick: crashed: ended with exit status 3")


class Idle:
    """A worker that stands in for a case's, after its turns."""

    def ask(self, do: str) -> dict[str, Any]:
        assert do == "memory"
        return {"peak_memory": 0}

    def log(self) -> str:
        return ""


def beside(fake: str, slow: Sequence[float]) -> Launch:
    """A launch on a machine that slows the case and the yardstick by the same factor in each turn."""
    arm = Arm(CASE, conditions(fake), prove=False)
    with contextlib.ExitStack() as stack:
        case, stick = Stepper(arm, stack), Yardstick(arm, stack)
        case._worker = Idle()  # type: ignore[assignment] # what is asked of a worker is all that is needed
        case.reply = {"items": 1}
        stick._stick = Stick(Idle())  # type: ignore[arg-type]
        own, others = (
            Spell(tuple(Turn.of([Sample(step * times, 0.0, 0.0)], 1) for times in slow), {}, "") for step in (1.0, 3.0)
        )
        case.yardstick = stick, own
        return case.launch(others)


def test_a_slow_phase_of_the_machine_cancels_in_the_relative_time(fake: str) -> None:
    """It becomes five times slower in the middle: the seconds of the case change, the relative time does not."""
    done = beside(fake, (1.0, 1.0, 5.0, 5.0))
    assert {one.wall for one in done.samples} == {3.0, 15.0}
    assert done.metrics["step_time"] == 9.0
    assert done.metrics["relative_time"] == pytest.approx(3.0)
    assert done.metrics["yardstick_time"] == pytest.approx(3.0)
    assert math.isnan(beside(fake, (1.0, math.inf)).metrics["relative_time"])


def test_variables_of_the_shell_do_not_tune_the_yardstick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that slows the libraries of both would cancel itself. Only the case has it."""
    for name in ("ONEDNN_MAX_CPU_ISA", "LD_PRELOAD", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    assert process.environment_of(None, None)["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    bare = process.environment_of(None, None, bare=True)
    assert not {"ONEDNN_MAX_CPU_ISA", "LD_PRELOAD", "OMP_NUM_THREADS"} & set(bare)
    assert (bare["OMP_WAIT_POLICY"], "PATH" in bare) == ("PASSIVE", True)


@pytest.mark.process
def test_a_failed_installation_leaves_the_old_yardstick(tmp_path: Path) -> None:
    """The list is missing, or names a package that does not exist: one sentence."""
    before = made(tmp_path)["content"]
    with pytest.raises(UsageError, match="there is no such list of packages"):
        yardstick.make(tmp_path, tmp_path / "nowhere.txt", lambda _: None)
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(f"{tmp_path / 'nothing-1.0-py3-none-any.whl'}\n")
    with pytest.raises(UsageError, match=r"wrong\.txt cannot be installed: ERROR"):
        yardstick.make(tmp_path, wrong, lambda _: None)
    assert yardstick.ask(yardstick.find(tmp_path))["content"] == before
    assert not (tmp_path / "yardstick.part").exists()


def never(*_: object) -> None:
    raise AssertionError("nothing is installed where nothing can be written")


def quick(*_: object) -> None:
    """Replaces the installation by nothing."""


def locked(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write anywhere")
    return folder


def a_file(path: Path) -> Path:
    path.write_text("somebody's")
    return path


@pytest.mark.parametrize(
    ("cache", "told"),
    [
        (lambda path: a_file(path / "cache"), "cache is not a folder: name one with --cache"),
        (lambda path: a_file(path / "cache") / "in", r"no yardstick can be made in .*: .*Not a directory"),
        (lambda path: locked(path / "cache"), r"no yardstick can be made in .*: .*Permission denied"),
        (lambda path: path / "a:b", r"no yardstick can be made in .*: .*PATH separator"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_before_the_installation(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cache: Callable[[Path], Path],
    told: str,
) -> None:
    """One sentence and exit status 2, not a traceback after minutes."""
    monkeypatch.setattr(subprocess, "run", never)  # pip
    where = cache(tmp_path)
    assert cli.main(["yardstick", "make", "--cache", str(where)]) == cli.USAGE_ERROR
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("ipexperf: ")
    assert re.search(told, error)
    assert not (tmp_path / "cache").is_file() or (tmp_path / "cache").read_text() == "somebody's"


@pytest.mark.parametrize("left", ["yardstick.old", "yardstick.part"])
def test_remains_of_an_earlier_try_are_removed(tmp_path: Path, left: str) -> None:
    for name in ("yardstick", left):
        (tmp_path / name / "lib").mkdir(parents=True)
        a_file(tmp_path / name / "lib" / "old")
    yardstick.make(tmp_path, yardstick.LIST, lambda _: None, install=quick)
    assert [path.name for path in tmp_path.iterdir()] == ["yardstick"]
    assert not (tmp_path / "yardstick" / "lib" / "old").exists()


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    cache, shared = tmp_path / "cache", tmp_path / "shared"
    for folder in (cache, shared):
        folder.mkdir()
    kept = a_file(shared / "kept")
    (cache / "yardstick").symlink_to(shared)
    python = yardstick.make(cache, yardstick.LIST, lambda _: None, install=quick)
    assert [path.name for path in cache.iterdir()] == ["yardstick"]
    assert not (cache / "yardstick").is_symlink()
    assert python.exists()
    assert kept.read_text() == "somebody's"


def test_a_failed_rename_leaves_the_old_yardstick(tmp_path: Path) -> None:
    """The second of two renames fails, and the first is undone."""
    (tmp_path / "yardstick").mkdir()
    a_file(tmp_path / "yardstick" / "old")
    with pytest.raises(UsageError, match=r"no yardstick can be made in .*: .*No such file"):
        yardstick.make(tmp_path, yardstick.LIST, lambda _: None, install=lambda part, _: shutil.rmtree(part))
    assert [path.name for path in tmp_path.rglob("*")] == ["yardstick", "old"]


def test_an_old_yardstick_that_cannot_be_deleted_is_only_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is complete and in its place by then."""

    def spoilt(path: Path, **_: object) -> None:
        if path.name == "yardstick.old":
            raise PermissionError(13, "Permission denied", str(path / "lib"))

    (tmp_path / "yardstick").mkdir()
    a_file(tmp_path / "yardstick" / "old")
    monkeypatch.setattr(yardstick.shutil, "rmtree", spoilt)
    said: list[str] = []
    assert yardstick.make(tmp_path, yardstick.LIST, said.append, install=quick).exists()
    assert not (tmp_path / "yardstick" / "old").exists()
    assert said[-1].startswith(
        f"the yardstick is made; what was there before is left in {tmp_path / 'yardstick.old'}: "
    )


@pytest.mark.process
def test_the_command_makes_and_shows_a_yardstick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the name that baselines will have, and every package."""
    packages = tmp_path / "packages.txt"
    packages.write_text(f"{wheel(tmp_path, 'X = 1')}\n")
    cache = ("--cache", str(tmp_path / ".ipexperf"))
    assert cli.main(["yardstick", "show", *cache]) == cli.USAGE_ERROR
    assert "make one with `ipexperf yardstick make`" in capsys.readouterr().err
    assert cli.main(["yardstick", "make", "--list", str(packages), *cache]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2:] == ["  anchor 1.0"]
    assert cli.main(["yardstick", "show", *cache]) == 0
    assert capsys.readouterr().out == out


def test_an_unknown_work_is_refused() -> None:
    with pytest.raises(Exception, match="the yardstick has no work 'sorting': choose from convolution, product"):
        works.Yardstick("sorting", "float32", 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("work", ["convolution", "product"])
@pytest.mark.torch
def test_the_work_of_a_yardstick_has_the_given_dtype(work: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    answer = works.WORKS[work](dtype)()
    assert answer.dtype is getattr(torch, dtype)
    assert bool(torch.isfinite(answer).all())


def test_the_default_list_pins_every_package() -> None:
    lines = [line for line in yardstick.LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if line.count("==") != 1] == []
    assert any(line.startswith("torch==") for line in lines)
