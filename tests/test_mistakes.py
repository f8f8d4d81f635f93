"""The mistakes that a person makes: each is answered in one sentence, with its exit code, and measures nothing."""

import os
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from forked_pytest import QUICK, Servers
from history_records import ENVIRONMENT, make_case, make_measurement

from ipexperf.history import History
from ipexperf.plan.drivers import LIBRARY
from ipexperf.verdict import Verdict

pytestmark = pytest.mark.process
TESTS = Path(__file__).parent
LONGEST = 160
"""Characters of a sentence beside what was typed: two lines of a terminal."""
ID = "resnet50-cpu-bf16-infer-ipex"
FIRST_TEST = "def test_words(perf):\n    assert perf(str.split, 'a b') == ['a', 'b']\n"
NETWORK = "class TinyMixer:\n    pass\n\n\ndef inputs(batch):\n    return ()\n"
MARKED = "import pytest\n\n\n@pytest.mark.perf({})\ndef test_it(perf):\n    perf()\n"
ARM = "expected git:COMMIT, PACKAGE==VERSION, driver:FOLDER, KEY=VALUE, a folder, an interpreter or a lock, got"

# Where it is typed, the exit code, what is typed, and what the sentence says.
MISTAKES = (
    # Names that are nearly right, or somebody else's.
    ("project", 4, "pytest --perf-device=gpu", "--perf-device: unknown device 'gpu': did you mean cuda or xpu?"),
    ("project", 4, "pytest --perf-dtype=float32", "unknown dtype 'float32': did you mean fp32?"),
    ("project", 4, "pytest --perf-mode=inference", "unknown mode 'inference': did you mean infer?"),
    ("project", 4, "pytest --perf-mode=eval", "unknown mode 'eval': choose from decode, decode_compile, "),
    ("project", 4, "pytest --perf-stack=pytorch", "unknown stack 'pytorch': did you mean stock or torchao?"),
    ("project", 4, "pytest --perf-model=resnet19", "unknown model 'resnet19': did you mean resnet18?"),
    ("project", 4, "pytest --perf-gate=speed", "unknown metric 'speed': choose from step_time, "),
    ("project", 4, "pytest --perf-preset=weekly", "expected one of preflight, quick, nightly, full, got 'weekly'"),
    ("project", 2, "ipexperf shwo last", "invalid choice: 'shwo': did you mean show?"),
    ("project", 2, "ipexperf accept last", "invalid choice: 'accept': did you mean baseline accept?"),
    ("project", 2, "ipexperf show last --jsn", "unrecognized arguments: --jsn: did you mean --json?"),
    ("project", 2, "ipexperf baseline acept last", "invalid choice: 'acept': did you mean accept?"),
    ("project", 2, "ipexperf trend --metric thruput", "invalid choice: 'thruput': did you mean throughput?"),
    ("project", 2, "ipexperf compare --over xml", "invalid choice: 'xml' (choose from dtype, stack, device"),
    ("project", 2, "ipexperf doctor --no-pairs --device xpus", "unknown device 'xpus': did you mean xpu?"),
    ("project", 2, "ipexperf lease --device cp -- true", "--device: unknown device 'cp': did you mean cpu?"),
    ("project", 2, "ipexperf help inconclusve", "did you mean inconclusive?"),
    # A network of one's own.
    ("project", 4, "pytest --perf-model=mynet", "name what makes its network, as mynet.py:TinyMixer"),
    ("project", 4, "pytest --perf-model=mynet.py", "name what makes its network, as mynet.py:TinyMixer"),
    ("project", 4, "pytest --perf-model=mynet.TinyMixer", "name what makes its network, as mynet.py:TinyMixer"),
    ("project", 4, "pytest --perf-model=nowhere.py:Net", "there is no file nowhere.py"),
    ("project", 4, "pytest --perf-model=mynet:", "'mynet:' is not a network: expected module:callable"),
    ("project", 4, "pytest --perf-model=hf:nobody/nothing", "'hf:nobody/nothing' is not in the local cache"),
    # Options: none of this name, without a value, with a wrong one, or two that exclude each other.
    ("project", 4, "pytest --perf-lanches=2", "there is no option --perf-lanches: did you mean --perf-launches?"),
    ("project", 4, "pytest --perf-threads=4", "there is no option --perf-threads: say --perf-placement=threads=..."),
    ("project", 4, "pytest --perf-wobble", "there is no option --perf-wobble: `ipexperf cases --help` lists all"),
    ("project", 4, "pytest --dtype bf16", "there is no option --dtype here: that of ipexperf is --perf-dtype"),
    ("project", 4, "pytest --perf-launches", "--perf-launches: expected a value"),
    ("project", 4, "pytest --perf-db=--", "--perf-db: expected a value, got '--'"),
    ("project", 4, "pytest --perf-launches=0", "--perf-launches: expected a whole number of at least 1, got '0'"),
    ("project", 4, f"pytest --perf-batch={'9' * 20}", "expected a whole number of at most 2147483647, got '999"),
    ("project", 4, "pytest --perf-tolerance=5", "expected a fraction between 0 and 1, such as 0.05 or 5%, got '5'"),
    ("project", 4, "pytest --perf-timeout=-1", "--perf-timeout: expected seconds over 0, got '-1'"),
    ("project", 4, "pytest --perf-inconclusive=maybe", "expected one of pass, fail, skip, exit, got 'maybe'"),
    ("project", 4, "pytest --perf-placement=threads=9999", "threads=9999: this process may use "),
    ("project", 4, "pytest -o ipexperf=--perf-launches=0", "ipexperf: --perf-launches: expected a whole number"),
    ("project", 4, "pytest --perf-against=A=1 --perf-launches=2", "--perf-launches: pairs take turns until"),
    ("project", 4, "pytest --perf-against=stored --perf-tolerance=3%", "only pairs have that: say --perf-against"),
    ("project", 4, "pytest --perf-build=make", "what is built is a commit: say --perf-against git:COMMIT too"),
    ("project", 4, "pytest --perf-against=A=1 --perf-alpha=2", "expected a fraction between 0 and 1"),
    ("project", 4, "pytest --perf-report=new --perf-without=record", "leave --perf-without=record away"),
    ("project", 4, "pytest -n 2 --perf-launches=2", "run ipexperf with -n 0"),
    ("project", 2, "ipexperf", "the following arguments are required: COMMAND"),
    ("project", 2, "ipexperf --db x show", "--db stands before the command: write COMMAND --db"),
    ("project", 2, "ipexperf show --limit 0", "expected a whole number of at least 1, got '0'"),
    ("project", 2, "ipexperf show --json --csv", "argument --csv: not allowed with argument --json"),
    ("project", 2, "ipexperf trend --model ,", "expected a comma list of names, got nothing"),
    ("project", 2, "ipexperf report", "one of the arguments --html --csv --tables --markdown --pytest-benchmark"),
    ("project", 2, "ipexperf report --markdown --limit 3", "--limit is for --html"),
    # What to compare with.
    ("project", 4, "pytest --perf-against=HEAD", f"{ARM} 'HEAD': is it git:HEAD?"),
    ("project", 4, "pytest --perf-against=git:nowhere", "has no commit 'nowhere'"),
    ("fresh", 4, "pytest --perf-against=git:HEAD", "no git repository"),
    ("project", 4, "pytest --perf-against=torch=2.7", "the version of a package is torch==2.7"),
    ("project", 4, "pytest --perf-against=nosuch==1.0", "nosuch is not installed here, so there is nothing to replace"),
    ("project", 4, "pytest --perf-against=nosuch=1", "choose from model, device, dtype, mode, stack or a knob"),
    ("project", 4, "pytest --perf-against=/no/python", "there is no file /no/python"),
    ("project", 4, "pytest --perf-against=/usr", "/usr is a folder: name the interpreter in it"),
    ("project", 4, "pytest --perf-against=/etc/passwd", "/etc/passwd is a file that may not be executed"),
    ("project", 4, "pytest '--perf-against=git:HEAD .'", "only one source, not both 'git:HEAD' and '.'"),
    ("project", 4, "pytest --perf-against=baseline", "none was accepted on this machine; name an arm, as git:HEAD~1"),
    ("project", 4, "pytest --perf-against=baseline:old", "there is no lock 'old' in"),
    ("project", 4, "pytest --perf-against=run:nowhere", "no run matches 'nowhere'"),
    ("project", 4, "pytest {fake} --perf-against=stack=stock", "tiny-fake-fp32-spin-stock cannot run: "),
    ("project", 4, "pytest --perf-against=lock:", f"{ARM} 'lock:'"),
    ("project", 4, "pytest --perf-python=/no/python", "--perf-python=/no/python: No such file or directory"),
    ("project", 4, "pytest --perf-python=lock:nowhere.txt", "--perf-python: there is no lock nowhere.txt"),
    ("project", 4, "pytest --perf-python=shipped:nothing", "no lock 'shipped:nothing' comes with ipexperf"),
    ("project", 2, "ipexperf ab", "name what is measured: a network by --model NAME, or tests of functions behind --"),
    ("project", 2, "ipexperf ab --b dtype=bf16 -- test_work.py", "arm b: a function has no dtype"),
    ("project", 2, "ipexperf ab -- test_work.py --b A=1", "--b stands behind --, where the arguments of pytest are"),
    ("project", 2, "ipexperf ab --b 'A=1 A=2' -- test_work.py", "arm b 'A=1 A=2': A is there twice"),
    ("project", 2, "ipexperf ab --b OMP_NUM_THREADS=0 -- test_work.py", "expected a whole number from 1 on"),
    ("project", 2, "ipexperf ab --a \"'\" -- test_work.py", "arm a ''': no closing quotation"),
    ("project", 2, "ipexperf ab --b '/bin/sh /bin/cat' -- test_work.py", "only one interpreter, not both '/bin/sh'"),
    ("project", 2, "ipexperf ab -- nowhere.py -p no:cacheprovider", "file or directory not found: nowhere.py"),
    ("project", 2, "ipexperf ab --json --b A=1 -- test_work.py", "--json: behind -- are tests"),
    ("project", 2, "ipexperf ab {fake} --max-pairs 25", "max_pairs: expected 1 to 24 pairs, got 25"),
    ("project", 2, "ipexperf ab {fake} --a /bin/true", "--a=/bin/true can't run workers: no message"),
    ("project", 2, "ipexperf bisect", "expected one of --bad ARM, --package NAME, --drivers A,B,C and --commits"),
    ("project", 2, "ipexperf bisect --good git:HEAD --bad git:HEAD -- test_work.py", "searched by --commits A..B"),
    ("project", 2, "ipexperf bisect --commits HEAD..HEAD -- test_work.py", "name an earlier one as GOOD"),
    ("fresh", 2, "ipexperf bisect --commits A..B -- test_work.py", "is no git repository"),
    ("project", 2, "ipexperf bisect --package torch", "say --versions A,B,C or FIRST..LAST too"),
    ("project", 2, "ipexperf bisect --bad dtype=bf16 -- test_work.py", "an end is software and variables"),
    # Another driver for Intel GPUs.
    ("project", 4, "pytest --perf-against=driver:nowhere", "/nowhere is no folder: name one with the unpacked"),
    ("project", 4, "pytest --perf-against=driver:mynet.py", "/mynet.py is no folder: name one with the unpacked"),
    ("project", 4, "pytest --perf-against=driver:site", "/site has libze_intel_gpu.so.1 0 times, not once: unpack"),
    ("project", 4, "pytest --perf-against=driver:drivers", "/drivers has libze_intel_gpu.so.1 2 times, not once"),
    ("project", 4, "pytest --perf-against=driver:drivers/alien", "/alien/libze_intel_gpu.so.1 is no library for "),
    ("project", 4, "pytest '--perf-against=driver:drivers/own driver:drivers/own'", "ZE_ENABLE_ALT_DRIVERS is there"),
    ("project", 4, "pytest '--perf-against=driver:drivers/own ZE_ENABLE_ALT_DRIVERS=a'", "ZE_ENABLE_ALT_DRIVERS is"),
    ("project", 2, "ipexperf ab --b driver:site -- test_work.py", "arm b 'driver:site': "),
    ("project", 2, "ipexperf ab --a driver:drivers/alien -- test_work.py", "arm a 'driver:drivers/alien': "),
    # Runs and cases that the history does not have.
    ("project", 2, "ipexperf show nowhere", "no run matches 'nowhere': the newest of 2 is "),
    ("project", 2, "ipexperf gate lst", "'lst' is too short to name a run: give at least 4 characters, or `last`"),
    ("project", 2, "ipexperf gate --case nobody", f"unknown case 'nobody': choose from {ID}"),
    ("project", 2, "ipexperf show last resnet51-cpu-bf16-infer-ipex", f"did you mean {ID}?"),
    ("project", 2, "ipexperf compare last", "are the same run"),
    ("project", 2, "ipexperf compare last nowhere", "no run matches 'nowhere'"),
    ("project", 2, "ipexperf trend --since last --until first", "the range is upside down: it is until 'first'"),
    ("project", 2, "ipexperf db prune --before 2026-13-01", "'2026-13-01' is not a date or time"),
    ("project", 2, "ipexperf baseline accept last --reason ''", "accepting needs a reason"),
    ("project", 2, "ipexperf explain last", "the following arguments are required: CASE"),
    ("fresh", 2, "ipexperf trend", "there is no history ipexperf.db; a run of the suite creates one"),
    ("project", 2, "ipexperf db merge nowhere.db", "there is no history nowhere.db"),
    # Files and folders: of others, of the other kind, or missing.
    ("project", 2, "ipexperf show --db songs.db", "songs.db is a database of something else"),
    ("project", 2, "ipexperf show --db empty.db", "empty.db is empty: it has no tables"),
    ("project", 2, "ipexperf show --db mynet.py", "mynet.py cannot be used: file is not a database"),
    ("project", 2, "ipexperf show --db site", "the history site is a folder; name a file in it"),
    ("project", 2, "ipexperf report --html mynet.py", "mynet.py is not a folder"),
    ("project", 2, "ipexperf report --html site", "site holds thesis.tex, which does not belong to a report"),
    ("project", 2, "ipexperf clean weigths", "'weigths' is nothing to clean: choose from weights, "),
    ("project", 2, "ipexperf lease -- no-such-command", "no-such-command: no such file or directory"),
    ("project", 2, "ipexperf db prune --before 2026-05-03 --baselines nowhere", "there is no folder nowhere of base"),
    ("project", 4, "pytest --perf-db=nowhere/x.db", "nowhere/x.db does not exist; create nowhere first"),
    ("project", 4, "pytest --perf-db=postgresql://me:secret@127.0.0.1:1/perf", "://***@127.0.0.1:1/perf: write to a"),
    ("project", 4, "pytest --perf-db=postgresql://me:s@cret@127.0.0.1:1/perf", "more than one '@'"),
    ("project", 4, f"pytest --perf-db={'x' * 300}", "cannot be opened: File name too long"),
    ("project", 4, "pytest --perf-db=here --perf-report=here", "the run writes its history there"),
    ("project", 4, "pytest --perf-cache=here/cache --perf-report=here", "the run writes its cache there"),
    ("project", 4, "pytest --perf-explain=mynet.py", "--perf-explain: mynet.py is not a folder"),
    ("project", 4, "pytest --perf-cache=mynet.py", "the cache mynet.py is a file: name a folder"),
    ("project", 4, "pytest --perf-baselines=mynet.py", "mynet.py cannot be read as a folder of baselines: Not a direc"),
    ("project", 4, "pytest --perf-load=..", "--perf-load=..: expected a .py file, or a module such as package.module"),
    ("project", 4, "pytest --perf-load=nowhere.py", "--perf-load=nowhere.py: there is no such file"),
    ("project", 4, "pytest --perf-load=broken.py", "ModuleNotFoundError: No module named 'nobody_has_it'"),
    ("project", 2, "ipexperf fleet run home:1", "say behind -- what each host is to run"),
    # Tests: none for what was asked for, and marks that nobody reads.
    ("fresh", 4, "pytest --perf-model=resnet18 --perf-stack=stock", "pip install 'ipexperf[stock]' there"),
    ("fresh", 4, "pytest {fake}", "no test takes the model tiny: add --pyargs ipexperf.suites, or"),
    ("marks", 4, "pytest {fake} test_model.py", "pytest.mark.perf: unknown argument 'model': did you mean models?"),
    ("marks", 4, "pytest {fake} test_list.py", "pytest.mark.perf: name the argument, such as models=['tiny']"),
    ("marks", 4, "pytest {fake} test_models.py", "unknown model 'tinny': did you mean tiny?"),
    ("marks", 4, "pytest {fake} test_other.py", "no test takes the model tiny"),
    ("marks", 4, "pytest {fake} test_tolerance.py", "tolerance: expected a fraction between 0 and 1"),
)  # fmt: skip
MARKS = {
    "model": "model=['tiny']",
    "list": "['tiny']",
    "models": "models=['tinny']",
    "other": "models=['other']",
    "tolerance": "tolerance=5",
}


