"""`ipexperf evidence`: run cases that prove a machine's features, write the results to a file, make tables of files."""

from pathlib import Path

NETWORKS = Path(__file__).with_name("networks.py")
"""The file with the networks that only evidence needs."""
