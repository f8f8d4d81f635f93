"""The files of other tools: how a document of each format is known, its shape, and what reads it."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ipexperf.errors import UsageError
from ipexperf.history import kinds
from ipexperf.redaction import redacted
from ipexperf.result import THROUGHPUT
from ipexperf.sentences import few

SECONDS = {
    **dict.fromkeys(("s", "sec", "seconds"), 1.0),
    **dict.fromkeys(("ms", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "\u00b5s", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanoseconds"), 1e-9),
}
"""The units of time that tools write."""
SHOWN = 60
"""Characters of a wrong value in a message."""
EXPECTED: dict[type, str] = {
    str: "a text",
    float: "a finite number",
    datetime: "a date and time",
    dict: "an object",
    list: "a list",
}
UNNAMED = "unnamed"
"""The machine of a run that does not name it."""
Document: TypeAlias = Mapping[str, Any]


class Result(NamedTuple):
    """A result of a run, with the value of each process that its tool tells of."""

    name: str
    values: Sequence[float]
    unit: str = "s"
    higher_is_better: bool | None = False
    """None if the format does not say."""
    beside: Mapping[str, Sequence[float]] = {}
    """Values of other metrics, by their names here."""
    device: str = "cpu"


class ToolRun(NamedTuple):
    """One run of another tool."""

    machine: str
    """What its times may be compared with: a machine, and an environment where the tool names them."""
    results: Sequence[Result | None]
    """None is a result without a number: failed, skipped, or of a benchmark that is another one by now."""
    started_at: datetime | None = None
    """None if its file does not say when it was."""
    commit: str | None = None
    branch: str | None = None
    hardware: Mapping[str, Any] = {}
    software: Mapping[str, Any] = {}
    grows: bool = False
    """True if its tool adds results to it later: known by its machine, commit and time. Others are by their results."""


class Format(NamedTuple):
    """A format of a tool. Its shape is checked before it is read."""

    name: str
    shape: Any
    """It has a key or more that no document of another format has."""
    read: Callable[[Any, Path], Iterable[ToolRun]]


def files(path: Path) -> list[Path]:
    """Return a file itself, or the JSON files of a folder: the folder itself, which cannot be read, if it has none."""
    return (sorted(path.rglob("*.json")) or [path]) if path.is_dir() else [path]


def read(path: Path) -> tuple[str, list[ToolRun]]:
    """Return the name of a file's format, and its runs. Raise UsageError, which says what is wrong and where."""
    if path.is_dir():
        raise UsageError("there is no JSON file in this folder")
    try:
        document = _parsed(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if isinstance(document, dict) and ({"machine", "arch", "os"} <= set(document) or _described(document)):
        return "asv", []  # what it says of its benchmarks and machines, without results
    for tool in FORMATS:
        if _known(document, tool.shape):
            document = [document] if isinstance(tool.shape, list) and isinstance(document, dict) else document
            if wrong := _misfit(document, tool.shape):
                raise UsageError(wrong)
            try:
                return tool.name, [*tool.read(document, path)]
            except (OverflowError, ValueError, OSError) as error:  # a number that is no date
                raise UsageError(f"it has a date that cannot be: {error}") from None
    keys = few([repr(key) for key in document], 5) if isinstance(document, dict) else "no keys"
    names = ", ".join(dict.fromkeys(tool.name for tool in FORMATS))
    raise UsageError(f"it is of none of the formats {names}: it has {keys or 'nothing'}")


def _parsed(text: str) -> Any:
    """Return the document of a text: one of JSON, or one a line, whose lists are joined."""
    if not text.strip():
        raise UsageError("it is empty")
    try:
        return json.loads(text)
    except ValueError as error:
        whole = str(error)
    documents: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            document = json.loads(line) if line.strip() else []
        except ValueError as error:
            where = whole if number == 1 else f"line {number}: {error}"
            raise UsageError(f"it is not whole JSON: {where}") from None
        documents += document if isinstance(document, list) else [document]
    return documents


def _misfit(value: Any, shape: Any, place: str = "") -> str:
    """Return where a value is not of a shape, and what is expected there, or an empty text.

    A shape is a type, a Literal, a list of one shape, or keys with the shapes of their members. The member of a key
    that ends with `?` may be missing or null.
    """
    found: Iterator[str] = iter(())
    if isinstance(shape, dict) and isinstance(value, dict):
        names = {key: key.rstrip("?") for key in shape}
        wanted = [key for key in shape if not key.endswith("?") or value.get(names[key]) is not None]
        found = (_misfit(value.get(names[key]), shape[key], f"{place}.{names[key]}".lstrip(".")) for key in wanted)
    elif isinstance(shape, list) and isinstance(value, list):
        found = (_misfit(member, shape[0], f"{place}[{number}]") for number, member in enumerate(value))
    elif not (_moment(value) if shape is datetime else value is not None and kinds.fits(value, shape)):
        plain = {list: "a list", dict: "an object", type(None): "missing"}
        told = plain.get(type(value)) or repr(value)[:SHOWN]
        choices = " or ".join(map(str, get_args(shape)))
        kind = type(shape) if isinstance(shape, dict | list) else shape
        expected = f"{choices}, which is all that this program reads" if choices else EXPECTED[kind]
        return f"{place or 'the file'} is {told}, expected {expected}"
    return next(filter(None, found), "")


def _moment(text: Any) -> datetime | None:
    """Return a moment, in UTC where it names no zone, or None if it is none."""
    try:
        moment = datetime.fromisoformat(str(text).replace("/", "-"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (OverflowError, ValueError):
        return None


def _since_1970(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def _words(*words: object) -> str:
    """Join what there is of these words."""
    return " ".join(str(word) for word in words if word)


def _known(document: Any, shape: Any) -> bool:
    """Whether a document, or the first one of a list, has the keys that this shape needs."""
    inside = shape[0] if isinstance(shape, list) else shape
    first = document[0] if document and isinstance(document, list) else document
    return {key for key in inside if not key.endswith("?")} <= _keys(first)


def _keys(document: Any) -> set[str]:
    return set(document) if isinstance(document, dict) else set()


def _pytest_benchmark(document: Document, _: Path) -> Iterator[ToolRun]:
    machine, commit = document["machine_info"], document.get("commit_info") or {}
    cpu = machine.get("cpu") or {}
    name, branch = cpu.get("brand_raw") or cpu.get("brand"), commit.get("branch")
    yield ToolRun(
        machine=_words(name, cpu.get("count")) if name else machine.get("node") or UNNAMED,
        results=[Result(bench["fullname"], [bench["stats"]["median"]]) for bench in document["benchmarks"]],
        started_at=_moment(document["datetime"]),
        commit=None if commit.get("id") == "unknown" else commit.get("id"),
        branch=None if branch in ("(unknown)", "(detached head)") else branch,
        hardware={"host": machine.get("node"), "cpu": name, "cores": cpu.get("count")},
        software={"python": machine.get("python_version"), "pytest-benchmark": document.get("version")},
    )


_PYTEST_BENCHMARK = {
    "machine_info": {"node?": str, "python_version?": str, "cpu?": dict},
    "commit_info?": {"id?": str, "branch?": str},
    "benchmarks": [{"fullname": str, "stats": {"median": float}}],
    "datetime": datetime,
}


def _google_benchmark(document: Document, _: Path) -> Iterator[ToolRun]:
    context = document["context"]
    repetitions: dict[str, list[Document]] = defaultdict(list)
    results: list[Result | None] = []
    for bench in document["benchmarks"]:
        if bench.get("error_occurred") or bench.get("skipped"):
            results.append(None)
        elif bench.get("aggregate_name") in (None, "median") and "real_time" in bench:  # a fitted complexity has none
            repetitions[bench.get("run_name") or bench["name"]].append(bench)
    results += [_repeated(*of_name) for of_name in repetitions.items()]
    host, cores = context.get("host_name"), context.get("num_cpus")
    software = {"google-benchmark": context.get("library_version"), "build": context.get("library_build_type")}
    machine, hardware = _words(host or UNNAMED, cores), {"host": host, "cores": cores}
    yield ToolRun(machine, results, _moment(context["date"]), hardware=hardware, software=software)


def _repeated(name: str, benchmarks: Sequence[Document]) -> Result:
    """The median of the repetitions of a benchmark, which are of one process. If they are not there, it is itself."""
    repetitions = [bench for bench in benchmarks if not bench.get("aggregate_name")] or benchmarks
    unit = repetitions[0].get("time_unit", "ns")

    def median(field: str) -> list[float]:
        values = [bench[field] for bench in repetitions if field in bench]
        return [statistics.median(values)] if values else []

    beside = {"cpu_time": [value * SECONDS[unit] for value in median("cpu_time")]}
    return Result(name, median("real_time"), unit, beside={**beside, THROUGHPUT: median("items_per_second")})


_NUMBERS = dict.fromkeys(("real_time?", "cpu_time?", "items_per_second?"), float)
_GOOGLE_BENCHMARK = {
    "context": {"date": datetime, "json_schema_version?": Literal[1], "host_name?": str},
    "benchmarks": [{"name": str, "run_name?": str, "time_unit?": Literal["s", "ms", "us", "ns"], **_NUMBERS}],
}


def _hyperfine(document: Document, _: Path) -> Iterator[ToolRun]:
    """Each of its times is a process. It names neither machine nor time."""
    results = []
    for result in document["results"]:
        chosen = [f"{name}={value}" for name, value in (result.get("parameters") or {}).items()]
        cpu = [result["user"] + result["system"]] if {"user", "system"} <= result.keys() else []
        beside = {"cpu_time": cpu, "peak_memory": result.get("memory_usage_byte") or []}
        results.append(Result(redacted(_words(result["command"], *chosen)), result["times"], beside=beside))
    yield ToolRun(UNNAMED, results)


_HYPERFINE_RESULT = {"command": str, "times": [float], "user?": float, "system?": float}
_HYPERFINE = {"results": [{**_HYPERFINE_RESULT, "memory_usage_byte?": [float], "parameters?": dict}]}


def _asv(document: Document, path: Path) -> Iterator[ToolRun]:
    """A file of its results. What its benchmarks measure is in `benchmarks.json`, two folders above."""
    packages = {name: version for name, version in (document.get("requirements") or {}).items() if version}
    python, host = document.get("python"), document["params"]["machine"]
    environment = document.get("env_name") or _words(python, *(f"{name}{packages[name]}" for name in packages))
    described = _benchmarks_of_asv(path.parent.parent / "benchmarks.json")
    results: list[Result | None] = []
    for name, entry in document["results"].items():
        benchmark = described.get(name, {})
        # The first version has an object, or the result alone.
        columns = entry if isinstance(entry, dict) else {"result": entry}
        if document.get("result_columns"):
            columns = dict(zip(document["result_columns"], entry or [], strict=False))
        known = benchmark and columns.get("version") in (None, benchmark.get("version"))
        results += _results_of_asv(name, columns, benchmark["unit"]) if known else [None]
    yield ToolRun(
        machine=_words(host, environment),
        results=results,
        started_at=_since_1970(document["date"] / 1000 if document.get("date") else None),
        commit=document["commit_hash"],
        hardware={"host": host, "cpu": document["params"].get("cpu"), "os": document["params"].get("os")},
        software={"python": python, **packages},
        grows=True,
    )


def _results_of_asv(name: str, columns: Document, unit: str) -> Iterator[Result | None]:
    """The result of each combination of parameters: null if it failed, NaN if it was skipped."""
    found, params = columns.get("result"), columns.get("params") or []
    values = found if isinstance(found, list) else [found]
    if wrong := _misfit(params, [[str]], f"results.{name}.params"):
        raise UsageError(wrong)
    combinations = [*product(*params)]
    if len(values) != len(combinations):
        raise UsageError(f"results.{name} has {len(values)} results, expected {len(combinations)}, as its params say")
    for chosen, value in zip(combinations, values, strict=True):
        if value is None or value != value:
            yield None
        elif wrong := _misfit(value, float, f"results.{name}"):
            raise UsageError(wrong)
        else:
            yield Result(f"{name}({', '.join(chosen)})" if chosen else name, [value], unit)


@lru_cache(maxsize=1)
def _benchmarks_of_asv(path: Path) -> Document:
    """What asv says of its benchmarks, by name."""
    try:
        return _described(_parsed(path.read_text()))
    except (OSError, ValueError, UsageError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}, which says what asv's benchmarks measure, cannot be read: {why}") from None


def _described(document: Document) -> Document:
    return {name: benchmark for name, benchmark in document.items() if {"param_names", "unit"} <= _keys(benchmark)}


_ASV = {
    "version": Literal[1, 2],
    "commit_hash": str,
    "params": {"machine": str},
    "results": dict,
    "date?": float,
    "requirements?": dict,
    "result_columns?": [str],
}


def _perfherder(document: Document, _: Path) -> Iterator[ToolRun]:
    """An artifact (`PERFHERDER_DATA`), which names neither machine nor time."""
    results = []
    for suite in document["suites"]:
        name = _words(suite["name"], *suite.get("extraOptions") or [])
        parts = [(name, suite)] if suite.get("value") is not None else []
        parts += [(_words(name, subtest["name"]), subtest) for subtest in suite.get("subtests") or []]
        for title, part in parts:
            unit, higher = part.get("unit") or suite.get("unit") or "", part.get("lowerIsBetter") is False
            results.append(Result(title, [part["value"]], unit, higher))
    application = document.get("application") or {}
    machine = _words(document["framework"].get("name"), application.get("name")) or UNNAMED
    yield ToolRun(machine, results, software={"application": application.get("version")})


def _treeherder(document: Sequence[Document], _: Path) -> Iterator[ToolRun]:
    """What Treeherder's `performance/summary` answers with `all_data`: a run for each push on each platform."""
    runs: dict[tuple[str, str, str], dict[str, Result]] = defaultdict(dict)
    for series in document:
        name = series.get("name") or _words(series["suite"], series.get("test"))
        higher = None if series.get("lower_is_better") is None else not series["lower_is_better"]
        for point in series["data"]:
            of_push = runs[point["push_timestamp"], series["platform"], point["revision"]]
            of_push.setdefault(name, Result(name, [], series.get("measurement_unit") or "", higher))
            of_push[name] = of_push[name]._replace(values=[*of_push[name].values, point["value"]])
    for (moment, platform, revision), named in sorted(runs.items()):
        yield ToolRun(platform, [*named.values()], _moment(moment), revision, grows=True)


_VALUE = {"name": str, "unit?": str, "lowerIsBetter?": Literal[True, False]}
_SUITE = {**_VALUE, "value?": float, "extraOptions?": [str], "subtests?": [{**_VALUE, "value": float}]}
_PERFHERDER = {"framework": {"name?": str}, "suites": [_SUITE], "application?": {"name?": str}}
_POINT = {"push_timestamp": datetime, "revision": str, "value": float}
_TREEHERDER = [{"suite": str, "name?": str, "platform": str, "measurement_unit?": str, "data": [_POINT]}]


def _pytorch(document: Any, _: Path) -> Iterator[ToolRun]:
    """PyTorch's OSS benchmark JSON, as `report --pytorch` prints it: one record or many."""
    of_run = ("timestamp", "head_sha", "head_branch", "workflow_id", "job_id", "runners", "dependencies")
    runs: dict[str, list[Document]] = defaultdict(list)
    for record in document:
        runs[json.dumps([record.get(name) for name in of_run], sort_keys=True)].append(record)
    for records in runs.values():
        first = records[0]
        runner: Document = next(iter(first.get("runners") or []), {})
        machine = dict.fromkeys(runner.get(name) for name in ("name", "type", "cpu_info", "gpu_info"))
        packages = first.get("dependencies") or {}
        yield ToolRun(
            machine=_words(*machine) or UNNAMED,
            results=[_of_record(record) for record in records],
            started_at=_since_1970(first.get("timestamp")),
            commit=first.get("head_sha") or None,
            branch=first.get("head_branch") or None,
            hardware={"host": runner.get("name"), "cpu": runner.get("cpu_info"), "cores": runner.get("cpu_count")},
            software={name: package.get("version") for name, package in packages.items()},
        )


def _of_record(record: Document) -> Result | None:
    """The result of a record. Only our own export says units and directions."""
    metric, benchmark, model = record["metric"], record["benchmark"], record.get("model") or {}
    told = metric.get("extra_info") or {}
    device = (benchmark.get("extra_info") or {}).get("device")
    parts = [*map(benchmark.get, ("name", "mode", "dtype")), *map(model.get, ("name", "backend")), metric["name"]]
    higher = {"true": True, "false": False}.get(told.get("higher_is_better", ""))
    result = Result(_words(*parts), metric["benchmark_values"], str(told.get("unit", "")), higher)
    named = result._replace(device=device if device in ("cpu", "cuda", "xpu") else "cpu")
    return named if named.values else None


_PYTORCH = [
    {
        "schema_version?": Literal["v3"],
        "timestamp?": float,
        "benchmark": {"name": str, "extra_info?": dict},
        "model?": dict,
        "metric": {"name": str, "benchmark_values": [float], "extra_info?": dict},
        "runners?": [dict],
        "dependencies?": dict,
    }
]
FORMATS = (
    Format("pytest-benchmark", _PYTEST_BENCHMARK, _pytest_benchmark),
    Format("google-benchmark", _GOOGLE_BENCHMARK, _google_benchmark),
    Format("asv", _ASV, _asv),
    Format("hyperfine", _HYPERFINE, _hyperfine),
    Format("perfherder", _PERFHERDER, _perfherder),
    Format("perfherder", _TREEHERDER, _treeherder),
    Format("pytorch", _PYTORCH, _pytorch),
)