def write(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A project in git with a history and files that are nobody's; one that is new; and one with wrong marks."""
    root = tmp_path_factory.mktemp("states")
    fresh = write(root / "fresh", test_work=FIRST_TEST)
    marks = write(root / "marks", **{f"test_{name}": MARKED.format(mark) for name, mark in MARKS.items()})
    project = write(root / "project", test_work=FIRST_TEST, mynet=NETWORK, broken="import nobody_has_it\n")
    (project / "site").mkdir()
    (project / "site" / "thesis.tex").write_text("precious")
    (project / "empty.db").touch()
    head = Path("/proc/self/exe").read_bytes()[:20]
    for name, driver in (("own", head), ("alien", head[:18] + bytes([head[18] ^ 1, head[19]]))):
        (project / "drivers" / name).mkdir(parents=True)
        (project / "drivers" / name / LIBRARY).write_bytes(driver)
    with closing(sqlite3.connect(project / "songs.db")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with History.open(project / "ipexperf.db") as history:
        for day in (1, 2):
            uid = history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            history.record(uid, make_measurement(make_case()), Verdict("ok", "within the noise"))
            history.finish_run(uid, "finished")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(project))
    for words in (("init", "--quiet"), ("add", "test_work.py"), ("commit", "--quiet", "-m", "one")):
        subprocess.run((*git, *words), check=True)
    return {folder.name: folder for folder in (fresh, marks, project)}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers(QUICK)
    yield servers
    servers.close()


Typed = "Callable[[Path, str], pytest.RunResult]"


@pytest.fixture
def typed(servers: Servers, monkeypatch: pytest.MonkeyPatch, fake: str) -> Typed:
    """Runs what a person typed in a folder, under an interpreter without torch."""
    monkeypatch.setenv("PYTHONPATH", f"{TESTS / 'fakes' / 'no_torch'}{os.pathsep}{TESTS.parent}")
    for name in ("PYTEST_XDIST_WORKER", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    case = (
        f"--perf-load={fake} --perf-device=fake --perf-dtype=fp32 --perf-mode=spin --perf-stack=plain --perf-model=tiny"
    )

    def run(folder: Path, text: str) -> pytest.RunResult:
        program, *words = shlex.split(text.replace("{fake}", case))
        quick = (*QUICK, "-p", "no:cacheprovider") if program == "pytest" else ()
        return servers.run(program, (*quick, *words), folder, 60)

    return run


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder that somebody may miss."""
    kept = (path for path in folder.rglob("*") if path.is_file() and not {".git", "__pycache__"} & {*path.parts})
    return {str(path): path.read_bytes() for path in kept if not path.name.endswith(("-shm", "-wal"))}


@pytest.mark.parametrize(("state", "status", "text", "told"), MISTAKES, ids=[row[2][:60] for row in MISTAKES])
def test_a_mistake_is_one_sentence(
    states: dict[str, Path], typed: Typed, state: str, status: int, text: str, told: str
) -> None:
    """With its exit code, without a traceback or a usage, and nothing is measured or written."""
    before = content(states[state])
    result = typed(states[state], text)
    said = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert result.ret == status, said
    assert told in said
    sentences = re.findall(r"^(?:ERROR: |ipexperf[\w ]*: ).*", result.stderr.str(), re.MULTILINE)
    assert len(sentences) == 1, said
    assert len(sentences[0]) <= LONGEST + len(text)
    assert not re.search(r"Traceback|INTERNALERROR|usage:| passed|= ipexperf =|cret", said)
    assert content(states[state]) == before


FUNCTIONS = """
import pytest
from collections import deque


def test_twice(perf):
    perf(sum, [1])
    perf(sum, [2])


def test_uncalled(perf):
    pass


def test_empty(perf):
    perf()


def test_result(perf):
    perf(sum([1]))


def test_raises(perf):
    perf(int, "one")


def test_changes_its_argument(perf):
    perf(deque([1, 2]).pop)


def test_by_name(request):
    request.getfixturevalue("perf")(sum, [1])


def test_of_several(perf):
    perf.pedantic(sum, ([1],), setup=list, iterations=2)


@pytest.mark.perf
def test_marked(perf):
    perf(sum, [1])
"""
FAILURES = {
    "twice": "the test measures a second function: one test has one measurement",
    "uncalled": "the test passed without calling perf(), so nothing was measured",
    "empty": "perf() got None in place of a function: call perf(sorted, [3, 1]), or name the networks to measure by ",
    "result": "perf() got 1 in place of a function",
    "raises": "ValueError: invalid literal for int() with base 10: 'one'",
    "changes_its_argument": "IndexError: pop from an empty deque",
    "by_name": "pytest did not know that this test measures: make the fixture an argument of the test",
    "of_several": "`iterations` of more than 1 would call the function without its `setup`",
    "marked[tiny-fake-fp32-spin-plain]": "call perf() without a function, or leave the mark out",
}


def test_a_test_that_measures_wrongly_fails_with_its_reason(tmp_path: Path, typed: Typed) -> None:
    """With exit code 1, and no line of ours in the traceback."""
    project = write(tmp_path / "project", test_functions=FUNCTIONS)
    (project / "conftest.py").write_text((TESTS / "fakes" / "any_machine.py").read_text())
    short = "--perf-launches=1 --perf-samples=3 --perf-seconds=0.05 --perf-without=roof"
    result = typed(project, f"pytest {{fake}} {short} --junitxml=junit.xml")
    assert result.ret == 1
    result.assert_outcomes(failed=len(FAILURES))
    document = ET.parse(project / "junit.xml").getroot()  # noqa: S314 - our own file
    cases = {case.get("name"): case for case in document.iter("testcase")}
    for name, told in FAILURES.items():
        failure = cases[f"test_{name}"].find("failure")
        assert told in failure.text
        assert "ipexperf/" not in failure.text
