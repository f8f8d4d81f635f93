"""Import files of the user's, and say which line of them raised an error."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ipexperf.bench import outcome
from ipexperf.bench.machine import source
from ipexperf.errors import IpexperfError, UsageError

PACKAGE = str(Path(__file__).parents[1])
_loaded: set[str] = set()
"""The files that were imported here."""


def load_module(name: str) -> None:
    try:
        _loaded.add(str(importlib.import_module(name).__file__))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(sentence(error)) from error


def load_file(path: Path) -> ModuleType:
    """Import a file as a module, once."""
    path = source.moved(path)
    try:
        exists = path.is_file()
    except (OSError, ValueError) as error:  # such as a name that is too long, or that has a NUL
        raise UsageError(str(getattr(error, "strerror", None) or error)) from None
    if not exists:
        raise UsageError("there is no such file")
    name = f"ipexperf_loaded_{path.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path.resolve()):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loaded.add(str(path.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, UsageError):
            raise
        raise UsageError(sentence(error)) from error
    return module


def sentence(error: BaseException) -> str:
    """Return an error message in one line, with the line of a loaded file that raised it."""
    place = place_of(error)
    return f"{outcome.sentence(error)}{f' ({place})' if place else ''}"


def place_of(error: BaseException) -> str:
    """Return the line of a loaded file that raised an error, or an empty text if another file did."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    relevant = [
        frame for frame in frames if frame[0].co_filename in _loaded or frame[0].co_filename.startswith(PACKAGE)
    ]
    if not relevant or relevant[-1][0].co_filename not in _loaded:
        return ""
    code, line = relevant[-1]
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.10, which may run a worker, lacks the former
    function = "" if name == "<module>" else f", in {name}"
    return f"{Path(code.co_filename).name}, line {line}{function}"


@contextmanager
def errors_as_usage() -> Iterator[None]:
    """Turn an exception of a loaded file into a UsageError with its line there: its author needs no traceback."""
    try:
        yield
    except IpexperfError:
        raise
    except (Exception, SystemExit) as error:
        if not place_of(error):
            raise
        raise UsageError(sentence(error)) from error
