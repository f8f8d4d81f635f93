"""`ipexperf evidence`: run cases that prove a machine's features, write the results to a file, make tables of files."""

from pathlib import Path

NETWORKS = Path(__file__).parents[1] / "bench" / "models" / "_for_evidence.py"
"""The file with the networks that only evidence needs."""
