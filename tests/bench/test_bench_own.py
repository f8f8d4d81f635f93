"""Networks of the user's own: what a target means, what they are given, and what becomes of those that cannot be."""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_cases import failed, of_target
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.machine import facts
from ipexperf.bench.networks import own, own_target
from ipexperf.bench.outcome import outcome_of
from ipexperf.errors import AbsentError, UsageError, WorkerError
from ipexperf.proof import label

torch = pytest.importorskip("torch")


from ipexperf.bench.networks import (
    own_build,
)

# Torch warns of what a trace may lose, and does so for harmless things too.
TRACED = pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
pytestmark = TRACED

NETS = Path(__file__).parents[1] / "fakes" / "mynets.py"
AT = ord("@")
"""What stands before a shape."""


def target(name: str) -> own_target.Target:
    return own_target.parse(f"{NETS}:{name}")


def bench(name: str, mode: str = "infer") -> Workbench:
    """A case of one of the stranger's networks."""
    return of_target(f"{NETS}:{name}", mode)


def opened(name: str, mode: str = "infer") -> Any:
    """A session of it."""
    workbench = bench(name, mode)
    return workbench.mode.open(workbench)


@pytest.mark.parametrize(
    ("text", "name", "shapes"),
    [
        ("mynets:small", "mynets.small", ()),
        ("pkg.nets:Small", "pkg.nets.Small", ()),
        ("torchvision.models:vgg11@3x64x64", "torchvision.models.vgg11.3x64x64", ((3, 64, 64),)),
        ("nets:pair@3x8x8+10", "nets.pair.3x8x8_10", ((3, 8, 8), (10,))),
        ("some/where/nets.py:small", "nets.small", ()),
        ("timm:resnet18.a1_in1k", "timm.resnet18.a1_in1k", ()),
        ("hf:prajjwal1/bert-tiny", "hf.prajjwal1.bert-tiny", ()),
        ("hf:prajjwal1/bert-tiny@64", "hf.prajjwal1.bert-tiny.64", ((64,),)),
        ("hf:./weights/my model", "hf.my_model", ()),
    ],
)
def test_a_target_is_read_and_has_a_name(text: str, name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """The name says where the network comes from, and what it is given where that was said."""
    target = own_target.parse(text)
    assert (target.name, target.shapes) == (name, shapes)


@given(st.sampled_from(["hf", "timm"]), st.text([chr(code) for code in range(32, 127) if code != AT], min_size=1))
def test_a_name_is_fit_for_files_and_for_k(hub: str, name: str) -> None:
    """Whatever a hub's name holds, that of its cases has letters, digits, `_`, `.` and `-` alone."""
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", own_target.parse(f"{hub}:{name}").name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mynets:", "is not a network"),
        (":small", "is not a network"),
        ("hf:", "is not a network"),
        ("mynets:small@", "expected a shape such as 3x224x224 behind @, got ''"),
        ("mynets:small@3,8", "expected a shape such as 3x224x224 behind @, got '3,8'"),
        ("mynets:small@0x8", "is not a network"),
        ("mynets:a b", "'a b' is not the name of a callable"),
    ],
)
def test_what_is_no_target_is_refused(text: str, reason: str) -> None:
    """One sentence that says what was expected."""
    with pytest.raises(UsageError, match=re.escape(reason)):
        own_target.parse(text)


def test_a_folder_that_is_not_there_is_refused_by_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reason = "./nowhere is not the folder of a saved network: it has no config.json"
    with pytest.raises(UsageError, match=re.escape(reason)):
        own.register("hf:./nowhere")


def test_what_its_source_imports_is_known_without_running_it(tmp_path: Path) -> None:
    """Fork servers import it beforehand: a worker that imports torchvision anew in each pair takes a second for it."""
    path = tmp_path / "imports.py"
    path.write_text(
        "import os, torchvision.models\nfrom . import beside\n\ndef network():\n    from skimage.io import imread\n"
        "    import slowdown as late\n    raise SystemExit(late)\n"
    )
    assert own.imported(path) == ("skimage", "slowdown", "torchvision")
    assert registry.models.get(own.register(f"{path}:network")).imports == ("skimage", "slowdown", "torchvision")
    path.write_text("def network(:\n")
    assert own.imported(path) == ()
    assert own.imported(tmp_path / "nowhere.py") == ()


def test_two_targets_of_one_name_are_refused(tmp_path: Path) -> None:
    """The same one twice is one; another of the same name is a mistake that names both."""
    beside = tmp_path / "mynets.py"
    beside.write_text("")
    assert own.register(f"{NETS}:small") == own.register(f"{NETS}:small") == "mynets.small"
    with pytest.raises(UsageError, match=r"would both be called mynets\.small"):
        own.register(f"{beside}:small")


