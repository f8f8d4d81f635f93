"""What may be recorded and printed: texts, command lines and values of variables without their secrets."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence

TUNING = re.compile(
    r"(?!\w*_(VERSION|HOME|(CACHE|EXTENSIONS)_DIR|ARCH_LIST|MIRROR|UR[IL]|ENDPOINT|REGISTRY|PROXY|ADDR(ESS)?)$|CCL_KVS)"
    r"((OMP|KMP|GOMP|MKL|MKLDNN|ONEDNN|DNNL|ZE[ST]?|SYCL|UR|IPEX|TORCH[A-Z]*|ATEN|CUDA|MALLOC|PYTORCH"
    r"|TBB|NUMEXPR|OPENBLAS|BLIS|CCL|NCCL|TRITON|CUDNN)_"
    r"|NEO|MKLROOT$|GLIBC_TUNABLES$|LD_(PRELOAD|AUDIT|BIND_NOW)$"
    r"|PYTHON_?(MALLOC|OPTIMIZE|DEVMODE|TRACEMALLOC|PROFILEIMPORTTIME|DEBUG|GIL|JIT|CPU_COUNT)$)",
    re.ASCII,
)
"""Variables that tune libraries. Those that tell versions, folders and addresses do not."""
HARMLESS = re.compile(r"((INTEL|ONEAPI|I_MPI|LC)_|LD_LIBRARY_PATH$|PYTHON[A-Z]*$|LANG$)", re.ASCII)
"""Other variables whose values may be recorded."""
NO_SETTING = re.compile(r"(?s)://|^(?!/).*?(?<![A-Z0-9])(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{20}", re.IGNORECASE)
"""Values that tune nothing: an address, or what looks random and is no path."""
SECRET = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASS(?!ED|ES|IV)|PWD|CREDENTIAL|PRIVATE|AUTH(?!ORS?(?![A-Z]))|COOKIE"
    r"|(?<!XDG_)(?<!DESKTOP_)(?<!GDM)SESSION|(?<![A-Z0-9])(API)?KEYS?(?![A-Z0-9])|(?-i:(?<=[a-z])Key(?![A-Za-z]))",
    re.IGNORECASE,
)
"""Names whose values are never recorded, whatever they begin with."""
SMALL = re.compile(r"([0-9]\.?){0,3}|true|false|yes|no|on|off", re.IGNORECASE | re.ASCII)
"""Values that are too small to be a secret."""
ASSIGNMENT = re.compile(r"([^\W\d_]\w*)=(.*)", re.DOTALL)
FLAG = re.compile(r"(-{0,2}[a-z][a-z0-9_-]*=)*", re.ASCII)
"""The option before an arm in a word of the command line, such as `--perf-against=`."""
HIDDEN = re.compile(r"hidden-[0-9a-f]{8}")
"""A digest that stands for a value."""
_USER = re.compile(
    r"://[^\s:/?#\"]*:(?!\d+(?:[/?#\s\"]|$))(?:[^\s\"]{0,4096}|[^\n\"@]{0,256})@"
    r"|(?<!ssh)(?<!psycopg)(?<!postgres)(?<!postgresql)://[^\s/?#\"]+@"  # a token, where these have a mere name
)
"""User and password of a URL. A password may have a slash, a sign @ or a space."""
# The look-ahead and the possessive quantifier keep the search linear.
_NAME = rf"(?<![\w.-])(?=[\w.-]*(?:{SECRET.pattern}))[\w.-]++"
_QUERY = re.compile(rf"([?&]{_NAME}=)[^\s&\"']+", re.IGNORECASE)
_NAMED = re.compile(
    # A bare `key` is mostly that of a dictionary or a sort.
    rf"""((?!keys?\b){_NAME}=|(?<=["'])(?!keys?\b){_NAME}["']\s*:\s*|(?=--){_NAME}\s+(?!-)"""
    r"""|\b(?:authorization|cookie):\s*|\blogin\s+\S+\s+password\s+)"""
    rf"""(?!\*|{HIDDEN.pattern}|["']?(?:{SMALL.pattern})["']?(?:[\s,;)\]}}]|$))"""
    r"""(?P<value>"[^"]*"|'[^']*'|(?:(?:basic|bearer)\s+)?\S+)""",
    re.IGNORECASE,
)
"""A value in a text whose name says that it is a secret: of an option, a variable, a header or a `.netrc`."""
_OPTION = re.compile(rf"(?=--){_NAME}", re.IGNORECASE)
_seen: set[str] = set()
"""Secret values of command lines and arms, which may appear in any text from then on."""


def redacted(text: str) -> str:
    """Return a text without users of URLs, values whose names say that they are secret, and secrets of this process."""
    of_shell = (value for name, value in os.environ.items() if SECRET.search(name))
    # The path of a file with secrets is none. A text of several lines, such as a key, may be printed in part.
    lines = {line for value in {*of_shell, *_seen} if not _exists(value) for line in value.splitlines()}
    known = sorted((line for line in lines if len(line) >= 6), key=len, reverse=True)
    short = (re.escape(line) if len(line) >= 12 else rf"(?<!\w){re.escape(line)}(?!\w)" for line in known)
    text = re.sub("|".join(short) or "(?!)", "***", text)
    return _NAMED.sub(r"\1***", _QUERY.sub(r"\1***", _USER.sub("://***@", text)))


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - pathlib's raises where a text is too long for a path


def redacted_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line without the secrets of its options and of the arms in them."""
    shown = [word.removesuffix(rest := FLAG.sub("", word, count=1)) + redacted_arm(rest) for word in words]
    for number, (option, word) in enumerate(zip(("", *words), shown, strict=False)):
        _seen.update(match["value"].strip("\"'") for match in _NAMED.finditer(word))
        # A path may follow an option that takes no value, such as --no-auth.
        behind = _OPTION.fullmatch(option) and word[:1] != "-" and not _exists(word.partition("::")[0])
        named = _NAMED.match(word)
        if behind or named:
            value = word[named.end(1) :] if named else word
            _seen.add(value)
            shown[number] = f"{word.removesuffix(value)}***"
    return [*map(redacted, shown)]


def redacted_arm(text: str) -> str:
    """Return the text of an arm, with a digest in place of a value that may not be recorded. Else it is unchanged."""
    try:
        words = shlex.split(text)
    except ValueError:  # quotes do not match, so we cannot tell where a value ends
        return re.sub(r"((?=\w*[A-Z])[^\W\d_]\w*)=.*", r"\1=***", text, count=1, flags=re.DOTALL)
    shown = [*map(_of_arm, words)]
    return text if shown == words else shlex.join(shown)


def _of_arm(word: str) -> str:
    rest = FLAG.sub("", word, count=1)
    head = word.removesuffix(rest)
    match = ASSIGNMENT.fullmatch(rest)
    if match and not match[1].islower():
        return f"{head}{match[1]}={recorded(match[1], match[2])}"
    # Axes, knobs and pytest's options have names without capitals. A word with spaces was quoted, as in an ini key.
    return head + redacted_arm(rest) if len(rest.split()) > 1 else word


def recorded(name: str, value: str) -> str:
    """Return a variable's value as it may be recorded: a digest of a possible secret, so that arms still differ."""
    if HIDDEN.fullmatch(value):
        return value
    if SECRET.search(name):
        _seen.add(value)
    elif SMALL.fullmatch(value) or ((TUNING.match(name) or HARMLESS.match(name)) and not NO_SETTING.search(value)):
        return value
    return _digest(name, value)


@functools.cache
def _digest(name: str, value: str) -> str:
    # 32 bits tell arms apart, and are so few that many passwords share a digest: a guess, made slow, proves nothing.
    key = hashlib.pbkdf2_hmac("sha256", value.encode(errors="surrogateescape"), name.encode(), 100_000)
    return f"hidden-{key[:4].hex()}"


def tuned(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tune libraries."""
    tuning = {name: value for name, value in sorted(variables.items()) if TUNING.match(name)}
    return {name: value for name, value in tuning.items() if recorded(name, value) == value}


def without_numbers(text: str) -> str:
    """The text with all numbers alike: by it those are found that say the same with other figures."""
    return re.sub(r"[\d.,]+", "0", text)
