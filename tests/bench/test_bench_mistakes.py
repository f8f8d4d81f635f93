"""A mistake in an extension is one sentence that names the class and its file; what `ext` takes and refuses."""

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipexperf import cli, ext, result
from ipexperf.bench.process import worker
from ipexperf.case import NetworkCase

GOOD = """
from ipexperf.ext import Check, Dataset, Device, Examples, Mode, Session, Split, Stack, model, register


class MyDevice(Device):
    name = "mydevice"
    def why_not(self, facts): return None
    def start(self, settings): pass
    def synchronise(self): pass
    def put(self, value): return value
    def reset_memory(self): pass
    def memory(self): return {"peak_memory": 1000}


class MyStack(Stack):
    name = "mystack"
    def why_not(self, cell, facts): return None
    def for_inference(self, network, example, bench): return network
    def for_training(self, network, optimizer, bench): return network, optimizer


class MyData(Dataset):
    name = "mydata"
    def find(self, folder): return __file__, None
    def read(self, path, size): return Split(Examples((), ()), Examples((), ()))


class MySession(Session):
    def step(self): pass
    def accuracy(self): return {"accuracy": 1.0}, [Check("fidelity", True, "0", "0")]
    def proof(self): return [Check("dtype", True, "fp32", "fp32")]


class MyMode(Mode):
    name = "mymode"
    def why_not(self, cell, facts): return None
    def open(self, bench): return MySession()


register(MyDevice())
register(MyStack())
register(MyData())
register(MyMode())


@model("mynet", size=1, batch_train=1, batch_infer=1, data="mydata", needs=(), trained=False)
def mynet():
    return None
"""
CASE = NetworkCase("mynet", "mydevice", "fp32", "mymode", "mystack", 1, 1, 1, "mydata", ())
ASKED = ("begin", "prepare", "warm", "sample", "usage", "proof", "fingerprint", "accuracy")


def extension(folder: Path, old: str = "", new: str = "") -> Path:
    """The good extension in a file, with one mistake."""
    assert old in GOOD
    path = folder / "mine.py"
    path.write_text(GOOD.replace(old, new) if old else GOOD + new)
    return path


