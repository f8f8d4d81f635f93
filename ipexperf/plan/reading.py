"""Take the value of every option from the first place that has it: command line, variable, ini key. Parsed strictly."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ipexperf import variables
from ipexperf.errors import UsageError
from ipexperf.plan import values
from ipexperf.plan.options import OPTIONS, Option, Options
from ipexperf.plan.placement import PlacementWish

if TYPE_CHECKING:
    import pytest

INI = "ipexperf"
"""The key of pytest's ini file: options for each run, as on a command line."""


def add_arguments(add: Callable[..., Any], chosen: Iterable[Option] = OPTIONS) -> None:
    """Declare options through argparse's `add_argument`. `--help` shows the short spellings; the long ones work too."""
    for option in chosen:
        text = f"{option.help} [env: {option.variable}]" if option.variable else option.help
        if option.short:
            _add(add, option, option.short, option.short_dest, text)
            text = argparse.SUPPRESS
        _add(add, option, option.flag, option.dest, text)


def _add(add: Callable[..., Any], option: Option, flag: str, dest: str, text: str) -> None:
    if option.switch:
        add(flag, action="store_true", default=None, help=text, dest=dest)
    else:
        action = "append" if option.repeat else "store"
        add(flag, action=action, type=option.read, default=None, metavar=option.metavar, help=text, dest=dest)


def add_to_pytest(parser: pytest.Parser) -> None:
    """Declare the options. `pytest --help` shows the common ones."""
    for option in OPTIONS:
        _add(_declarer(parser), option, option.flag, option.dest, option.help if option.common else argparse.SUPPRESS)


def add_short_to_pytest(parser: pytest.Parser) -> list[str]:
    """Declare the short spellings that no other plugin or conftest has declared. Returns them."""
    chosen = [option for option in OPTIONS if option.short and _free(parser, f"{option.short}=x")]
    for option in chosen:
        _add(_declarer(parser), option, option.short, option.short_dest, f"the same as {option.flag}")
    return [option.short for option in chosen]


def _free(parser: pytest.Parser, word: str) -> bool:
    import pytest

    try:
        return word in parser.parse_known_and_unknown_args([word])[1]
    except pytest.UsageError:  # somebody's option that takes no such value
        return False


def _declarer(parser: pytest.Parser) -> Callable[..., None]:
    """Return a function that declares an option in our section of `pytest --help`.

    A wrong value is then one sentence. Without this, argparse prints pytest's usage above it.
    """
    import pytest

    group = parser.getgroup("ipexperf", "ipexperf: performance regressions. All options: ipexperf help options")

    def declare(flag: str, **settings: Any) -> None:
        if read := settings.get("type"):

            def read_or_refuse(text: str) -> Any:
                try:
                    return read(text)
                except argparse.ArgumentTypeError as error:
                    raise pytest.UsageError(f"{flag}: {error}") from None

            settings["type"] = read_or_refuse
        group.addoption(flag, **settings)

    return declare


def refuse_valueless(words: Iterable[str], flags: Iterable[str] = ()) -> None:
    """Raise pytest.UsageError for an option without its value: argparse would print pytest's usage above it.

    `flags` are short spellings. Without them it is about the long ones.
    """
    import pytest

    wanting = set(flags) or {option.flag for option in OPTIONS if not option.switch}
    for word, following in itertools.pairwise([*words, None]):
        if word in wanting and (following is None or re.match("--?[a-zA-Z]", following)):
            raise pytest.UsageError(f"{word}: expected a value")


def refuse_unknown(words: Iterable[str]) -> None:
    """Raise pytest.UsageError if one of these words, which pytest knows no option for, was meant to be one of ours."""
    import pytest

    short = {option.short: option.flag for option in OPTIONS if option.short}
    for word in words:
        name = word.partition("=")[0]
        if name in short:
            opt_in = "without -p ipexperf.short_options"
            raise pytest.UsageError(f"there is no option {name} here: that of ipexperf is {short[name]} {opt_in}")
        if name.startswith("--perf-"):
            raise pytest.UsageError(f"there is no option {name}{_nearest(name)}")


def _nearest(word: str) -> str:
    """A hint to the option that a word was meant to be, or where all are."""
    from ipexperf.bench.registry import nearest_option

    if hint := nearest_option([word], [option.flag for option in OPTIONS]):
        return hint
    name = word.removeprefix("--perf-")
    placed = name in [field.name for field in dataclasses.fields(PlacementWish)]
    return f": say --perf-placement={name}=..." if placed else ": `ipexperf cases --help` lists all"


