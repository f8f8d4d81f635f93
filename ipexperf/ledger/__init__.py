"""What was seen on which hardware: the run of `ipexperf evidence`, its files, and the tables made of them."""

from pathlib import Path

NETWORKS = Path(__file__).parents[1] / "bench" / "models" / "_for_evidence.py"
"""The file with the networks that only evidence needs."""
