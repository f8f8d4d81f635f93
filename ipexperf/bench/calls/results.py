"""Results of calls as sketches, which tell whether two processes got the same. Nothing is pickled."""

from __future__ import annotations

import enum
import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ipexperf.bench.evidence import answers
from ipexperf.dtypes import DTYPES

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, enum.Enum)
"""Types whose values are compared by their text."""
SHOWN = 60
"""Longest text of a value that is kept whole. Of a longer one a digest is."""
MOST = 40
"""From this many values on, the rest is one digest."""
EXACT = 1e-9
"""Largest distance of results in float64, relative to their size: sums in another order."""


def sketch(result: Any) -> dict[str, Any]:
    """Return the sketch of a result: texts of its plain values and shapes, and sums of the numbers in its tensors."""
    texts, numbers, bound = [], [], EXACT
    for part in _parts(result):
        array = _array(part)
        if array is None:
            texts.append(_text(part))
            continue
        name = str(array.dtype).removeprefix("torch.")
        texts.append(f"{'x'.join(map(str, array.shape)) or 'scalar'} {name}")
        if _rounded(array):
            numbers.append(array)
            # A float of Python's may be read from a tensor, as a loss is.
            kind = "float32" if isinstance(part, float) else name
            bound = max(bound, *(row.bounds.fidelity for row in DTYPES.values() if kind in row.operands), EXACT)
        else:
            texts[-1] += f" {_digest((array.numpy() if hasattr(array, 'numpy') else array).tobytes())}"
    summed, odd = _numbers(numbers, bound)
    texts += [f"{odd} not finite"] if odd else []
    if len(texts) > MOST:
        texts[MOST:] = [_digest("\n".join(texts[MOST:]).encode(errors="surrogatepass"))]
    made = {"norm": 0.0, "sums": answers.NOTHING, "bound": bound, "weights": "", **summed, "shapes": texts}
    unknown = incomparable(result)
    return {**made, "unknown": unknown} if unknown else made


def incomparable(result: Any) -> str:
    """Return the first type in a result whose values cannot be compared, or an empty text."""
    kinds = (type(part) for part in _parts(result) if _array(part) is None and not _exact(part))
    return next((f"a {kind.__name__}" for kind in kinds), "")


def _numbers(arrays: list[Any], bound: float) -> tuple[dict[str, Any], int]:
    """The sums of all numbers of these arrays that are finite, and how many are not."""
    if not arrays:
        return {}, 0
    torch = sys.modules.get("torch")
    if torch is not None:
        library, parts = torch, [torch.view_as_real(x) if x.is_complex() else x for x in arrays]
        numbers = torch.cat([x.to(torch.float64).reshape(-1) for x in parts])
    else:
        library = sys.modules["numpy"]
        parts = [part for x in arrays for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]
        numbers = library.concatenate([x.astype("float64").reshape(-1) for x in parts])
    finite = library.isfinite(numbers)
    return answers.sketch((), library.where(finite, numbers, 0.0), bound) or {}, int((~finite).sum())


def _rounded(array: Any) -> bool:
    kind = getattr(array.dtype, "kind", "")  # torch's have none
    return kind in "fc" if kind else array.is_floating_point() or array.is_complex()


def _parts(value: Any) -> Iterator[Any]:
    """The values in nested containers, with the kinds and lengths of these."""
    if getattr(value, "ndim", 0) == 1 and hasattr(value, "to_numpy"):  # a column of a table, and its index
        yield type(value).__name__
        yield from _parts(getattr(value, "index", None))
        yield from _parts(value.to_numpy())
    elif getattr(getattr(value, "dtype", None), "kind", "") == "O" and hasattr(value, "tolist"):
        yield from _parts(value.tolist())
    elif isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "items")):
        pairs = list(value.items())
        yield f"{type(value).__name__} of {', '.join(str(key) for key, _ in pairs)}"
        for _, part in pairs:
            yield from _parts(part)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} of {len(value)}"
        for part in value:
            yield from _parts(part)
    elif isinstance(value, set | frozenset):
        yield f"{type(value).__name__} of {', '.join(sorted(map(_text, value)))}"
    elif named := _fields(value):
        yield type(value).__name__
        for name in named:
            yield from _parts(getattr(value, name))
    else:
        yield value


def _fields(value: Any) -> list[str]:
    """The fields of an instance of a dataclass, or of a class that attrs made."""
    if isinstance(value, type):
        return []
    return [one.name for one in (fields(value) if is_dataclass(value) else getattr(value, "__attrs_attrs__", ()))]


def _array(value: Any) -> Any:
    """The numbers of a tensor, of an array of NumPy's, or a float beside them. Beside torch they become a tensor."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return value.detach().to_dense().cpu().resolve_conj()
        except (RuntimeError, NotImplementedError):
            return None  # such as one on the meta device, which has no numbers
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic | float):
        array = numpy.array(value)
        if array.dtype.kind not in "biufc":
            return None
        return array if torch is None else torch.from_numpy(array)
    return torch.tensor(value, dtype=torch.float64) if torch is not None and isinstance(value, float) else None


def _text(value: Any) -> str:
    """A plain value, or its digest if it is long. Of other values the type alone: their text may have addresses."""
    if not _exact(value):
        return type(value).__name__
    if not isinstance(value, PLAIN):
        return f"{'x'.join(map(str, value.shape))} {value.dtype} {_digest(value.tobytes())}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{type(value).__name__} {_digest(text.encode(errors='surrogatepass'))}"


def _exact(value: Any) -> bool:
    """Whether two values of this kind are compared exactly. NumPy's are texts, times and the like here."""
    numpy = sys.modules.get("numpy")
    return isinstance(value, PLAIN) or (numpy is not None and isinstance(value, numpy.ndarray | numpy.generic))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