def unknown_variables(environment: Mapping[str, str] = os.environ) -> str:
    """A sentence on variables of our prefix that nobody reads, with the nearest name, or an empty text."""
    from ipexperf.bench.registry import nearest

    prefix, names = variables.PREFIX, {option.variable for option in OPTIONS if option.in_ci} | set(variables.OTHERS)
    ends = {name.removeprefix(prefix) for name in names}  # the prefix would make any two of them similar
    texts = []
    for name in sorted(environment):
        if name.startswith(prefix) and name not in names and name not in variables.OF_THE_CHECKOUT:
            near = nearest(name.removeprefix(prefix), ends).removeprefix(": did you mean ")
            texts.append(f"{name} (did you mean {prefix}{near})" if near else name)
    return f"ignored: there is no variable {', '.join(texts)}" if texts else ""


def resolve(
    command_line: Callable[[str], Any],
    ini: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Options:
    """Take each option from the first place that sets it. `command_line` returns None for options that it lacks."""
    chosen: dict[str, Any] = {}
    sources: dict[str, str] = {}
    ini_file = _parsed_ini(ini) if ini else lambda _: None
    for option in OPTIONS:
        if (parsed := _parsed(option, command_line)) is not None:
            chosen[option.name], sources[option.name] = parsed
        elif text := environment.get(option.variable):
            try:
                chosen[option.name] = option.read(text)
            except argparse.ArgumentTypeError as error:
                raise UsageError(f"{option.variable}: {error}") from None
            sources[option.name] = option.variable
        elif (parsed := _parsed(option, ini_file)) is not None:
            chosen[option.name], sources[option.name] = parsed[0], f"{INI}: {parsed[1]}"
    return _with_indices(_with_networks(Options(**chosen, sources=sources)))


def _parsed_ini(words: Sequence[str]) -> Callable[[str], Any]:
    """Parse the words of the ini key. Return a function that gives the value of an option, or None."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    add_arguments(parser.add_argument)
    try:
        parsed, unknown = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"{INI}: {error.argument_name}: {error.message}") from None
    if unknown:
        raise UsageError(f"{INI}: there is no option {unknown[0].partition('=')[0]}{_nearest(unknown[0])}")
    return vars(parsed).get


def _parsed(option: Option, place: Callable[[str], Any]) -> tuple[Any, str] | None:
    """Return the value among parsed words and the spelling of its option there, or None."""
    value = place(option.dest)
    source = option.flag
    if option.short and (of_short := place(option.short_dest)) is not None:
        value, source = [*of_short, *(value or ())], option.short
    if value is None:
        return None
    if value == [] or (option.repeat and [] in value):
        # argparse of Python before 3.13 takes the value `--` for an empty list.
        raise UsageError(f"{source}: expected a value, got '--'")
    return (tuple(word for part in value for word in part) if option.repeat else value), source


def _with_indices(options: Options) -> Options:
    """Split devices such as `xpu:1` into names and indices. A name without an index is the first card."""
    cards: dict[str, int] = {}
    indices: dict[str, int] = {}
    for device in options.device or ():
        name, colon, text = device.partition(":")
        try:
            index = values.index(text) if colon else 0
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"{options.source('device')}: {device}: {error}") from None
        if cards.setdefault(name, index) != index:
            both = f"{name}:{cards[name]} and {name}:{index}"
            raise UsageError(f"{options.source('device')}: {both}: a run measures on one card of a kind")
        if colon:
            indices[name] = index
    return dataclasses.replace(options, device=tuple(cards) or None, indices=indices)


def _with_networks(options: Options) -> Options:
    """Load the networks of the user's own that models and the other arm name, and plan them by their cases' names."""
    # As in `own_target`, which is imported only where a target is named.
    targets = [name for name in options.model or () if ":" in name]
    models = dict.fromkeys(_model_of(name, options) if name in targets else name for name in options.model or ())
    loaded = dict.fromkeys((*options.load, *targets, *targets_of(options.against or "")))
    return dataclasses.replace(options, model=tuple(models) or None, load=tuple(loaded))


def _model_of(target: str, options: Options) -> str:
    from ipexperf.bench.networks import own_target

    try:
        return own_target.parse(target).name
    except UsageError as error:
        raise UsageError(f"{options.source('model')}: {error}") from None


def targets_of(arm: str) -> list[str]:
    """Return the networks of the user's own that an arm names as its model. Mistakes are for `arms.parse` to report."""
    try:
        words = shlex.split(arm)
    except ValueError:
        return []
    named = (word.removeprefix("model=") for word in words if word.startswith("model="))
    return [name for name in named if ":" in name]
