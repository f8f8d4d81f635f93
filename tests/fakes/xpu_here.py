"""Puts the fake card, whose memory fragments, into a worker that loads this file: it stays for the process's life."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import fake_card
import fake_xpu

_CARD = fake_xpu.install(pytest.MonkeyPatch())
_CARD.fragments = 2**22
_MODE = fake_card.Ways(_CARD)
_MODE.__enter__()
