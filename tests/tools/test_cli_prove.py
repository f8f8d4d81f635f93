"""`ipexperf prove`: what a process ran of oneDNN is told, compared and kept, and its own output stays as it is."""

import json
import sys
from pathlib import Path

import pytest

from ipexperf import cli

pytestmark = pytest.mark.process

HEADER = "onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support"
LINE = (
    "onednn_verbose,v1,primitive,exec,cpu,{name},{implementation},forward_inference,"
    "src:bf16::blocked:ab::f0 wei:bf16::blocked:ab::f0 dst:bf16::blocked:ab::f0,{attributes},,8x16:16x4,{time}"
)
QUICK = LINE.format(name="matmul", implementation="brg_matmul:avx512_core_bf16", attributes="", time=0.5)
REFERENCE = LINE.format(name="matmul", implementation="ref:any", attributes="", time=900.5)
REORDER = LINE.format(name="reorder", implementation="jit:uni", attributes="", time=0.25)


class Process:
    """A command that prints lines, some of them oneDNN's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *lines: str, before: tuple[str, ...] = (), status: int = 0) -> int:
        text = "".join(f"{line}\n" for line in lines)
        code = f"import sys; sys.stdout.write({text!r}); sys.exit({status})"
        return cli.main(["prove", *before, "--", sys.executable, "-c", code])

    def path(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def test_what_ran_is_told_beside_the_output_of_the_command(
    process: Process, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert process("mine", HEADER, QUICK, f"unfinished {QUICK}", REORDER, "mine too") == 0
    out, told = capfdbinary.readouterr()
    assert out == b"mine\nunfinished mine too\n"
    assert told.decode().splitlines() == [
        "3 calls of oneDNN in 0.00125 s of its own time; Intel AVX-512 with Intel DL Boost and bfloat16 support",
        "   80 %  matmul brg_matmul:avx512_core_bf16 x2  src:bf16 wei:bf16 dst:bf16",
        "   20 %  reorder jit:uni x1  src:bf16 wei:bf16 dst:bf16",
        "reorders: 1 calls, 20 % of the time",
    ]


def test_a_reference_kernel_is_a_loss_that_needs_no_clock(process: Process, capsys: pytest.CaptureFixture[str]) -> None:
    """The other day's file may be of a longer run: how often a kernel ran is no loss."""
    good, bad = process.path("good.json"), process.path("bad.json")
    assert process(HEADER, QUICK, QUICK, QUICK, before=("--into", good)) == 0
    assert process(HEADER, QUICK, before=("--against", good)) == 0
    assert process(HEADER, REFERENCE, before=("--against", good, "--into", bad)) == 1
    told = capsys.readouterr().err
    assert "REFERENCE KERNELS: 1 calls, 100 % of the time" in told
    [lost] = [line for line in told.splitlines() if line.startswith("LOST")]
    assert "a reference kernel" in lost
    assert "brg_matmul:avx512_core_bf16 x3 -> ref:any" in lost
    assert process(HEADER, QUICK, before=("--against", bad)) == 0  # the other way round it is a gain
    assert json.loads((process.folder / "bad.json").read_text())["structure"]["primitives"][0]["calls"] == 1


def test_a_command_without_the_library_is_told_so_and_keeps_its_status(
    process: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    assert process("nothing", status=3) == 3
    assert "no primitive of oneDNN ran" in capsys.readouterr().err


def test_lines_of_an_unknown_form_are_said(process: Process, capsys: pytest.CaptureFixture[str]) -> None:
    assert process(QUICK, "onednn_verbose,v9,something,new") == 0
    assert "1 or more lines of the log have an unknown form, such as onednn_verbose,v9" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file or directory"),
        ("nonsense", "is no file of"),
        ("[]", "is no file of"),
        ("{}", "is no file of"),
    ],
)
def test_a_wrong_file_is_one_sentence_before_anything_runs(
    process: Process, content: str | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = process.folder / "file.json"
    if content is not None:
        path.write_text(content)
    assert process("ran", before=("--against", str(path))) == 2
    out, error = capsys.readouterr()
    assert told in error
    assert "ran" not in out
