"""What is recorded of variables and libraries: values that tune, digests of content, no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench.machine import libraries, variables


@pytest.mark.parametrize(
    "text",
    ["", "baseline", "OMP_NUM_THREADS=1", "TORCHINDUCTOR_FREEZING=1 dtype=bf16", "python=/opt/a/bin/python level=O0",
     "FLAG=on", "RUNS=12", "ONEAPI_DEVICE_SELECTOR=level_zero:0", "PYTHONPATH=/opt/a:/opt/b", "X=hidden-1a2b3c4d"],
)  # fmt: skip
def test_an_arm_without_secrets_is_recorded_as_it_was_written(text: str) -> None:
    assert variables.masked_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["MY_API_TOKEN={}", "'MY_API_TOKEN={}'", 'MY_API_TOKEN="{}"', "OMP_NUM_THREADS=1 PLAIN={} dtype=bf16",
     "TORCH_HUB_TOKEN={}", "OMP_SECRET={}", "URL={}", "éMY={}", "ZENODO={}", "API_KEY=12", "X=hidden-{}"],
)  # fmt: skip
def test_of_a_value_that_may_be_a_secret_only_a_digest_is_recorded(text: str) -> None:
    """A digest, because two values are still two arms."""
    one, same, other = (variables.masked_text(text.format(value)) for value in ("hunter22", "hunter22", "s3cret55"))
    assert one == same
    assert "hunter22" not in one
    assert "=hidden-" in one
    assert (one != other) == ("{}" in text)
    assert variables.masked_text(one) == one


@pytest.mark.parametrize(
    "word",
    ["--perf-against=MY_TOKEN={}", "MY_TOKEN={}", "-oipexperf=--perf-against=MY_TOKEN={}", "MY_TOKEN='{}",
     "--a=MY_TOKEN='x {}'", "--perf-against=baseline MY_TOKEN={}",
     "ipexperf=--perf-model=x --perf-against=MY_TOKEN={}", "ipexperf=--perf-against='baseline MY_TOKEN={}'"],
)  # fmt: skip
def test_a_command_line_is_recorded_without_the_secrets_of_its_arms(word: str) -> None:
    [shown] = variables.masked_command([word.format("hunter22")])
    assert "hunter22" not in shown
    assert "MY_TOKEN=hidden" in shown


def test_other_words_of_a_command_line_are_recorded_as_they_are() -> None:
    words = ["suites/", "--perf-knobs", "level=O0", "-k", "not it's", "--perf-db=a b.db", "-o", "addopts=-q"]
    assert variables.masked_command(words) == words


def test_a_variable_with_the_beginning_of_a_library_and_the_name_of_a_secret_tunes_nothing() -> None:
    shell = {"OMP_NUM_THREADS": "2", "URL": "x", "ZENODO_TOKEN": "x", "TORCH_HUB_TOKEN": "x", "MKLROOT": "/opt"}
    assert variables.tuned(shell) == {"MKLROOT": "/opt", "OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("name", "tunes"),
    [("PYTHONMALLOC", True), ("PYTHONOPTIMIZE", True), ("PYTHONPROFILEIMPORTTIME", True), ("PYTHON_GIL", True),
     ("TBB_NUM_THREADS", True), ("OPENBLAS_NUM_THREADS", True), ("LD_AUDIT", True),
     ("CUDA_LAUNCH_BLOCKING", True), ("NCCL_ALGO", True), ("NCCL_VERSION", False), ("CUDA_HOME", False),
     ("TORCHINDUCTOR_CACHE_DIR", False), ("TORCH_CUDA_ARCH_LIST", False), ("PYTHONPATH", False),
     ("PYTHONUNBUFFERED", False), ("LD_LIBRARY_PATH", False)],
)  # fmt: skip
def test_variables_that_change_how_python_computes_are_recorded(name: str, tunes: bool) -> None:  # noqa: FBT001
    """Those that say where things lie are not: each machine has its own."""
    assert variables.tunes(name) == tunes


def test_libraries_that_variables_or_the_system_put_first_have_digests(tmp_path: Path) -> None:
    """Those of the packages have none here: the inventory describes packages."""
    for name in ("libslow.so", "libmkl_core.so.2", "libevery.so", "libtorch.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "libgomp.so.1").write_text("gomp")
    everywhere = tmp_path / "ld.so.preload"
    everywhere.write_text(f"{tmp_path}/libevery.so\n")
    files = ["libslow.so", "libmkl_core.so.2", "libevery.so", "libtorch.so", "path/libgomp.so.1"]
    maps = "\n".join(f"7f00-7f01 r-xp 00000000 fe:01 12   {tmp_path}/{file}" for file in files * 2)
    variables = {"LD_PRELOAD": f"{tmp_path}/libslow.so:libc.so", "LD_LIBRARY_PATH": f":{tmp_path}/path/:/nowhere"}
    found = libraries.preloaded(maps, variables, everywhere)
    assert list(found) == ["libevery.so", "libslow.so", "libgomp.so.1"]
    assert len(set(found.values())) == 3
    assert libraries.preloaded(maps, {}, tmp_path / "none") == {}


def test_a_preloaded_library_with_another_content_has_another_digest(tmp_path: Path) -> None:
    library = tmp_path / "libfast.so"
    digests = []
    for content in ("one", "two"):
        library.write_text(content)
        libraries._digest.cache_clear()  # a process that loaded it keeps what it loaded
        maps = f"7f00-7f01 r-xp 00000000 fe:01 12 {library}"
        digests.append(libraries.preloaded(maps, {"LD_PRELOAD": str(library)}, tmp_path / "none")["libfast.so"])
    assert digests[0] != digests[1]
