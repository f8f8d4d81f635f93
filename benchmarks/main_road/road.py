"""What both scripts of this folder run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest", "-p", "ipexperf.short_options")


def build(folder: Path) -> None:
    """Build the project's library, and have the file of 2 MiB that says how much it does in a step."""
    words = ("cc", "-O1", "-shared", "-fPIC", "-o", "net/libwork.so", "net/work.c")
    subprocess.run(words, cwd=folder, check=True)
    (table := folder / "net" / "table.txt").exists() or table.write_text(f"1{' ' * 2**21}")


def reason(output: str) -> str:
    """What the first failed test said, or the last line that says how cases were judged."""
    block = re.search(r"^  why +(.*(?:\n {14}.*)*)", output, re.MULTILINE)
    judged = re.findall(r"^(?:judged|slower than the baseline).*", output, re.MULTILINE)
    return " ".join((block.group(1) if block else "; ".join(judged)).split())[:200]