def test_a_module_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file names what is made of it: one that was changed is quantised again."""
    package = tmp_path / "stranger"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('this was imported')")
    (package / "nets.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert own.source(own_target.parse("stranger.nets:small")) == package / "nets.py"
    assert own.source(own_target.parse("stranger:small")) == package / "__init__.py"


@pytest.mark.parametrize(
    ("name", "mode"),
    [("mapped", "infer"), ("pair", "infer")]
    + [(name, "infer_jit") for name in ("small", "tupled", "mapped", "packed", "pair", "constant")],
)
def test_whatever_container_answers_come_in_they_are_proven_and_compared(name: str, mode: str) -> None:
    """A tensor, a tuple, a mapping, a dataclass and a network of two inputs keep every check but those of others."""
    session = opened(name, mode)
    metrics, checks = session.accuracy()
    assert failed([*session.proof(), *checks]) == set()
    assert set(metrics) == {"agreement", "fidelity"}
    assert metrics["fidelity"] < 1e-5


def test_a_network_may_lay_out_its_own_images_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was given channels last, and its untouched network converts them too. Only what a stack loses is refused."""
    workbench = bench("turning")
    assert workbench.channels_last
    session = workbench.mode.open(workbench)
    (check,) = (check for check in session.proof() if check.name == "kernel_layout")
    assert (check.ok, check.found.endswith(": the network itself lays them out so")) == (True, True)
    monkeypatch.setattr(type(session), "_plain_kernels", lambda _: [])
    (check,) = (check for check in session.proof() if check.name == "kernel_layout")
    assert (check.ok, check.expected) == (False, "channels_last in all, or --perf-knobs channels_last=off")


@pytest.mark.parametrize(("name", "noted"), [("narrowing", False), ("narrowing_kept", True)])
def test_a_network_that_asks_for_float32_inside_is_compared(name: str, *, noted: bool) -> None:
    """In float64 throughout if torch can be made to, else with its own float32, which a note says."""
    session = opened(name)
    metrics, checks = session.accuracy()
    assert failed([*session.proof(), *checks]) == set()
    assert 0 < metrics["fidelity"] < 1e-5 or noted
    assert (
        "compared with the network in float32: in float64 it fails, RuntimeError: " in str(session.notes())
    ) is noted


@pytest.mark.parametrize("name", ["leaving", "leaving_darker", "routing", "routing_back"])
def test_a_network_whose_work_depends_on_the_order_of_a_batch_keeps_no_results(name: str) -> None:
    """One of the two does less for a batch than for the same in reverse order, as often as it sees them."""
    session = opened(name)
    for _ in range(5):
        session.step()
    assert failed(session.proof()) == set()


@pytest.mark.parametrize(
    ("name", "batch"),
    [("keeping", None), ("keeping_few", None), ("keeping_few", 1), ("keeping_words", None), ("keeping_words", 1),
     ("keeping_each_text", None)],
)  # fmt: skip
def test_a_network_that_keeps_results_of_batches_it_has_seen_is_found_out(name: str, batch: int | None) -> None:
    """Its steps take a fraction of the time, and its answers are right: nothing else would say so."""
    workbench = bench(name)
    if batch:
        workbench = dataclasses.replace(workbench, case=dataclasses.replace(workbench.case, batch=batch))
    session = workbench.mode.open(workbench)
    for _ in range(4):  # as many batches as take turns
        session.step()
    [kept] = [check for check in session.proof() if not check.ok]
    assert kept.name == "same_work"
    expected, words = kept.expected.split(", ")
    assert words.startswith("as with a new batch")
    assert int(kept.found.split()[0]) < int(expected)
    assert failed(session.accuracy()[1]) == set()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")
