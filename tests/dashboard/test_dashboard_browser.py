"""The pages in a real browser: they load in silence, filter, draw, and remember in the link what was chosen."""

import shutil
from pathlib import Path

import pytest
from browser import MISSING, Browser
from dashboard_records import MOVED, RUNS

from ipexperf import units

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

KINDS = ("index.html", "runs.html", "compare.html", "speedups.html", "runs/*.html", "cases/*.html")
INKED = """
const canvas = document.querySelector("#trend canvas");
if (!canvas) return 0;
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const colours = new Set();
for (let at = 0; at < data.length; at += 4) colours.add(data.slice(at, at + 4).join());
return colours.size;
"""


def page_of(report: Path, name: str) -> Path:
    """The page of the first case that is called so."""
    return next(iter(sorted(report.glob(f"cases/{name}*.html"))))


def rows(window: Browser) -> list[str]:
    return [text.split("\n")[0] for text in window.texts("#cases tbody tr td:first-child")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_loads_in_silence(report: Path, window: Browser, kind: str) -> None:
    """No error and no warning on the console, on every page of the kind, and no name or message became markup."""
    pages = sorted(report.glob(kind))
    assert pages
    for page in pages:
        window.open(page)
        assert window.logs() == [], page.name
        assert window.run("return window.hacked ?? null") is None
        assert window.run("return document.querySelectorAll('main img').length") == 0


def test_a_page_that_is_broken_is_not_silent(report: Path, window: Browser, tmp_path: Path) -> None:
    """The silence above is no silence of the browser's: a page without its data says so."""
    copy = tmp_path / "broken"
    shutil.copytree(report, copy)
    text = (copy / "index.html").read_text()
    (copy / "index.html").write_text(text.replace('id="data"', 'id="lost"'))
    window.open(copy / "index.html")
    assert any("TypeError" in line for line in window.logs())


@pytest.mark.parametrize(
    "markup",
    [
        "<script>window.hacked = 1</script>",
        "<img src='nowhere.png' onerror='window.hacked = 1'>",
        "<a id='bait' href='javascript:window.hacked = 1' autofocus>bait</a>",
        "<style>#main { display: none }</style>",
    ],
)
def test_markup_that_slipped_into_a_page_does_nothing(
    report: Path, window: Browser, tmp_path: Path, markup: str
) -> None:
    """Should escaping ever fail: the browser refuses to run it, says so, and the page works all the same."""
    copy = tmp_path / "slipped"
    shutil.copytree(report, copy)
    text = (copy / "index.html").read_text()
    (copy / "index.html").write_text(text.replace("<footer>", f"{markup}<footer>"))
    window.open(copy / "index.html")
    window.run("document.querySelector('#bait')?.click()")
    assert any("Content Security Policy" in line for line in window.logs())
    assert window.run("return window.hacked ?? null") is None
    assert window.run("return getComputedStyle(document.querySelector('#main')).display") != "none"
    assert rows(window)


def test_the_filter_filters_and_the_link_remembers(report: Path, window: Browser) -> None:
    """Words narrow the cases down, the choice is in the link, and the link alone restores it."""
    window.open(report / "index.html")
    assert len(rows(window)) == 7
    window.type("#query", "resnet50 bf16")
    window.until("return document.querySelectorAll('#cases tbody tr').length === 2")
    link = window.run("return location.hash")
    assert link == "#q=resnet50+bf16"
    window.open(report / "index.html", f"{link}&mode=infer_jit&stack=ipex&sort=-step&colour=factor")
    found = rows(window)
    assert [name.startswith("resnet50-cpu-bf16-infer_jit-ipex") for name in found] == [True, True]
    assert "+against" in found[0]  # 20 ms come before 14 ms
    assert window.run("return document.getElementById('query').value") == "resnet50 bf16"
    assert window.texts("#measure [aria-checked=true]") == ["\N{MULTIPLICATION SIGN} fp32 stock"]
    window.click("#clear")
    window.until("return document.querySelectorAll('#cases tbody tr').length === 7")


def test_a_verdict_is_a_filter(report: Path, window: Browser) -> None:
    """The counts at the top choose, and a second click takes the choice back."""
    window.open(report / "index.html")
    window.click(".count[data-outcome=regressed]")
    window.until("return document.querySelectorAll('#cases tbody tr').length === 1")
    assert window.run("return location.hash") == "#outcome=regressed"
    assert len(window.texts("#changes tr")) == 1
    window.click(".count[data-outcome=regressed]")
    window.until("return document.querySelectorAll('#cases tbody tr').length === 7")


def test_what_fails_now_stands_first(report: Path, window: Browser) -> None:
    """With how much, since when and why; not what does not."""
    window.open(report / "index.html")
    told = window.texts("#changes tr")
    assert [text.split()[1] for text in told] == ["regressed", "failed", "improved"]
    assert "12.0 ms \N{RIGHTWARDS ARROW} 13.8 ms" in told[0]
    assert all("since 2026-" in text for text in told)
    assert "" not in window.texts("#changes .why")
    assert window.texts("#cases .badge")[0].split()[1] == "regressed"
    window.type("#query", "nothing-like-it")
    window.until("return document.querySelector('#changes-block').hidden")


def test_the_matrix_has_a_tile_for_each_case(report: Path, window: Browser) -> None:
    """It links to the case's page, and says what it says in words too."""
    window.open(report / "index.html")
    tiles = window.run(
        "return [...document.querySelectorAll('#heat a')].map(x => [x.getAttribute('href'), x.innerText, x.title])"
    )
    assert len(tiles) == 7
    assert all((report / link).is_file() for link, _, _ in tiles)
    told = {title.split(" (")[0]: text for _, text, title in tiles}
    assert "+15.0 %" in told["resnet50-cpu-bf16-infer_jit-ipex"]
    assert "failed" in told["vgg16-cpu-fp32-infer-stock"]


def test_pages_write_numbers_as_the_terminal_does(report: Path, window: Browser) -> None:
    window.open(report / "index.html")
    ratios = [0.18, 0.999, 1.0, 1.234, 1.96, 2.0, 5.542, 9.96, 12.34, 1234.6]
    assert window.run("return arguments[0].map(percent)", ratios) == [*map(units.percent, ratios)]
    assert window.run("return human(0.918, 'fraction')") == units.amount(0.918, "fraction")


def test_a_chart_draws_and_a_link_zooms_it(report: Path, window: Browser) -> None:
    """There is ink in many colours, the change is marked, and the range of the link is the chart's."""
    page = page_of(report, "resnet50-cpu-bf16-infer_jit-ipex-")
    window.open(page)
    assert window.until(INKED) > 20
    assert window.run("return [trend.chart.scales.x.min, trend.chart.scales.x.max]") == [-0.5, RUNS - 0.5]
    told = " ".join(window.texts("#trend-legend span"))
    for word in ("level", "baseline", "became slower", "75 %"):
        assert word in told
    window.open(page, "#x=2.0..5.0&metric=accuracy")
    window.until("return trend.metric === 'accuracy' && trend.chart.scales.x.max === 5")
    assert window.run("return trend.chart.scales.x.min") == 2
    window.click("#whole")
    window.until(f"return trend.chart.scales.x.max === {RUNS - 0.5}")
    assert window.run("return location.hash") == "#metric=accuracy"


def test_a_line_breaks_where_the_environment_changes(report: Path, window: Browser) -> None:
    """Nothing is drawn between the last run of one torch and the first of the next, whose versions stand there."""
    window.open(page_of(report, "resnet50-cpu-bf16-infer_jit-ipex-"))
    window.until(INKED)
    gaps = f"return breaks(DATA.trends.step_time)(trend.chart, 3, 0, {RUNS - 1}, []).length"
    assert window.run("return DATA.breaks") == [[MOVED, "torch: 2.8.0+cpu -> 2.9.0+cpu"]]
    assert window.run(gaps) == 1


def test_two_runs_are_compared_case_by_case(report: Path, window: Browser) -> None:
    """The newest two at first. Across another torch there is no ratio; the choice is kept in the link."""
    window.open(report / "compare.html")
    window.until("return document.querySelectorAll('#compared tbody tr').length")
    name = "resnet50-cpu-bf16-infer_jit-ipex"
    rows_of = "[...document.querySelectorAll('#compared tbody tr')].map(x => x.innerText)"
    row = f"return {rows_of}.find(text => text.includes(arguments[0]))"
    assert "%" in window.run(row, name)
    oldest = "const from = document.getElementById('from'); from.selectedIndex = from.length - 1"
    window.run(f"{oldest}; from.dispatchEvent(new Event('change'))")
    assert "other environment" in window.run(row, name)
    assert "from=" in window.run("return location.hash")


def test_the_page_of_a_case_tells_what_changed(report: Path, window: Browser) -> None:
    """The level that moved with its versions, what ran otherwise, and how to measure it again."""
    window.open(page_of(report, "resnet50-cpu-bf16-infer_jit-ipex-"))
    told = "\n".join(window.texts("main"))
    assert f"2026-05-{MOVED + 1:02d} 02:00 slower from here on +15.0 %" in told
    assert "torch: 2.8.0+cpu -> 2.9.0+cpu" in told
    assert "relu no longer fused" in told
    assert "pytest suites/ --perf-model resnet50 --perf-device cpu --perf-dtype bf16 --perf-mode infer_jit" in told
    assert "Launches that do not count" not in told  # nothing empty stands on a page


def test_light_and_dark(report: Path, window: Browser) -> None:
    """The switch turns the page and its chart, and the next page is as this one was left."""
    window.open(page_of(report, "resnet50-cpu-fp32-infer-stock"))
    first = window.run(
        "return [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).backgroundColor]"
    )
    window.click("#theme-button")
    second = window.run(
        "return [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).backgroundColor]"
    )
    assert {first[0], second[0]} == {"light", "dark"}
    assert first[1] != second[1]
    window.open(report / "runs.html")
    assert window.run("return document.documentElement.dataset.theme") == second[0]
    window.run("localStorage.clear()")


def test_the_keyboard_is_enough(report: Path, window: Browser) -> None:
    """`/` filters, Escape leaves, `j` and Enter open a case, `]` the next one, `o` goes back, `?` explains."""
    window.open(report / "index.html")
    window.type("body", "/")
    assert window.run("return document.activeElement.id") == "query"
    window.type("#query", "resnet50\ue00c\ue00c")
    assert window.run("return [document.activeElement.id, location.hash]") == ["", ""]
    window.type("body", "jj")
    second = rows(window)[1]
    window.type("body", "\ue007")
    window.until("return location.href.includes('/cases/') && document.readyState === 'complete'")
    assert second.split(" batch")[0] in window.texts("h1")[0]
    address = window.run("return location.href")
    window.type("body", "]")
    window.until("return location.href !== arguments[0] && document.readyState === 'complete'", address)
    window.type("body", "?")
    assert window.run("return document.getElementById('help').open") is True


def test_paper_is_white(report: Path, window: Browser) -> None:
    """What is printed has no filter, and its charts are drawn for a white page."""
    window.open(page_of(report, "resnet50-cpu-fp32-infer-stock"))
    window.run("localStorage.setItem('ipexperf-theme', 'dark'); theme.show(true)")
    window.run("window.dispatchEvent(new Event('beforeprint'))")
    assert window.run("return document.documentElement.dataset.theme") == "light"
    window.run("window.dispatchEvent(new Event('afterprint'))")
    assert window.run("return document.documentElement.dataset.theme") == "dark"
    window.run("localStorage.clear()")
