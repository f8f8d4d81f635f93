CREATE INDEX ix_baseline_run_id ON baseline (run_id)
CREATE INDEX ix_baseline_series_id ON baseline (series_id)
CREATE INDEX ix_baseline_superseded_by ON baseline (superseded_by)
CREATE INDEX ix_bisection_case_id ON bisection (case_id)
CREATE INDEX ix_case_model_mode ON "case" (model, mode)
CREATE INDEX ix_environment_machine_key ON environment (machine_key)
CREATE INDEX ix_launch_case_id ON launch (case_id)
CREATE INDEX ix_launch_environment_id ON launch (environment_id)
CREATE INDEX ix_measurement_run_id ON measurement (run_id)
CREATE INDEX ix_paired_base_id ON paired (base_id)
CREATE INDEX ix_paired_case_id ON paired (case_id)
CREATE INDEX ix_round_environment_id ON round (environment_id)
CREATE INDEX ix_round_run_id ON round (run_id)
CREATE INDEX ix_run_branch_started_at ON run (branch, started_at)
CREATE INDEX ix_run_commit_sha ON run (commit_sha)
CREATE INDEX ix_run_environment_id ON run (environment_id)
CREATE INDEX ix_run_started_at ON run (started_at)
CREATE INDEX ix_samples_run_id ON samples (run_id)
CREATE INDEX ix_seat_case_id ON seat (case_id)
CREATE INDEX ix_series_case_id ON series (case_id)
CREATE INDEX ix_verdict_policy_id ON verdict (policy_id)
CREATE INDEX ix_verdict_run_id ON verdict (run_id)
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
CREATE TABLE baseline (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	series_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	accepted_at VARCHAR(32) NOT NULL, 
	accepted_by TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	superseded_by INTEGER, 
	CONSTRAINT pk_baseline PRIMARY KEY (id), 
	CONSTRAINT uq_baseline_uid UNIQUE (uid), 
	CONSTRAINT fk_baseline_series_id FOREIGN KEY(series_id) REFERENCES series (id), 
	CONSTRAINT fk_baseline_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_baseline_superseded_by FOREIGN KEY(superseded_by) REFERENCES baseline (id)
)
CREATE TABLE bisection (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	case_id INTEGER NOT NULL, 
	machine_key TEXT NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32) NOT NULL, 
	good TEXT NOT NULL, 
	bad TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	culprits JSON NOT NULL, 
	suspects JSON NOT NULL, 
	ends JSON, 
	ratio DOUBLE, 
	lo DOUBLE, 
	hi DOUBLE, 
	ran JSON NOT NULL, 
	last_good VARCHAR(64), 
	first_bad VARCHAR(64), 
	measured INTEGER NOT NULL, 
	differences INTEGER NOT NULL, 
	CONSTRAINT pk_bisection PRIMARY KEY (id), 
	CONSTRAINT uq_bisection_uid UNIQUE (uid), 
	CONSTRAINT fk_bisection_case_id FOREIGN KEY(case_id) REFERENCES "case" (id)
)
CREATE TABLE "case" (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	suite TEXT NOT NULL, 
	test TEXT, 
	model TEXT, 
	device TEXT NOT NULL, 
	dtype TEXT, 
	mode TEXT, 
	stack TEXT, 
	batch INTEGER, 
	version INTEGER, 
	params JSON NOT NULL, 
	CONSTRAINT pk_case PRIMARY KEY (id), 
	CONSTRAINT uq_case_uid UNIQUE (uid)
)
CREATE TABLE environment (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	machine_key TEXT NOT NULL, 
	doc JSON NOT NULL, 
	CONSTRAINT pk_environment PRIMARY KEY (id), 
	CONSTRAINT uq_environment_uid UNIQUE (uid)
)
CREATE TABLE launch (
	run_id INTEGER NOT NULL, 
	case_id INTEGER NOT NULL, 
	launch INTEGER NOT NULL, 
	environment_id INTEGER NOT NULL, 
	outcome TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	doc JSON NOT NULL, 
	log TEXT NOT NULL, 
	CONSTRAINT pk_launch PRIMARY KEY (run_id, case_id, launch), 
	CONSTRAINT fk_launch_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_launch_case_id FOREIGN KEY(case_id) REFERENCES "case" (id), 
	CONSTRAINT fk_launch_environment_id FOREIGN KEY(environment_id) REFERENCES environment (id)
)
CREATE TABLE lock (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_lock PRIMARY KEY (id), 
	CONSTRAINT uq_lock_uid UNIQUE (uid)
)
CREATE TABLE measurement (
	series_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	median DOUBLE, 
	mean DOUBLE, 
	mad DOUBLE, 
	lo DOUBLE, 
	hi DOUBLE, 
	outcome TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	CONSTRAINT pk_measurement PRIMARY KEY (series_id, run_id), 
	CONSTRAINT fk_measurement_series_id FOREIGN KEY(series_id) REFERENCES series (id), 
	CONSTRAINT fk_measurement_run_id FOREIGN KEY(run_id) REFERENCES run (id)
)
 WITHOUT ROWID


