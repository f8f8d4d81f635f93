"""The tables: a narrow fact table with dimensions. Facts are append-only, and names by content make merging safe.

Times are UTC ISO 8601 texts of fixed width, which sort correctly. Numbers are finite and in base units. A failure is a
row with an outcome and without numbers. `run.id` is not chronological after a merge: order by `started_at`.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from ipexperf.history import kinds

REVISION = "0006"
"""The newest migration. A history with this revision is opened without alembic."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

environment = Table(
    "environment",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("machine_key", Text, nullable=False, index=True),
    Column("doc", JSON, nullable=False),
)

# What can be installed again of an environment. Its uid is the digest that the environment's document names.
lock = Table(
    "lock",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("text", Text, nullable=False),
)

# A function has a test. A network has none, but a model and all that follows from it.
case = Table(
    "case",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("suite", Text, nullable=False),
    Column("test", Text),
    Column("model", Text),
    Column("device", Text, nullable=False),
    Column("dtype", Text),
    Column("mode", Text),
    Column("stack", Text),
    Column("batch", Integer),
    Column("version", Integer),
    Column("params", JSON, nullable=False),
    Index(None, "model", "mode"),
)

series = Table(
    "series",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("case_id", Integer, ForeignKey("case.id"), nullable=False, index=True),
    Column("machine_key", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("higher_is_better", Boolean),
)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(36), nullable=False, unique=True),
    Column("environment_id", Integer, ForeignKey("environment.id"), nullable=False, index=True),
    Column("started_at", String(32), nullable=False, index=True),
    Column("finished_at", String(32)),
    Column("branch", Text),
    Column("commit_sha", Text, index=True),
    Column("torch_version", Text),
    Column("ipex_version", Text),
    Column("status", Text, nullable=False),
    Column("meta", JSON, nullable=False),
    Index(None, "branch", "started_at"),
)

measurement = Table(
    "measurement",
    metadata,
    Column("series_id", Integer, ForeignKey("series.id"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True, index=True),
    Column("n", Integer, nullable=False),
    Column("median", Double),
    Column("mean", Double),
    Column("mad", Double),
    Column("lo", Double),
    Column("hi", Double),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    sqlite_with_rowid=False,
)

# The launch is the unit of replication, so failed launches are kept too.
launch = Table(
    "launch",
    metadata,
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True),
    Column("case_id", Integer, ForeignKey("case.id"), primary_key=True, index=True),
    Column("launch", Integer, primary_key=True, autoincrement=False),
    Column("environment_id", Integer, ForeignKey("environment.id"), nullable=False, index=True),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("doc", JSON, nullable=False),
    Column("log", Text, nullable=False),
)

samples = Table(
    "samples",
    metadata,
    Column("series_id", Integer, ForeignKey("series.id"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True, index=True),
    Column("launch", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

policy = Table(
    "policy",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("doc", JSON, nullable=False),
)

# Judging again adds a verdict under another policy. The one with the newest `judged_at` is shown.
verdict = Table(
    "verdict",
    metadata,
    Column("series_id", Integer, ForeignKey("series.id"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True, index=True),
    Column("policy_id", Integer, ForeignKey("policy.id"), primary_key=True, index=True),
    Column("outcome", Text, nullable=False),
    Column("ratio", Double),
    Column("p_value", Double),
    Column("mde", Double),
    Column("reason", JSON, nullable=False),
    Column("judged_at", String(32), nullable=False),
)

baseline = Table(
    "baseline",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("series_id", Integer, ForeignKey("series.id"), nullable=False, index=True),
    Column("run_id", Integer, ForeignKey("run.id"), nullable=False, index=True),
    Column("accepted_at", String(32), nullable=False),
    Column("accepted_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("superseded_by", Integer, ForeignKey("baseline.id"), index=True),
)

# Arms that took turns. If a run measures a case again, its rows are replaced but its rounds stay.
round_ = Table(
    "round",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("run_id", Integer, ForeignKey("run.id"), nullable=False, index=True),
    Column("environment_id", Integer, ForeignKey("environment.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("started_at", String(32), nullable=False),
    Column("seconds", Double, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("dropped", Integer, nullable=False),
)

seat = Table(
    "seat",
    metadata,
    Column("round_id", Integer, ForeignKey("round.id"), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("case_id", Integer, ForeignKey("case.id"), nullable=False, index=True),
    Column("role", Text, nullable=False),
    Column("launch", Integer),
    Column("turns", JSON, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# Can be computed from the seats; for queries in SQL.
paired = Table(
    "paired",
    metadata,
    Column("round_id", Integer, ForeignKey("round.id"), primary_key=True),
    Column("base_place", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("base_id", Integer, ForeignKey("case.id"), nullable=False, index=True),
    Column("case_id", Integer, ForeignKey("case.id"), nullable=False, index=True),
    Column("base_role", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("log_ratio", Double),
    Column("turns", Integer, nullable=False),
    sqlite_with_rowid=False,
)

# What a search for a culprit found. The runs that measured its candidates may be pruned; locks are named by their uid.
bisection = Table(
    "bisection",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", String(64), nullable=False, unique=True),
    Column("case_id", Integer, ForeignKey("case.id"), nullable=False, index=True),
    Column("machine_key", Text, nullable=False),
    Column("started_at", String(32), nullable=False),
    Column("finished_at", String(32), nullable=False),
    Column("good", Text, nullable=False),
    Column("bad", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("culprits", JSON, nullable=False),
    Column("suspects", JSON, nullable=False),
    Column("ends", JSON),
    Column("ratio", Double),
    Column("lo", Double),
    Column("hi", Double),
    Column("ran", JSON, nullable=False),
    Column("last_good", String(64)),
    Column("first_bad", String(64)),
    Column("measured", Integer, nullable=False),
    Column("differences", Integer, nullable=False),
)

# A history may come from anywhere, so each value is checked as it is read.
for _table in metadata.tables.values():
    for _column in _table.columns:
        _column.type = kinds.Checked(_column)
