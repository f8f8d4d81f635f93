"""Migrations, run by `ipexperf.history.database` whenever a history is older than the program."""