def planned(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of `ipexperf cases` with this extension, and what it complains of."""
    axes = ("--device", "mydevice", "--stack", "mystack", "--mode", "mymode", "--model", "mynet", "--dtype", "fp32")
    status = cli.main(["cases", f"--perf-load={path}", *axes])
    return status, capsys.readouterr().err


def replies(path: Path) -> list[dict[str, Any]]:
    """What a worker answers when it is asked for a whole launch, up to the first failure."""
    settings = {"load": [str(path)]}
    request = {"case": dataclasses.asdict(CASE) | {"knobs": {}}, "settings": settings, "count": 2}
    requests, answers = "".join(json.dumps({**request, "do": do}) + "\n" for do in ASKED), io.StringIO()
    worker.serve(io.StringIO(requests), answers)
    received = [reply for reply in map(json.loads, answers.getvalue().splitlines()[1:]) if "say" not in reply]
    bad = next((index for index, reply in enumerate(received) if not reply["ok"]), len(received) - 1)
    return received[: bad + 1]


def test_the_extension_without_a_mistake_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(extension(tmp_path), capsys) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("", "1 / 0", "mine.py: ZeroDivisionError: division by zero (mine.py, line 49)"),
        ("", "raise SystemExit(0)", "mine.py: SystemExit: 0 (mine.py, line 49)"),
        ('    name = "mymode"\n', "", 'mine.py: MyMode has no name: write name = "..." in it'),
        ('"mymode"', "5", "mine.py: MyMode has the name 5, expected letters, digits, '_', '.' and '-'"),
        ('"mynet"', '"all"', "mine.py: the model has the name 'all', expected letters, digits, '_', '.' and '-'"),
        ('"mymode"', '"infer"', "the mode 'infer' is registered twice: give one of them another name"),
        ("register(MyMode())", "register(MyMode)", "a class needs to be instantiated: register(MyMode())"),
        ("size=1,", "sizes=1,", "mine.py: the model 'mynet': got an unexpected keyword argument 'sizes'"),
        ("size=1,", "size='1',", "mine.py: the model 'mynet': size is '1', expected a whole number"),
        ("batch_infer=1", "batch_infer=0", "mine.py: the model 'mynet': batch_infer is 0, expected at least 1"),
        ("needs=()", "needs='torch'", "mine.py: the model 'mynet': needs is 'torch', expected a tuple, each a text"),
        ("needs=()", "needs=(), quantisation='x'", "quantisation is 'x', expected one of 'static', 'dynamic'"),
        ('data="mydata"', 'data="nodata"', "the model 'mynet': unknown dataset 'nodata': did you mean mydata?"),
        ('data="mydata"', 'task="notask", data="mydata"', "the model 'mynet': unknown task 'notask': choose from"),
        ('@model("mynet", size=1, batch_train=1, batch_infer=1, data="mydata", needs=(), trained=False)', "@model",
         "mine.py: @model has no arguments: write @model('mynet', size=..., batch_train=..., ...)"),
        ('name = "mymode"', 'name, batch = "mymode", "8"', "MyMode 'mymode': batch is '8', expected a whole number or"),
        ('name = "mymode"', 'name, graph = "mymode", "x"', "MyMode 'mymode': graph is 'x', expected one of '', "),
        ("why_not(self, facts): return None", "why_not(self): return None",
         "mine.py: MyDevice.why_not does not take the arguments (self, facts)"),
        ("why_not(self, facts): return None", "why_not(self, facts): return True",
         "MyDevice.why_not (mine.py, line 7) returned True, expected None or a reason in words"),
        ("why_not(self, facts): return None", "why_not(self, facts): return 1 / 0",
         "ZeroDivisionError: division by zero (mine.py, line 7, in MyDevice.why_not)"),
        ("return __file__, None", "return __file__",
         "MyData.find (mine.py, line 24) returned '"),
        ("def start(self, settings): pass",
         "accelerator = True\n    def variables(self, index, known): return None",
         "MyDevice.variables (mine.py, line 9) returned None, expected a mapping from texts, each to a text"),
        ("return MySession()", "return MySession()\n    def processes(self, case): return 0",
         "MyMode.processes (mine.py, line 38) returned 0, expected at least 1"),
        ("needs=()", "needs=(), why_nots={'trainig': 'slow'}",
         "the model 'mynet' (mine.py, line 46): why_nots has 'trainig', which names nothing here: did you mean"),
        ("needs=()", "needs=(), why_nots={'int8 on stok': 'slow'}", "'int8 on stok', which names nothing here: "),
        ("needs=()", "needs=(), tuned={'ipx': id}", "tuned has 'ipx', which names nothing here: did you mean ipex?"),
        ("needs=()", "needs=(), published={'bf61': 8}", "published has 'bf61', which names nothing here: did you"),
        ("needs=()", "needs=(), optimizer='sdg'",
         "the model 'mynet' (mine.py, line 46): unknown optimizer 'sdg': did you mean sgd?"),
        ("needs=()", "needs=(), learning_rate=-0.1", "'mynet': learning_rate is -0.1, expected more than 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    status, complaint = planned(extension(tmp_path, old, new), capsys)
    assert status == cli.USAGE_ERROR
    assert sentence in complaint
    assert complaint.count("\n") == 1


@pytest.mark.process
def test_a_worker_measures_the_extension_without_a_mistake(tmp_path: Path) -> None:
    assert [reply["ok"] for reply in replies(extension(tmp_path))] == [True] * len(ASKED)


@pytest.mark.process
@pytest.mark.parametrize(
    ("old", "new", "request_", "sentence"),
    [
        ("start(self, settings): pass", "start(self, settings): raise SystemExit(1)", "begin",
         "SystemExit: 1 (mine.py, line 8, in MyDevice.start)"),
        ("return MySession()", "return MySession", "prepare",
         "MyMode.open (mine.py, line 37) returned <class 'ipexperf_loaded_mine.MySession'>, expected a Session"),
        ("def step(self): pass", "def step(self, more): pass", "prepare",
         "MySession.step does not take the arguments (self)"),
        ("def step(self): pass", "def step(self): raise ValueError('boom')", "warm",
         "ValueError: boom (mine.py, line 29, in MySession.step)"),
        ("1000", "'5'", "usage",
         "MyDevice.memory (mine.py, line 12) returned {'peak_memory': '5'}, expected a mapping from texts, each to a"),
        ("1000", "-1", "usage",
         "MyDevice.memory (mine.py, line 12) returned {'peak_memory': -1}, expected at least 0"),
        ("1000", "float('nan')", "usage",
         "MyDevice.memory (mine.py, line 12) returned {'peak_memory': nan}, expected a mapping from texts, each to a"),
        ('return [Check("dtype", True, "fp32", "fp32")]', 'return (Check("dtype", True, "fp32", "fp32"),)', "proof",
         "MySession.proof (mine.py, line 31) returned (Check(name='dtype', "),
        ("def step(self): pass", "def step(self): pass\n    def notes(self): return 'a note'", "proof",
         "MySession.notes (mine.py, line 30) returned 'a note', expected a list, each a text"),
        ("def step(self): pass", "def step(self): pass\n    def metrics(self): return {'nosuch': 1.0}", "proof",
         "MySession.metrics (mine.py, line 30) returned the unknown metric 'nosuch': register(Metric("),
        ("def step(self): pass", "def step(self): pass\n    def looks(self, device): return None", "fingerprint",
         "MySession.looks (mine.py, line 30) returned None, expected a mapping from texts, each to a function"),
        ('{"accuracy": 1.0}', '{"accuracy": float("nan")}', "accuracy",
         "MySession.accuracy (mine.py, line 30) returned ({'accuracy': nan}, "),
    ],
)  # fmt: skip
def test_a_mistake_in_a_worker_names_the_class_at_fault(
    tmp_path: Path, old: str, new: str, request_: str, sentence: str
) -> None:
    """Not the network, and not as a malformed reply."""
    answers = replies(extension(tmp_path, old, new))
    assert ASKED[len(answers) - 1] == request_
    assert answers[-1]["outcome"] == "error"
    assert answers[-1]["reason"].startswith(sentence)


def test_a_metric_has_one_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one may be registered again, as by two files of one project."""
    monkeypatch.setattr(ext, "METRICS", dict(result.METRICS))
    for _ in range(2):
        ext.register(ext.Metric("tokens_per_joule", "tokens/J", higher_is_better=True))
    assert ext.METRICS["tokens_per_joule"].unit == "tokens/J"
    with pytest.raises(ext.UsageError, match="'tokens_per_joule' is registered twice, with different meanings"):
        ext.register(ext.Metric("tokens_per_joule", "tokens/J", higher_is_better=False))


@pytest.mark.parametrize(("item", "name"), [(ext.Mode, "ABCMeta"), ("mode", "str"), (None, "NoneType")])
def test_anything_else_is_refused(item: Any, name: str) -> None:
    with pytest.raises(
        ext.UsageError, match=f"register takes a device, .* not {name}; a class needs to be instantiated"
    ):
        ext.register(item)


@pytest.mark.process
def test_everything_it_exports_is_there_and_torch_is_not_imported() -> None:
    """Collection imports the files of extensions, in processes that have no use for torch."""
    program = "import sys, ipexperf.ext as e; [getattr(e, x) for x in e.__all__]; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
