"""uv, which makes environments, resolves and installs: how it is started, and what it is told of pip's settings.

uv does not read pip's configuration, in which a machine names its indexes and certificates. They travel in variables,
because an address may hold a password, and a command line is seen by everybody on the machine.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import uv

from ipexperf.errors import LockError
from ipexperf.redaction import redacted

HOURS = 2
"""Time limit for an installation, which may download many GB."""
SPEAK_SECONDS = 30.0
"""Longest silence meanwhile."""
OF_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""The variable by which uv is told an option of pip."""
_SETTING = re.compile(r"(global|install|:env:)\.([a-z-]+)=(.*)")
Say = Callable[[str], None]


def run(
    *words: str,
    say: Say = lambda _: None,
    send: str = "",
    indexes: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run uv and return what it prints. Now and then, say that it still runs. Raise LockError with its reason.

    `indexes`: more of them than those that pip, or uv itself, is set to ask. They are asked only if those do not do: a
    machine without a network may have a mirror alone.
    """
    if indexes:
        with suppress(LockError):
            return run(*words, say=say, send=send, variables=variables)
    settings = pip_settings() if words[0] == "pip" else {}
    is_alone = settings.get("no-index") in ("1", "true", "yes", "on")
    options = ["--no-index"] if is_alone and "--no-index" not in words else []
    began = time.monotonic()
    with subprocess.Popen(
        [uv.find_uv_bin(), *words, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd="/",  # else it would follow the pyproject.toml of the tree that is measured
        env={**_variables(settings, indexes), **(variables or {})},
    ) as process:
        waiting: str | None = send
        try:
            while (seconds := time.monotonic() - began) < HOURS * 3600:
                with suppress(subprocess.TimeoutExpired):
                    output, errors = process.communicate(waiting, timeout=SPEAK_SECONDS)
                    if process.returncode:
                        raise LockError(redacted(reason(errors)))
                    return output
                waiting = None  # it was sent
                say(f"still installing, for {seconds + SPEAK_SECONDS:.0f} s")
        finally:
            process.kill()  # it still runs if we were interrupted, or if it took too long
    raise LockError(f"it took more than {HOURS} hours")


def pip_settings() -> dict[str, str]:
    """Return the options that pip is set to by its files and variables, the nearest of each."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [match.groups() for line in done.stdout.splitlines() if (match := _SETTING.fullmatch(line))]
    nearest = sorted(rows, key=lambda row: ("global", "install", ":env:").index(row[0]))
    return {option: str(ast.literal_eval(value)) for _, option, value in nearest}


def _variables(settings: Mapping[str, str], indexes: Sequence[str]) -> dict[str, str]:
    """Return the variables of uv. Those that the user has set are left alone."""
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    for option, name in OF_PIP.items():
        if words := settings.get(option, "").split():
            if option == "find-links":
                words = [str(path.absolute()) if (path := Path(word)).exists() else word for word in words]
            variables[name] = ("," if option == "find-links" else " ").join(words)
    variables |= os.environ
    return variables | {"UV_INDEX": " ".join([*variables.get("UV_INDEX", "").split(), *indexes])}


def reason(text: str) -> str:
    """Return the sentence of an installer's or an interpreter's messages that tells the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if because := re.search(r"Because (.*?)( and you require [^,]*)?, we can conclude", " ".join(lines)):
        return because[1]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unavailable|Invalid)\b.*:", line)]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    if not raised and len(causes) > 1:
        return f"{causes[0]}: {causes[-1]}"
    return (raised or causes or errors or lines or ["no message"])[-1].removeprefix("ERROR: ").removeprefix("error: ")
