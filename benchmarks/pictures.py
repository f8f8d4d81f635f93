"""Draw the pictures of the documentation: pages of histories that were recorded, and terminals.

    python benchmarks/pictures.py report NIGHTLY.db SERIES.db --case CASE_ID
    python benchmarks/pictures.py terminal RECORDING --columns 80 --name terminal-live

NIGHTLY is the history of a run of many cases. SERIES has many runs of a few cases. RECORDING is what a command wrote to
a terminal. Needs Chromium.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH = 1280


def report(history: Path, folder: Path) -> Path:
    """Write the pages of a history."""
    command = [sys.executable, "-m", "ipexperf.cli", "report", "--db", str(history), "--html", str(folder)]
    subprocess.run(command, check=True)
    return folder


def draw(page: Path, name: str, height: int, width: int = WIDTH) -> None:
    """Take a picture of a page, without a pointer that would open a tooltip."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("pictures.py needs Chromium")
    target = FOLDER / f"{name}.png"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    options += [f"--window-size={width},{height}", f"--screenshot={target}", page.absolute().as_uri()]
    subprocess.run([browser, *options], check=True, capture_output=True)
    print(f"{target.relative_to(Path.cwd())}: {page.name}")


def only(folder: Path, pattern: str) -> Path:
    """The page that matches, or the newest of several."""
    pages = sorted(folder.glob(pattern))
    if not pages:
        sys.exit(f"pictures.py: there is no {pattern} in {folder}")
    return pages[-1]


def draw_reports(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nightly = report(arguments.nightly, Path(folder, "nightly"))
        series = report(arguments.series, Path(folder, "series"))
        draw(nightly / "index.html", "overview", 900)
        draw(nightly / "speedups.html", "speedups", 700)
        draw(only(nightly, "runs/*.html"), "run", 900)
        draw(series / "runs.html", "runs", 600)
        draw(only(series, f"cases/{arguments.case}-*.html"), "case", 1100)
        draw(series / "compare.html", "compare", 1000)


def draw_terminal(arguments: argparse.Namespace) -> None:
    """Draw a recording: of each line, what stood there last."""
    text = arguments.recording.read_bytes().decode(errors="replace").replace("\r\n", "\n")
    lines = [next(filter(None, reversed(line.split("\r"))), "").replace("\033[K", "") for line in text.split("\n")]
    console = Console(record=True, width=arguments.columns, file=io.StringIO(), color_system="standard")
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "terminal.html")
        page.write_text(console.export_html(inline_styles=True), encoding="utf-8")
        draw(page, arguments.name, 40 + 19 * len(lines), 24 + 10 * arguments.columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    reports = actions.add_parser("report")
    reports.add_argument("nightly", type=Path)
    reports.add_argument("series", type=Path)
    reports.add_argument("--case", required=True, help="the case of SERIES whose page is drawn")
    reports.set_defaults(draw=draw_reports)
    terminal = actions.add_parser("terminal")
    terminal.add_argument("recording", type=Path)
    terminal.add_argument("--columns", type=int, required=True)
    terminal.add_argument("--name", required=True)
    terminal.set_defaults(draw=draw_terminal)
    arguments = parser.parse_args()
    arguments.draw(arguments)


if __name__ == "__main__":
    main()
