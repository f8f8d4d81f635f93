"""Ten planted causes, each measured beside what was before: what the first three lines of its dossier say.

    python benchmarks/dossiers

In a project of its own, each cause is planted, measured with `--perf-against` and `--perf-explain`, and its dossier
read. A row has the lines, the seconds from the verdict to the
dossier, and the slowdown by the pairs and by the dossier's script alone. Causes that the table has are left out.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

FIELDS = ("cause", "ratio", "by_script", "seconds", "first", "second", "third")
NETS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 64, 3, padding=1)
        self.second = torch.nn.Conv2d(64, 64, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(64)
        self.last = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.norm(self.second(x)))
        return self.last(x.mean((2, 3)))

def net():
    return Net()

def example():
    return torch.randn(16, 3, 64, 64)

def tokens(text):
    return [word.strip() for word in text.split(" ")]

def read(path, count):
    return [line.split(b",") for line in path.read_bytes().splitlines()[:count]]

def gather(rows):
    out = torch.empty(len(rows), rows[0].numel())
    for number, row in enumerate(rows):
        out[number] = row
    return out

@torch.compile
def scaled(x, factor):
    return (x * 2.0 + 1.0).relu().sum()
"""
TESTS = """
from pathlib import Path

import nets
import torch

def test_tokens(perf):
    perf(nets.tokens, "a word " * 500)

def test_package(perf):
    import planted_package

    perf(planted_package.work, 20000)

def test_read(perf, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2,3\\n" * 20000)
    perf(nets.read, path, 2000)

def test_gather(perf):
    perf(nets.gather, [torch.ones(4096) for _ in range(64)])

def test_scaled(perf):
    x = torch.randn(256, 256)
    count = iter(range(10**9))
    perf(lambda: nets.scaled(x, float(next(count))))
"""
NETWORK = ("--pyargs", "ipexperf.suites", "--perf-model=nets:net", "--perf-dtype=bf16", "--perf-stack=stock")
INFER = (*NETWORK, "--perf-mode=infer")


@dataclass(frozen=True)
class Cause:
    """What is planted: an edit of the user's file, and variables or the arm that was before."""

    name: str
    arguments: tuple[str, ...]
    edit: tuple[str, str] = ("", "")
    before: str = "git:HEAD"
    variables: dict[str, str] = field(default_factory=dict)
    python: str = ""


FLOAT = """with torch.autocast("cpu", enabled=False):
            x = torch.relu(self.norm(self.second(x.float())))"""
CAUSES = (
    Cause("package", ("-k", "package"), before="before/bin/python", python="after/bin/python"),
    Cause("variable", INFER, before="ONEDNN_MAX_CPU_ISA=ALL", variables={"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Cause(
        "commit",
        ("-k", "tokens"),
        ('[word.strip() for word in text.split(" ")]', '[re.sub(r"\\\\s+", "", word) for word in text.split(" ")]'),
    ),
    Cause("thread count", (*INFER, "--perf-placement=threads=1"), before="OMP_NUM_THREADS=2"),
    Cause(
        "layout",
        INFER,
        (
            "x = torch.relu(self.first(x))",
            "x = torch.relu(self.first(x)).contiguous().contiguous(memory_format=torch.channels_last)",
        ),
    ),
    Cause(
        "dtype",
        INFER,
        (
            "x = torch.relu(self.norm(self.second(x)))",
            FLOAT,
        ),
    ),
    Cause("recompilation", ("-k", "scaled"), ("(x * 2.0 + 1.0)", "(x * factor + 1.0)")),
    Cause(
        "data path",
        ("-k", "read"),
        ("path.read_bytes().splitlines()[:count]", "[bytes(line.rstrip()) for line in path.open('rb')][:count]"),
    ),
    Cause(
        "allocation",
        ("-k", "gather"),
        ("        out[number] = row", "        out = out.clone()\\n        out[number] = row"),
    ),
    Cause(
        "other work",
        INFER,
        ("x = torch.relu(self.norm(self.second(x)))", "x = torch.relu(self.norm(self.second(self.second(x))))"),
    ),
)


def made_environment(folder: Path, version: str, body: str) -> None:
    """An environment that has the packages of this one, and a version of a package of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [site] = folder.glob("lib/*/site-packages")
    ours = Path(__file__).parents[2]  # which may be installed by a file that only its own environment reads
    (site / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ours}\n")
    (site / "planted_package.py").write_text(f"def work(count):\n    return {body}\n")
    information = site / f"planted_package-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: planted-package\nVersion: {version}\n")
    (information / "RECORD").write_text(
        f"planted_package.py,,\n{information.name}/METADATA,,\n{information.name}/RECORD,,\n"
    )


def planted(cause: Cause, folder: Path) -> dict[str, str]:
    """A project in which the cause is planted, measured and explained. Returns its row."""
    (folder / "nets.py").write_text("import re\n" + NETS)
    (folder / "test_functions.py").write_text(TESTS)
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-qm", "before")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    old, new = (text.encode().decode("unicode_escape") for text in cause.edit)
    text = (folder / "nets.py").read_text()
    assert old in text, cause.name
    (folder / "nets.py").write_text(text.replace(old, new) if old else text)
    made_environment(folder / "before", "1.0", "sum(range(count))")
    made_environment(folder / "after", "1.1", "sum([number for number in range(count)])")
    options = (f"--perf-against={cause.before}", "--perf-explain=out", "--perf-structure=warn")
    command = [folder / cause.python if cause.python else sys.executable, "-m", "pytest", *cause.arguments, *options]
    environment = {**os.environ, **cause.variables, "PYTHONUNBUFFERED": "1"}
    begun, lines = 0.0, []
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            lines.append(line)
            begun = begun or (time.monotonic() if "tracing both arms" in line else 0.0)
    seconds = time.monotonic() - begun
    found = list(folder.glob("out/*/dossier.json"))
    if not found:
        print("".join(lines[-30:]), file=sys.stderr)
        return {"cause": cause.name, "first": "no dossier"}
    document = json.loads(found[0].read_text())
    ratio = re.search(r"([+-][\d.]+) %|x([\d.]+)", document["lines"][0])
    script = re.search(r"b takes ([\d.]+) times", document["script_said"])
    return {
        "cause": cause.name,
        "ratio": "" if ratio is None else (ratio[2] or f"{1 + float(ratio[1]) / 100:.3f}"),
        "by_script": script[1] if script else document["no_script"],
        "seconds": f"{seconds:.0f}",
        **dict(zip(FIELDS[4:], document["lines"], strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, default=Path(__file__).parent / "results.csv")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(arguments.csv.open())) if arguments.csv.exists() else []
    for cause in CAUSES:
        if any(row["cause"] == cause.name for row in rows):
            continue
        with tempfile.TemporaryDirectory() as place:
            rows.append(planted(cause, Path(place)))
        with arguments.csv.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, FIELDS, restval="")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{cause.name}: {rows[-1]}", file=sys.stderr)


if __name__ == "__main__":
    main()
