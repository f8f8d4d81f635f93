"""The first schema.

Written out, not imported from `schema.py`: a revision must mean tomorrow what it meant when it was released.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None

TABLES = ("baseline", "verdict", "policy", "samples", "launch", "measurement", "run", "series", "case", "environment")


def upgrade() -> None:
    op.create_table(
        "environment",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("machine_key", sa.Text, nullable=False),
        sa.Column("doc", sa.JSON, nullable=False),
    )
    op.create_table(
        "case",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("suite", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("dtype", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("stack", sa.Text, nullable=False),
        sa.Column("batch", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), nullable=False),
        sa.Column("machine_key", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("higher_is_better", sa.Boolean),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(36), nullable=False, unique=True),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), nullable=False),
        sa.Column("started_at", sa.String(32), nullable=False),
        sa.Column("finished_at", sa.String(32)),
        sa.Column("branch", sa.Text),
        sa.Column("commit_sha", sa.Text),
        sa.Column("torch_version", sa.Text),
        sa.Column("ipex_version", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("meta", sa.JSON, nullable=False),
    )
    op.create_table(
        "measurement",
        sa.Column("series_id", sa.Integer, sa.ForeignKey("series.id"), primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("median", sa.Double),
        sa.Column("mean", sa.Double),
        sa.Column("mad", sa.Double),
        sa.Column("lo", sa.Double),
        sa.Column("hi", sa.Double),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "launch",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("case.id"), primary_key=True),
        sa.Column("launch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("doc", sa.JSON, nullable=False),
        sa.Column("log", sa.Text, nullable=False),
    )
    op.create_table(
        "samples",
        sa.Column("series_id", sa.Integer, sa.ForeignKey("series.id"), primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("launch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "policy",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("doc", sa.JSON, nullable=False),
    )
    op.create_table(
        "verdict",
        sa.Column("series_id", sa.Integer, sa.ForeignKey("series.id"), primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("policy_id", sa.Integer, sa.ForeignKey("policy.id"), primary_key=True),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("ratio", sa.Double),
        sa.Column("p_value", sa.Double),
        sa.Column("mde", sa.Double),
        sa.Column("reason", sa.JSON, nullable=False),
        sa.Column("judged_at", sa.String(32), nullable=False),
    )
    op.create_table(
        "baseline",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.String(64), nullable=False, unique=True),
        sa.Column("series_id", sa.Integer, sa.ForeignKey("series.id"), nullable=False),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("accepted_at", sa.String(32), nullable=False),
        sa.Column("accepted_by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("superseded_by", sa.Integer, sa.ForeignKey("baseline.id")),
    )
    for table, columns in (
        ("case", ["model", "mode"]),
        ("series", ["case_id"]),
        ("run", ["environment_id"]),
        ("run", ["started_at"]),
        ("run", ["branch", "started_at"]),
        ("run", ["commit_sha"]),
        ("measurement", ["run_id"]),
        ("launch", ["case_id"]),
        ("launch", ["environment_id"]),
        ("samples", ["run_id"]),
        ("verdict", ["run_id"]),
        ("verdict", ["policy_id"]),
        ("baseline", ["series_id"]),
        ("baseline", ["run_id"]),
        ("baseline", ["superseded_by"]),
    ):
        op.create_index(op.f("_".join(("ix", table, *columns))), table, columns)


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
