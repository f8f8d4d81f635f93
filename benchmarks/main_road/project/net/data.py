"""What becomes of a batch before the network sees it."""

import ctypes
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = ctypes.CDLL(str(HERE / "libwork.so"))
TIMES = int((HERE / "table.txt").read_text())
SHIFT = 0.1


def prepare(x):
    LIBRARY.work(TIMES)
    return x * 0.9 + SHIFT
