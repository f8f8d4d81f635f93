"""Subcommands that plan, accept or measure: each declares itself and calls a room."""
