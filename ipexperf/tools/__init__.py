"""Tools around a run: each folder comes through entry points, and the rest works without it."""
