"""Puts the fake card into a worker: loaded there with `--perf-load`, it stays for the life of the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import fake_card
import fake_xpu

_MODE = fake_card.Ways(fake_xpu.install(pytest.MonkeyPatch()))
_MODE.__enter__()
