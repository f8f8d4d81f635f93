"""Options: each is taken from the first place that has it, and read once, strictly."""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ipexperf.errors import UsageError
from ipexperf.plan import matrix, options, reading
from ipexperf.plan.options import Options

ROOT = Path(__file__).parents[2]


def resolved(*arguments: str, environment: Mapping[str, str] | None = None, ini: str = "") -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    reading.add_arguments(parser.add_argument)
    given = vars(parser.parse_args(arguments))
    return reading.resolve(given.get, shlex.split(ini), environment or {})


def test_nothing_asked_gives_the_defaults() -> None:
    """Where nobody asks for anything, the defaults hold, in their real types, and no source is named."""
    found = resolved()
    assert (found.preset, found.samples, found.seconds, found.timeout) == ("quick", 12, 0.6, 600.0)
    assert (found.db, found.baselines, found.without, found.load) == ("ipexperf.db", Path("baselines"), (), ())
    assert (found.model, found.launches, found.budget, found.data) == (None, None, None, None)
    assert found.sources == {}


@pytest.mark.parametrize(
    ("flag", "name", "line", "variable", "ini", "first", "second", "third"),
    [
        ("perf-db", "db", "a.db", "b.db", "c.db", "a.db", "b.db", "c.db"),
        ("perf-data", "data", "a", "b", "c", Path("a"), Path("b"), Path("c")),
        ("perf-preset", "preset", "full", "nightly", "quick", "full", "nightly", "quick"),
        ("device", "device", "a,b", "c", "d,e", ("a", "b"), ("c",), ("d", "e")),
    ],
)
def test_command_line_before_environment_before_ini(
    flag: str, name: str, line: str, variable: str, ini: str, first: Any, second: Any, third: Any
) -> None:
    """The command line wins over the environment, which wins over the ini file; each gives the real type."""
    environment, settings = {f"IPEXPERF_{name.upper()}": variable}, f"--{flag}={ini}"
    for found, value, source in (
        (resolved(f"--{flag}", line, environment=environment, ini=settings), first, f"--{flag}"),
        (resolved(environment=environment, ini=settings), second, f"IPEXPERF_{name.upper()}"),
        (resolved(ini=settings), third, f"ipexperf: --{flag}"),
    ):
        assert getattr(found, name) == value
        assert type(getattr(found, name)) is type(value)
        assert found.sources == {name: source}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--perf-launches=0", "--perf-launches: expected a whole number of at least 1, got '0'"),
        ("--perf-batch=many", "--perf-batch: expected a whole number of at least 1, got 'many'"),
        ("--perf-seconds=nan", "--perf-seconds: expected seconds over 0, got 'nan'"),
        ("--perf-seconds=soon", "--perf-seconds: expected seconds over 0, got 'soon'"),
        ("--model=' , '", "--model: expected a comma list of names, got nothing"),
        ("--perf-launches", "--perf-launches: expected one argument"),
        ("mynets:small", "there is no option mynets:small: `ipexperf cases --help` lists all"),
    ],
)
def test_what_the_ini_file_cannot_mean_is_refused(words: str, told: str) -> None:
    """The sentence names the key and the option."""
    with pytest.raises(UsageError) as refused:
        resolved(ini=words)
    assert str(refused.value) == f"ipexperf: {told}"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["IPEXPERF_LEASE_"], "IPEXPERF_LEASE_ (did you mean IPEXPERF_LEASE?)"),
        (["IPEXPERF_DEVISE", "HOME"], "IPEXPERF_DEVISE (did you mean IPEXPERF_DEVICE?)"),
        (["IPEXPERF_ZQX", "IPEXPERF_DBB"], "IPEXPERF_DBB (did you mean IPEXPERF_DB?), IPEXPERF_ZQX"),
    ],
)
def test_a_variable_that_nobody_reads_is_named(names: list[str], told: str) -> None:
    """With the nearest name that there is. Somebody else's variables are no business of ours."""
    assert reading.unknown_variables(dict.fromkeys(names, "x")) == f"ignored: there is no variable {told}"


