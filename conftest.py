"""Opts in to the short option names, and loads the plugin from the checkout if it is not installed."""

from importlib.metadata import entry_points

import pytest

_INSTALLED = any(entry.name == "ipexperf" for entry in entry_points(group="pytest11"))
pytest_plugins = ["ipexperf.short_options"] if _INSTALLED else ["ipexperf.plugin"]

if not _INSTALLED:

    def pytest_addoption(parser: pytest.Parser) -> None:
        """Declare the short names here: the hook of a plugin that a conftest loads comes too late."""
        from ipexperf.plan import reading

        reading.add_short_to_pytest(parser)
