"""The mode infer_export: the package that AOTInductor made is what runs, with the weights inside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.machine import facts
from ipexperf.errors import WorkerError

torch = pytest.importorskip("torch")

from bench_cases import failed, network, opened

pytestmark = pytest.mark.filterwarnings("ignore")
"""Torch's compiler uses what torch and Python have deprecated."""
needs_compiler = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")


class Branches(torch.nn.Module):  # type: ignore[misc]
    """Goes one way or the other by what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(192, 10)

    def forward(self, images: Any) -> Any:
        result = self.inner(images.flatten(1))
        return result if result.sum() > 0 else -result


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A small network as a package: made once, for compiling takes its time.

    Headers that are compiled beforehand, and a quick wrapper, pay where there is more than one package.
    """
    import torch._inductor.config as inductor

    quick = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
    with inductor.patch(cpp_cache_precompile_headers=False, **quick):
        made = opened(network, "infer_export")
    yield made
    made.close()


def mapped(libraries: list[str]) -> bool:
    return libraries[0] in Path("/proc/self/maps").read_text()


@needs_compiler
def test_a_package_keeps_its_proofs_and_its_accuracy(session: Any) -> None:
    """Both operators are seen in their dtype, in oneDNN's log; the one graph is loaded, and its weights are frozen."""
    session.step()
    proven = {check.name: check for check in session.proof()}
    assert failed(proven.values()) == set()
    assert proven["dtype"].found == "float32 x2"
    assert proven["package"].found == "AOTICompiledModel, 1 of the package's 1 graphs loaded"
    assert {"freezing", "stack"} <= set(proven)
    assert failed(session.accuracy()[1]) == set()


@needs_compiler
def test_a_network_that_never_was_a_package_is_caught(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager code under the label of the mode is no package, and has no constants inside."""
    monkeypatch.setattr(session, "network", network().eval())
    assert failed(session.proof()) == {"package", "freezing"}


@needs_compiler
def test_weights_that_were_not_frozen_are_caught(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that are the parameters as they were are no frozen ones; and the loaded graph must be the one made."""
    monkeypatch.setattr(session.network, "get_constant_fqns", lambda: ["0.weight", "4.weight"], raising=False)
    assert failed(session.proof()) == {"freezing"}
    monkeypatch.setattr(session, "libraries", ["another.wrapper.so"])
    assert failed(session.proof()) == {"package", "freezing"}


@needs_compiler
def test_a_closed_session_leaves_nothing_behind(session: Any) -> None:
    """What torch unpacked the package into is gone with it, and so is the code."""
    libraries = session.libraries
    assert mapped(libraries)
    [folder] = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if libraries[0] in line}
    session.close()
    assert not mapped(libraries)
    assert not Path(folder).exists()


def test_a_network_that_is_no_graph_is_one_sentence() -> None:
    """What depends on the values of its input cannot be exported: the launch ends with the reason, on one line."""
    with pytest.raises(WorkerError, match=r"torch\.export makes no graph of tiny: ") as error:
        opened(Branches, "infer_export")
    assert error.value.outcome == "error"
    assert "\n" not in error.value.reason
