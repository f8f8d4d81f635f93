"""Runs the migrations on the connection, and inside the transaction, that the caller brings."""

from __future__ import annotations

from alembic import context

from ipexperf.history.schema import metadata

# `context` is only alive while alembic executes this file, which it does by path and for its effect.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
