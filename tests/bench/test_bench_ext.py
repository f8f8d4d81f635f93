"""The public surface for extensions: each kind of thing is registered by its name, and everything else is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ipexperf import ext, result
from ipexperf.bench import registry


class _Device(ext.Device):
    name = "dummy"

    def why_not(self, facts: ext.Facts) -> str | None:
        return f"never, on {facts}"

    def synchronise(self) -> None: ...

    def put(self, value: Any) -> Any:
        return value

    def reset_peak_memory(self) -> None: ...

    def peak_memory(self) -> int:
        return 0


class _Mode(ext.Mode):
    name = "dummy"

    def why_not(self, cell: ext.Cell, facts: ext.Facts) -> str | None:
        return f"never, {cell} on {facts}"

    def open(self, bench: ext.Workbench) -> ext.Session:
        raise NotImplementedError(str(bench))


class _Stack(ext.Stack):
    name = "dummy"

    def why_not(self, cell: ext.Cell, facts: ext.Facts) -> str | None:
        return f"never, {cell} on {facts}"

    def for_inference(self, network: Any, example: Any, bench: ext.Workbench) -> Any:
        return network, example, bench

    def for_training(self, network: Any, optimizer: Any, bench: ext.Workbench) -> tuple[Any, Any]:
        return network, (optimizer, bench)


@pytest.mark.parametrize(
    ("item", "known"),
    [
        (_Device(), registry.devices),
        (_Mode(), registry.modes),
        (_Stack(), registry.stacks),
        (ext.Model(name="dummy", build=lambda: None, size=1, batch_train=1, batch_infer=1), registry.models),
    ],
    ids=["device", "mode", "stack", "model"],
)
def test_register_makes_a_thing_known_by_its_name(item: Any, known: registry.Registry[Any]) -> None:
    assert ext.register(item) is item
    assert known.get("dummy") is item
    with pytest.raises(ext.UsageError, match="'dummy' is registered twice"):
        ext.register(item)


def test_a_metric_has_one_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one may be registered again, as by two files of one project."""
    monkeypatch.setattr(ext, "METRICS", dict(result.METRICS))
    for _ in range(2):
        ext.register(ext.Metric("tokens_per_joule", "tokens/J", higher_is_better=True))
    assert ext.METRICS["tokens_per_joule"].unit == "tokens/J"
    with pytest.raises(ext.UsageError, match="'tokens_per_joule' is registered twice, with different meanings"):
        ext.register(ext.Metric("tokens_per_joule", "tokens/J", higher_is_better=False))


@pytest.mark.parametrize(("item", "name"), [(_Mode, "ABCMeta"), ("mode", "str"), (None, "NoneType")])
def test_anything_else_is_refused(item: Any, name: str) -> None:
    with pytest.raises(
        ext.UsageError, match=f"register takes a device, .* not {name}; a class needs to be instantiated"
    ):
        ext.register(item)


@pytest.mark.process
def test_everything_it_exports_is_there_and_torch_is_not_imported() -> None:
    """Collection imports the files of extensions, in processes that have no use for torch."""
    program = "import sys, ipexperf.ext as e; [getattr(e, x) for x in e.__all__]; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
