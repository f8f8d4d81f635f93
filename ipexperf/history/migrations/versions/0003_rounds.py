"""Rounds: arms that took turns, what each of them did, and the ratio of each two."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

INDEXED = (
    ("environment", "machine_key"),
    ("round", "run_id"),
    ("round", "environment_id"),
    ("seat", "case_id"),
    ("paired", "base_id"),
    ("paired", "case_id"),
)


def upgrade() -> None:
    op.create_table(
        "round",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("started_at", sa.String(32), nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("dropped", sa.Integer, nullable=False),
    )
    op.create_table(
        "seat",
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("launch", sa.Integer),
        sa.Column("turns", sa.JSON, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "paired",
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), primary_key=True),
        sa.Column("base_place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("base_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("base_role", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("log_ratio", sa.Double),
        sa.Column("turns", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    for table, column in INDEXED:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    op.drop_index("ix_environment_machine_key", "environment")
    for table in ("paired", "seat", "round"):
        op.drop_table(table)
