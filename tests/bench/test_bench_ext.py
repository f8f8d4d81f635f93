"""The public surface for extensions: a metric has one meaning, and what cannot be registered is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ipexperf import ext, result


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
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
