"""Tell which variables tune libraries, and which values may be recorded. Other values are recorded as a digest.

Set one of this process for a while.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

TUNING = re.compile(
    r"(?!\w*_(VERSION|HOME|(CACHE|EXTENSIONS)_DIR|ARCH_LIST)$)"
    r"((OMP|KMP|GOMP|MKL|MKLDNN|ONEDNN|DNNL|ZE[ST]?|SYCL|UR|IPEX|TORCH[A-Z]*|ATEN|CUDA|MALLOC|PYTORCH"
    r"|TBB|NUMEXPR|OPENBLAS|BLIS|CCL|NCCL|TRITON|CUDNN)_"
    r"|NEO|MKLROOT$|GLIBC_TUNABLES$|LD_(PRELOAD|AUDIT|BIND_NOW)$"
    r"|PYTHON_?(MALLOC|OPTIMIZE|DEVMODE|TRACEMALLOC|PROFILEIMPORTTIME|DEBUG|GIL|JIT|CPU_COUNT)$)",
    re.ASCII,
)
"""Variables that tune libraries. Those of an image that tell versions and folders do not."""
HARMLESS = re.compile(
    r"((INTEL|ONEAPI|I_MPI|LC)_|LD_LIBRARY_PATH$|PYTHON[A-Z]*$|LANG$)",
    re.ASCII,
)
"""Other variables whose values may be recorded."""
SECRET = re.compile(
    r"TOKEN|SECRET|PASS|PWD|CREDENTIAL|PRIVATE|AUTH|COOKIE|SESSION|(^|_)(API)?KEYS?(_|$)", re.IGNORECASE
)
"""Names that are never recorded with their value, whatever they begin with."""
SMALL = re.compile(r"[0-9]{0,3}|true|false|yes|no|on|off", re.IGNORECASE | re.ASCII)
"""Values that are too small to be a secret."""
ASSIGNMENT = re.compile(r"([^\W\d_]\w*)=(.*)", re.DOTALL)
FLAG = re.compile(r"(-{0,2}[a-z][a-z0-9_-]*=)*", re.ASCII)
"""The option before an arm in a word of the command line, such as `--perf-against=`."""
HIDDEN = re.compile(r"hidden-[0-9a-f]{8}")
"""A digest that stands for a value."""
ROUNDS = 100_000
"""Rounds of the digest: a twentieth of a second for each guess at a value."""


@contextlib.contextmanager
def changed(name: str, value: str) -> Iterator[None]:
    """Set a variable of this process inside the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def tuned(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tune libraries."""
    return {name: value for name, value in sorted(variables.items()) if tunes(name)}


def tunes(name: str) -> bool:
    """Return True if a variable tunes a library."""
    return bool(TUNING.match(name)) and not SECRET.search(name)


def recorded(name: str, value: str) -> str:
    """Return the value as it may be recorded and printed: a digest if it may be a secret.

    Two different values stay different, so that they are still two arms.
    """
    harmless = TUNING.match(name) or HARMLESS.match(name) or SMALL.fullmatch(value)
    return value if harmless and not SECRET.search(name) else _digest(name, value)


@functools.cache
def _digest(name: str, value: str) -> str:
    # 32 bits are enough to tell arms apart, and so few that many passwords share a digest: a guess proves nothing.
    key = hashlib.pbkdf2_hmac("sha256", value.encode(errors="surrogateescape"), name.encode(), ROUNDS)
    return f"hidden-{key[:4].hex()}"


def masked(words: Iterable[str]) -> list[str]:
    """Return the words of an arm, with a digest in place of each value that may not be recorded."""
    return [_masked(word) for word in words]


def _masked(word: str) -> str:
    flag = FLAG.match(word)
    head = flag[0] if flag else ""
    rest = word[len(head) :]
    match = ASSIGNMENT.fullmatch(rest)
    if match and not match[1].islower() and not HIDDEN.fullmatch(match[2]):
        return f"{head}{match[1]}={recorded(match[1], match[2])}"
    # Axes, knobs and pytest's options have names without capitals. A word with spaces was quoted, as in an ini key.
    return head + masked_text(rest) if len(rest.split()) > 1 else word


def masked_text(text: str) -> str:
    """Return the text of an arm as it may be recorded. It is unchanged if it sets no variable that must be hidden."""
    try:
        words = shlex.split(text)
    except ValueError:  # quotes do not match, so we cannot tell where a value ends
        return re.sub(r"((?=\w*[A-Z])[^\W\d_]\w*)=.*", r"\1=hidden", text, count=1, flags=re.DOTALL)
    hidden = masked(words)
    return text if hidden == words else shlex.join(hidden)


def masked_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line as they may be recorded: with the arms in them masked."""
    heads = [match[0] if (match := FLAG.match(word)) else "" for word in words]
    return [head + masked_text(word[len(head) :]) for head, word in zip(heads, words, strict=True)]
