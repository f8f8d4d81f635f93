"""Opt in to `--device` and the other short option names: `pytest_plugins = ["ipexperf.short_options"]` in a conftest.

Without it `--perf-device` and its like are the only names, because many projects declare a `--device` of their own.
"""

from __future__ import annotations

import pytest

from ipexperf.plan import options


def declare(parser: pytest.Parser) -> None:
    """Declare each short name that no other plugin or conftest has declared."""
    options.add_short(options.declarer(parser), lambda flag: _free(parser, flag))


def _free(parser: pytest.Parser, flag: str) -> bool:
    word = f"{flag}=x"
    try:
        return word in parser.parse_known_and_unknown_args([word])[1]
    except pytest.UsageError:  # somebody's option that takes no such value
        return False
