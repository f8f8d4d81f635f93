"""Bisections: what searches for a culprit found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "bisection",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("machine_key", sa.Text, nullable=False),
        sa.Column("started_at", sa.String(32), nullable=False),
        sa.Column("finished_at", sa.String(32), nullable=False),
        sa.Column("good", sa.Text, nullable=False),
        sa.Column("bad", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("culprits", sa.JSON, nullable=False),
        sa.Column("suspects", sa.JSON, nullable=False),
        sa.Column("ends", sa.JSON),
        sa.Column("ratio", sa.Double),
        sa.Column("lo", sa.Double),
        sa.Column("hi", sa.Double),
        sa.Column("ran", sa.JSON, nullable=False),
        sa.Column("last_good", sa.String(64)),
        sa.Column("first_bad", sa.String(64)),
        sa.Column("measured", sa.Integer, nullable=False),
        sa.Column("differences", sa.Integer, nullable=False),
    )
    op.create_index(op.f("ix_bisection_case_id"), "bisection", ["case_id"])


def downgrade() -> None:
    op.drop_table("bisection")
