"""The judge's own error rate: a row for each trial of a selftest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

INDEXED = ("session", "environment_id", "case_id", "policy_id")


def upgrade() -> None:
    op.create_table(
        "selftest",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("session", sa.String(36), nullable=False),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), nullable=False),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), nullable=False),
        sa.Column("injection", sa.Text, nullable=False),
        sa.Column("size", sa.Double),
        sa.Column("started_at", sa.String(32), nullable=False),
        sa.Column("finished_at", sa.String(32), nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("ratio", sa.Double),
        sa.Column("lo", sa.Double),
        sa.Column("hi", sa.Double),
        sa.Column("mde", sa.Double),
        sa.Column("cut", sa.Boolean, nullable=False),
        sa.Column("log_ratios", sa.JSON, nullable=False),
    )
    for column in INDEXED:
        op.create_index(op.f(f"ix_selftest_{column}"), "selftest", [column])


def downgrade() -> None:
    op.drop_table("selftest")
