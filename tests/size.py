"""How much there is to hold: lines, words, options, commands, decisions. `make size` prints it, `make check` holds it.

It ends with 1 where something is more than its limit, so that nothing grows unseen. Who makes less lowers the limit;
who needs more raises it, and a record in docs/adr says why.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = {
    "lines of the package and the suites": 51_429,
    "lines of tests": 43_942,
    "lines of benchmarks": 6_966,
    "words of pages": 60_850,
    "decisions": 27,
    "words of the glossary": 20,
    "options": 36,
    "commands": 20,
    "lines of `pytest --help` that are ours": 34,
}


def lines(*folders: str) -> int:
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sum(len(path.read_text().splitlines()) for path in paths)


def words() -> int:
    pages = [*ROOT.glob("*.md"), *(path for name in ("docs", "benchmarks") for path in (ROOT / name).rglob("*.md"))]
    return sum(len(page.read_text().split()) for page in pages)


def glossary() -> int:
    text = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Words\n")[2].partition("\n## ")[0]
    return len(re.findall(r"^\| [A-Z]", text, re.MULTILINE))


def help_lines() -> int:
    """The lines that an installed ipexperf adds to the help of a project that has nothing to do with it."""
    command = [sys.executable, "-m", "pytest", "--help", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        shown = [
            subprocess.run([*command, *more], cwd=folder, capture_output=True, text=True, check=True).stdout
            for more in ((), ("-p", "no:ipexperf"))
        ]
    return len(shown[0].splitlines()) - len(shown[1].splitlines())


def commands() -> int:
    told = subprocess.run(
        [sys.executable, "-m", "ipexperf.cli", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return len(re.findall(r"^    [a-z]+\b", told, re.MULTILINE))


def main() -> int:
    sys.path.insert(0, str(ROOT))
    from ipexperf.plan.options import OPTIONS

    counts = (
        lines("ipexperf", "suites"),
        lines("tests"),
        lines("benchmarks"),
        words(),
        len(list((ROOT / "docs" / "adr").glob("0*.md"))),
        glossary(),
        len(OPTIONS),
        commands(),
        help_lines(),
    )
    grown = 0
    for (name, limit), count in zip(LIMITS.items(), counts, strict=True):
        more = count > limit
        grown += more
        print(f"{name:<42} {count:>7,}  {'MORE THAN' if more else 'of'} {limit:,}")
    return min(grown, 1)


if __name__ == "__main__":
    sys.exit(main())