CREATE TABLE paired (
	round_id INTEGER NOT NULL, 
	base_place INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	base_id INTEGER NOT NULL, 
	case_id INTEGER NOT NULL, 
	base_role TEXT NOT NULL, 
	role TEXT NOT NULL, 
	log_ratio DOUBLE, 
	turns INTEGER NOT NULL, 
	CONSTRAINT pk_paired PRIMARY KEY (round_id, base_place, place), 
	CONSTRAINT fk_paired_round_id FOREIGN KEY(round_id) REFERENCES round (id), 
	CONSTRAINT fk_paired_base_id FOREIGN KEY(base_id) REFERENCES "case" (id), 
	CONSTRAINT fk_paired_case_id FOREIGN KEY(case_id) REFERENCES "case" (id)
)
 WITHOUT ROWID


CREATE TABLE policy (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	doc JSON NOT NULL, 
	CONSTRAINT pk_policy PRIMARY KEY (id), 
	CONSTRAINT uq_policy_uid UNIQUE (uid)
)
CREATE TABLE round (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	run_id INTEGER NOT NULL, 
	environment_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	schedule TEXT NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	seconds DOUBLE NOT NULL, 
	turns INTEGER NOT NULL, 
	dropped INTEGER NOT NULL, 
	CONSTRAINT pk_round PRIMARY KEY (id), 
	CONSTRAINT uq_round_uid UNIQUE (uid), 
	CONSTRAINT fk_round_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_round_environment_id FOREIGN KEY(environment_id) REFERENCES environment (id)
)
CREATE TABLE run (
	id INTEGER NOT NULL, 
	uid VARCHAR(36) NOT NULL, 
	environment_id INTEGER NOT NULL, 
	started_at VARCHAR(32) NOT NULL, 
	finished_at VARCHAR(32), 
	branch TEXT, 
	commit_sha TEXT, 
	torch_version TEXT, 
	ipex_version TEXT, 
	status TEXT NOT NULL, 
	meta JSON NOT NULL, 
	CONSTRAINT pk_run PRIMARY KEY (id), 
	CONSTRAINT uq_run_uid UNIQUE (uid), 
	CONSTRAINT fk_run_environment_id FOREIGN KEY(environment_id) REFERENCES environment (id)
)
CREATE TABLE samples (
	series_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	launch INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_samples PRIMARY KEY (series_id, run_id, launch), 
	CONSTRAINT fk_samples_series_id FOREIGN KEY(series_id) REFERENCES series (id), 
	CONSTRAINT fk_samples_run_id FOREIGN KEY(run_id) REFERENCES run (id)
)
CREATE TABLE seat (
	round_id INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	case_id INTEGER NOT NULL, 
	role TEXT NOT NULL, 
	launch INTEGER, 
	turns JSON NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_seat PRIMARY KEY (round_id, place), 
	CONSTRAINT fk_seat_round_id FOREIGN KEY(round_id) REFERENCES round (id), 
	CONSTRAINT fk_seat_case_id FOREIGN KEY(case_id) REFERENCES "case" (id)
)
CREATE TABLE series (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	case_id INTEGER NOT NULL, 
	machine_key TEXT NOT NULL, 
	metric TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	higher_is_better BOOLEAN, 
	CONSTRAINT pk_series PRIMARY KEY (id), 
	CONSTRAINT uq_series_uid UNIQUE (uid), 
	CONSTRAINT fk_series_case_id FOREIGN KEY(case_id) REFERENCES "case" (id)
)
CREATE TABLE verdict (
	series_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	policy_id INTEGER NOT NULL, 
	outcome TEXT NOT NULL, 
	ratio DOUBLE, 
	p_value DOUBLE, 
	mde DOUBLE, 
	reason JSON NOT NULL, 
	judged_at VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_verdict PRIMARY KEY (series_id, run_id, policy_id), 
	CONSTRAINT fk_verdict_series_id FOREIGN KEY(series_id) REFERENCES series (id), 
	CONSTRAINT fk_verdict_run_id FOREIGN KEY(run_id) REFERENCES run (id), 
	CONSTRAINT fk_verdict_policy_id FOREIGN KEY(policy_id) REFERENCES policy (id)
)
