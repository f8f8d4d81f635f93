"""The numbers in the files of other tools, and in a program's own."""

import json
from pathlib import Path

import pytest

from ipexperf.errors import UsageError
from ipexperf.formats import Metrics, Number, all_of

PYTEST = {
    "machine_info": {},
    "datetime": "2026-11-30T12:00:00",
    "benchmarks": [{"fullname": "t.py::test_a", "stats": {"median": 0.25, "mean": 9.0}}],
}
GOOGLE = {
    "context": {"date": "2026-11-30"},
    "benchmarks": [
        {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "real_time": 9.0, "time_unit": "us"},
        {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "real_time": 3.0, "time_unit": "us"},
        {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "real_time": 4.0, "time_unit": "us"},
        {"name": "BM_a/8_mean", "run_name": "BM_a/8", "aggregate_name": "mean", "real_time": 5.3, "time_unit": "us"},
        {"name": "BM_b_median", "run_name": "BM_b", "aggregate_name": "median", "real_time": 7.0, "time_unit": "ms"},
        {"name": "BM_c", "run_name": "BM_c", "error_occurred": True, "error_message": "no card"},
    ],
}
HYPERFINE = {"results": [{"command": "sleep 1", "mean": 1.2, "times": [1.1, 1.2, 1.6]}]}
RECORD = {
    "benchmark": {"name": "micro", "mode": "inference", "dtype": "bf16", "extra_info": {}},
    "model": {"name": "llama", "type": "OSS"},
    "metric": {"name": "tokens", "benchmark_values": [90.0, 80.0, 100.0], "target_value": 0},
}
DYNAMO = "dev,name,batch_size,speedup,abs_latency,graph_breaks\ncpu,resnet18,4,1.5,12.0,3\n"
TRITON = "N,Triton,Torch\n128.0,10.5,9.0\n256.0,20.0,18.0\n"


@pytest.mark.parametrize(
    ("metrics", "text", "numbers"),
    [
        ("pytest-benchmark", json.dumps(PYTEST), {"t.py::test_a": Number(0.25, "s", higher=False)}),
        (
            "google-benchmark",
            json.dumps(GOOGLE),
            {"BM_a/8": Number(4e-6, "s", higher=False), "BM_b": Number(7e-3, "s", higher=False)},
        ),
        ("google-benchmark:BM_b*", json.dumps(GOOGLE), {"BM_b": Number(7e-3, "s", higher=False)}),
        ("hyperfine", json.dumps(HYPERFINE), {"sleep 1": Number(1.2, "s", higher=False)}),
        (
            "higher:pytorch:*tok*",
            json.dumps([RECORD]),
            {"micro inference bf16 llama tokens": Number(90.0, higher=True)},
        ),
        (
            "higher:pytorch",
            f"{json.dumps(RECORD)}\n{json.dumps({**RECORD, 'model': None})}\n",
            {
                "micro inference bf16 llama tokens": Number(90.0, higher=True),
                "micro inference bf16 tokens": Number(90.0, higher=True),
            },
        ),
        (
            "dynamo",
            DYNAMO,
            {
                "cpu/resnet18/4/speedup": Number(1.5, "x", higher=True),
                "cpu/resnet18/4/abs_latency": Number(12.0, "ms", higher=False),
            },
        ),
        (
            "higher:triton",
            TRITON,
            {
                name: Number(value, higher=True)
                for name, value in {
                    "128.0/Triton": 10.5,
                    "128.0/Torch": 9.0,
                    "256.0/Triton": 20.0,
                    "256.0/Torch": 18.0,
                }.items()
            },
        ),
        ("lower:csv:a+b,ms", "a,b,ms,note\n1,2,3.5,x\n", {"1/2/ms": Number(3.5, higher=False)}),
        ("lower:json:runs.[name].ms", '{"runs": [{"name": "x", "ms": 4}]}', {"runs.x.ms": Number(4.0, higher=False)}),
        ("lower:json:runs.*", '{"runs": {"x": 4, "host": "h"}}', {"runs.x": Number(4.0, higher=False)}),
        ("lower:json:0.ms", '[{"ms": 4}]', {"0.ms": Number(4.0, higher=False)}),
    ],
)
def test_numbers_have_names_units_and_a_direction(
    metrics: str, text: str, numbers: dict[str, Number], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text(text)
    assert Metrics.parse(metrics, ["bench", "{out}"]).read(tmp_path / "out", tmp_path, "") == numbers


def test_a_regular_expression_reads_what_is_printed(tmp_path: Path) -> None:
    metrics = Metrics.parse(r"higher:re:(?P<name>\w+): (?P<value>[\d.]+) tok/s", ["bench", "{out}"])
    assert metrics.read(tmp_path / "out", tmp_path, "warm\na: 12.5 tok/s\nb: 7 tok/s\n") == {
        "a": Number(12.5, higher=True),
        "b": Number(7.0, higher=True),
    }


def test_a_folder_has_a_table_for_each_plot(tmp_path: Path) -> None:
    """As `perf_report` leaves it, with pictures beside them."""
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("add", "mul"):
        (folder / f"{name}.csv").write_text(TRITON)
    (folder / "add.png").write_bytes(b"\x89PNG")
    numbers = Metrics.parse("higher:triton@{out}", ["bench"]).read(folder, tmp_path, "")
    assert {"add/128.0/Triton", "mul/128.0/Triton"} <= numbers.keys()
    assert len(numbers) == 8


@pytest.mark.parametrize(
    ("metrics", "text", "problem"),
    [
        ("hyperfine", '{"results": [', "it is not whole JSON"),
        ("hyperfine", json.dumps(PYTEST), "it is a file of pytest-benchmark"),
        ("hyperfine", '{"results": []}', "it told no number in {out}"),
        ("pytorch", json.dumps([RECORD]), "write lower:pytorch or higher:pytorch"),
        ("lower:csv:a,b", "a,c\n1,2\n", "there is no column 'b': there are a, c"),
        ("lower:csv", "a,c\n1,2\n1,3\n", "two numbers are called '1/c'"),
        ("lower:json:a.b", '{"a": {"c": 1}}', "there is no 'a.b'"),
        ("lower:json:a", '{"a": "fast"}', "'a' is no number: 'fast'"),
        ("lower:re:[", "", "'[' is no regular expression"),
        ("lower:re:ms", "", "'ms' has no group"),
        ("lower:json@other.json:a", "", "it wrote no other.json"),
    ],
)
def test_a_file_that_is_not_as_said_is_named_in_a_sentence(
    metrics: str, text: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text(text)
    with pytest.raises(ValueError, match=r"^--metrics ") as error:
        Metrics.parse(metrics, ["bench", "{out}"]).read(tmp_path / "out", tmp_path, "")
    assert problem in str(error.value)


def test_two_metrics_may_not_share_a_name(tmp_path: Path) -> None:
    both = [Metrics.parse(f"{way}:re:(?P<name>a) (.*)", []) for way in ("lower", "higher")]
    with pytest.raises(ValueError, match="another --metrics has a 'a' too"):
        all_of(both, tmp_path, tmp_path, "a 1")


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'lower:xml': expected \[lower:\|higher:\]FORMAT.*hyperfine"):
        Metrics.parse("lower:xml", [])
