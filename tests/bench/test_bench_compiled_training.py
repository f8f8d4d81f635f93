"""Training through torch.compile: both passes run as compiled code, it learns, and no liar gets through."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.machine import facts
from ipexperf.bench.modes import train_compile
from ipexperf.bench.stacks.stock import Stock
from ipexperf.proof import compilation, fingerprint

torch = pytest.importorskip("torch")

from bench_cases import bench, failed, flat

pytestmark = [
    pytest.mark.usefixtures("compiler"),
    pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler"),
    # Torch's compiler uses what torch and Python have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


def forgetful() -> Any:
    return torch.nn.Sequential(*flat(), torch.nn.Dropout(0.1))


class AsItLikes(Stock):
    """Compiles in its own way, under the label of stock PyTorch."""

    def __init__(self, compile_it: Callable[[Any], Any]) -> None:
        self.compile_it = compile_it

    def compiled_training(self, network: Any, bench: Any) -> Any:
        return self.compile_it(network)


def opened(
    build: Callable[[], Any] = flat,
    compile_it: Callable[[Any], Any] | None = None,
    dtype: str = "fp32",
    **knobs: str,
) -> Any:
    """A session of the mode on stock PyTorch, or on a stack that compiles in another way."""
    workbench = bench(build, "train_compile", registry.devices.get("cpu"), **knobs)
    workbench = dataclasses.replace(workbench, case=dataclasses.replace(workbench.case, dtype=dtype))
    if compile_it:
        workbench = dataclasses.replace(workbench, stack=AsItLikes(compile_it))
    return workbench.mode.open(workbench)


def proven(session: Any) -> dict[str, Any]:
    return {check.name: check for check in session.proof()}


def test_a_compiled_training_keeps_its_proofs_and_learns() -> None:
    """Inductor's code of both passes, the losses of stock fp32, everything that any training proves, and its size."""
    session = opened()
    assert session.notes() == []
    assert (len(session.losses), session.updates.steps) == (1, 1), "the step that compiles is one of the training"
    session.sample(lambda: None, 2, 2)
    assert len(session.losses) == 5
    checks = proven(session)
    assert failed(checks.values()) == set(), checks
    promised = {"graphs", "recompilation", "eager_fallback", "inductor", "compiled_step", "weights_move", "steps"}
    assert promised | {"dtype", "stack"} <= set(checks)
    assert checks["compiled_step"].found == "1 forward with 1 operators, 1 backward with 1 operators, of 2 in the step"
    assert checks["inductor"].found.startswith("code of forward, backward, ")
    assert session.compile_time > 0
    counts = session.metrics()
    assert counts["graph_nodes"] > 1
    assert counts["generated_code"] > 1000
    seen = fingerprint.of(session, session.bench.device)
    assert seen is not None
    assert (seen["missing"], seen["unstable"]) == ({}, [])
    assert seen["structure"]["compiled"]["graphs"] == 1
    learned = {check.name: check for check in session.accuracy()[1]}
    assert failed(learned.values()) == set(), learned
    assert {"loss_curve", "accuracy", "loss"} == set(learned)
    session.close()


def test_bf16_is_compiled_under_autocast_in_each_batch_of_a_step() -> None:
    """The products of both passes are in bf16, and the losses stay at those of stock fp32."""
    session = opened(dtype="bf16", accumulate="2")
    session.sample(lambda: None, 2, 1)
    checks = proven(session)
    assert failed(checks.values()) == set(), checks
    assert checks["dtype"].found.startswith("bfloat16")
    assert checks["compiled_step"].found == "2 forward with 2 operators, 2 backward with 2 operators, of 4 in the step"
    [curve] = [check for check in session.accuracy()[1] if check.name == "loss_curve"]
    assert curve.ok, curve
    session.close()


def test_dropout_draws_what_eager_training_draws_and_says_so() -> None:
    """Inductor's own masks are others, with which no curve of losses can be compared."""
    session = opened(forgetful)
    session.sample(lambda: None, 2, 1)
    assert session.notes()[-1:] == [train_compile.DROPOUT]
    [curve] = [check for check in session.accuracy()[1] if check.name == "loss_curve"]
    assert curve.ok, curve
    session.close()


@pytest.mark.parametrize(
    ("compile_it", "caught"),
    [
        (lambda network: network, {"graphs", "inductor", "compiled_step"}),
        (lambda network: torch.compile(network, backend="eager"), {"inductor", "compiled_step"}),
        (lambda network: torch.compile(network, backend="aot_eager"), {"inductor"}),
    ],
    ids=["never", "without a backward", "without inductor"],
)
def test_a_training_that_is_not_compiled_is_caught(compile_it: Callable[[Any], Any], caught: set[str]) -> None:
    """Plain code under the label, a graph whose backward is eager, and code of nobody."""
    session = opened(compile_it=compile_it)
    session.sample(lambda: None, 2, 1)
    assert failed(proven(session).values()) == caught
    session.close()


TRITON_PRODUCT = """
triton_tem_fused_addmm_0 = async_compile.triton('triton_tem_fused_addmm_0', '''
@triton_heuristics.template(
triton_meta={'signature': {'arg_A': '*bf16', 'arg_B': '*bf16'}},
)
''', device_str='cuda')
def call(args):
    triton_tem_fused_addmm_0.run(buf0, buf1, stream=stream0)
"""


def event(name: str, begin: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "ts": begin, "dur": 10, **more}


def product(begin: int) -> dict[str, Any]:
    return {**event("aten::mm", begin, args={"Input type": ["float", "float"]}), "dur": 2}


@pytest.mark.parametrize(
    ("events", "ok"),
    [
        ([product(1), product(21)], True),
        ([product(1), product(21), product(41)], False),
        ([product(1)], False),
        ([product(21)], False),
        ([], False),
    ],
)
def test_both_passes_hold_all_arithmetic(events: list[dict[str, Any]], ok: bool) -> None:  # noqa: FBT001
    """What lies beside the two, and a pass that computes nothing, prove nothing."""
    passes = [event("Torch-Compiled Region: 0/0", 0), event(compilation.BACKWARD, 20)]
    assert compilation.both_passes([*passes, *events], 1, []).ok is ok
    assert not compilation.both_passes([*passes, *events], 2, []).ok


def test_a_pass_may_hold_only_products_that_inductor_wrote() -> None:
    """On a card max_autotune leaves no operator in a pass: only its code has the products."""
    passes = [event("Torch-Compiled Region: 0/0", 0), event(compilation.BACKWARD, 20), product(21)]
    forward = f"# AOT ID: ['0_forward']\n{TRITON_PRODUCT}"
    check = compilation.both_passes(passes, 1, [forward])
    assert check.ok
    assert check.found == (
        "1 forward with 0 operators and 1 products that inductor wrote, 1 backward with 1 operators, of 1 in the step"
    )
    assert not compilation.both_passes(passes, 1, [forward.replace("forward", "backward")]).ok


def test_code_is_told_by_the_pass_that_it_is_for() -> None:
    """The code of two forward passes is not that of a training, and code of an unknown pass proves nothing."""
    forward, backward = (f"# AOT ID: ['0_{name}']\ndef call(args):\n" for name in compilation.TRAINING)
    assert compilation.written([backward, forward], compilation.TRAINING).ok
    for others in ([forward, forward], [forward], ["def call(args):\n", backward], []):
        assert not compilation.written(others, compilation.TRAINING).ok