def test_products_that_inductor_wrote_for_a_network_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace has no operator of it. Its kept results are found out all the same, and its dtype is known."""
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    checks = {}
    with inductor.patch(freezing=False):  # the networks change it
        for name in ("written", "written_and_kept"):
            session = opened(name)
            for _ in range(4):
                session.step()
            checks[name] = {check.name: check for check in session.proof()}
    assert failed(checks["written"].values()) == set()
    assert checks["written"]["dtype"].found == "float32 x1"
    assert checks["written"]["same_work"].found == "1 operators"
    assert "same_work" in failed(checks["written_and_kept"].values())
    assert checks["written_and_kept"]["same_work"].found == "0 operators"


def test_where_nothing_can_be_counted_the_check_says_so() -> None:
    """It does not hold: a network may have kept all of its results."""
    check = label.same_work(lambda _: 0, (torch.zeros(2),), (torch.ones(2),), (torch.ones(2),))
    assert (check.ok, check.found) == (False, "nothing to count: no operator that does arithmetic")


def test_a_network_that_writes_into_its_inputs_is_found_out() -> None:
    """Its answers to fresh inputs are right, but all samples but the first few are of others."""
    session = opened("overwriting")
    session.step()
    [changed] = [check for check in session.proof() if not check.ok]
    assert changed.name == "input"
    assert "4 batches on cpu, " in changed.found
    assert "of them changed in place by steps" in changed.found


def test_a_network_that_allows_fewer_bits_is_not_in_fp32() -> None:
    """Torch then computes float32 products in bf16 where the processor can, and the profiler shows float32."""
    before = torch.get_float32_matmul_precision()
    try:
        assert failed(opened("coarse").proof()) == {"float32"}
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_network_that_answers_in_a_tensor_is_left_alone() -> None:
    """It is asked once what it answers in: nothing lies around it, and nothing in it has moved."""
    network = own_build.network(target("normed"))
    assert type(network).__name__ == "Normed"
    assert network.training
    assert network.body[1].num_batches_tracked == 0


@pytest.mark.parametrize(("name", "line"), [("branching", "if logits.sum() > 0"), ("listing", "tolist()")])
def test_a_network_that_looks_at_its_values_is_caught_where_it_is_traced(name: str, line: str) -> None:
    """The trace is of one branch: the check names the line, and the eager network has no such check."""
    checks = opened(name, "infer_jit").proof()
    assert "control_flow" in failed(checks)
    [places] = [check.found for check in checks if check.name == "control_flow"]
    number = next(number for number, text in enumerate(NETS.read_text().splitlines(), 1) if line in text)
    assert f"mynets.py:{number}" in places
    assert failed(opened(name).proof()) == set()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("greedy", "mynets.py:greedy: greedy is called without arguments"),
        ("ready", "ready is a network: expected a function"),
        ("smal", "has no callable smal: did you mean small?"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(name: str, reason: str) -> None:
    """Each with what was found, and no traceback of torch's."""
    workbench = bench(name)
    with pytest.raises((WorkerError, AbsentError), match=re.escape(reason)) as error:
        workbench.built()
    assert outcome_of(error.value) == "error"


def test_a_module_that_is_not_there_is_an_import_error() -> None:
    """It may have been in the workers' interpreter alone: there it is said."""
    with pytest.raises(WorkerError, match="nonesuch:small: No module named 'nonesuch'") as error:
        own_build.network(own_target.parse("nonesuch:small"))
    assert error.value.outcome == "import_error"


def test_without_an_example_it_is_said_what_is_missing(tmp_path: Path) -> None:
    """The least that a user must say: a shape behind the name, or an example beside the callable."""
    path = tmp_path / "lonely.py"
    path.write_text("from torch import nn\n\n\ndef small():\n    return nn.Linear(4, 2)\n")
    advice = f"write example() beside small, or give the shape of one: {path}:small@3x224x224"
    with pytest.raises(WorkerError, match=re.escape(advice)):
        own_build.inputs(own_target.parse(f"{path}:small"), 4)
    [inputs] = own_build.inputs(own_target.parse(f"{path}:small@4"), 6)
    assert inputs.shape == (6, 4)


def test_an_example_that_is_no_batch_is_refused() -> None:
    """A list of numbers has no first dimension that counts examples."""
    with pytest.raises(WorkerError, match=re.escape("its example() returned ((a float)): expected")):
        own_build.inputs(target("crooked"), 4)


def test_examples_are_the_same_in_every_process_and_differ_from_each_other() -> None:
    """Batches are asked for until there are enough; torch's random numbers are its own again afterwards."""
    state = torch.get_rng_state()
    first, again = (own_build.inputs(target("small"), 12) for _ in range(2))
    assert torch.equal(first[0], again[0])
    assert len(first[0]) == 12
    assert not torch.equal(first[0][0], first[0][8])
    assert torch.equal(torch.get_rng_state(), state)


def test_one_answer_for_a_whole_batch_is_refused_in_one_sentence() -> None:
    workbench = bench("scalar")
    reason = "a tensor of shape (), whose first dimension is not the batch's"
    with pytest.raises(WorkerError, match=re.escape(reason)):
        workbench.mode.open(workbench).accuracy()


@pytest.mark.parametrize("lie", ["another number in one example", "not a number"])
def test_an_answer_that_is_off_is_caught(lie: str) -> None:
    """One example in sixteen that is wrong, however near the others are."""
    session = opened("small")
    honest = session.forward

    def lying(inputs: Any) -> Any:
        outputs = honest(inputs).clone()
        outputs[3] = outputs[3] + 100 if lie.startswith("another") else float("nan")
        return outputs

    session.forward = lying
    metrics, checks = session.accuracy()
    assert failed(checks) == {"fidelity", "agreement"}
    assert metrics["agreement"] == 1 - 1 / 16