def test_every_variable_that_the_sources_name_is_known() -> None:
    """In the package, the documents, the suites and the benchmarks."""
    folders = [ROOT / name for name in ("ipexperf", "docs", "suites", "benchmarks")]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".md", ".yml"}]
    names = {name for path in paths for name in re.findall(r"\bIPEXPERF_[A-Z_]*[A-Z]\b", path.read_text())}
    names -= {"IPEXPERF_DEVISE"}  # the documents' example of a misspelled one
    assert {"IPEXPERF_LEASES", "IPEXPERF_DB"} <= names
    assert reading.unknown_variables(dict.fromkeys([*names, "IPEXPERF_GOLDEN"], "x")) == ""


def test_a_repeated_option_adds_up() -> None:
    """A comma list and a repetition mean the same, in the order in which they were given."""
    assert resolved("--dtype", "fp32,bf16", "--dtype", "fp16").dtype == ("fp32", "bf16", "fp16")


@pytest.mark.parametrize(
    ("words", "variable", "ini"),
    [
        (("--device", "cpu", "--device", "xpu:1"), {}, ""),
        ((), {"IPEXPERF_DEVICE": "cpu,xpu:1"}, ""),
        ((), {}, "cpu,xpu:1"),
    ],
)
def test_a_device_may_have_an_index_as_torch_writes_it(
    words: tuple[str, ...], variable: dict[str, str], ini: str
) -> None:
    """Wherever it is set. The device has its plain name; without an index it is the first card."""
    found = resolved(*words, environment=variable, ini=f"--perf-device={ini}" if ini else "")
    assert found.device == ("cpu", "xpu")
    assert [found.index(name) for name in ("cpu", "xpu", "cuda")] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("xpu:1,cpu,xpu:2", "--device: xpu:1 and xpu:2: a run measures on one card of a kind"),
        ("xpu,xpu:1", "--device: xpu:0 and xpu:1: a run measures on one card of a kind"),
        ("xpu:-1", "--device: xpu:-1: expected a whole number of at least 0, got '-1'"),
        ("xpu:", "--device: xpu:: expected a whole number of at least 0, got ''"),
        ("cuda:GPU-a", "--device: cuda:GPU-a: expected a whole number of at least 0, got 'GPU-a'"),
        ("cpu:0", "--device: cpu:0: cpu has no index: only a card has one, as in xpu:1"),
        ("all:1", "--device: all:1: all has no index: only a card has one, as in xpu:1"),
        ("xqu:1", "--device: unknown device 'xqu': did you mean xpu?"),
    ],
)
def test_an_index_that_no_card_can_have_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        matrix.check_names(resolved("--device", text))
    assert str(refused.value) == told


def told_by_help(axis: str) -> list[str]:
    [option] = [option for option in options.OPTIONS if option.name == axis]
    return option.help.removesuffix(", or all (A,B; repeatable)").split(", ")


@pytest.mark.parametrize("axis", ["device", "dtype", "mode", "stack"])
def test_help_names_what_the_registries_hold(axis: str) -> None:
    """The help text of an axis names every value that is shipped, and no other."""
    assert tuple(told_by_help(axis)) == matrix.names(axis)


def test_help_names_models_that_exist() -> None:
    """The models that the help text gives as examples are shipped."""
    examples = told_by_help("model")[0].removeprefix("such as ").split(",")
    assert set(examples) <= set(matrix.names("model"))
    assert len(examples) == 2


@pytest.mark.process
def test_declaring_the_options_imports_no_leaf() -> None:
    """Every pytest run declares the options: their help texts import neither a registry nor what is in it."""
    code = "import sys, ipexperf.plugin, ipexperf.plan.options; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name for name in told.stdout.split() if name.startswith("ipexperf.bench")}
    assert loaded == {"ipexperf.bench"}
