"""What both scripts of this folder run."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest", "-p", "ipexperf.short_options")
