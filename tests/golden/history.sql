BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
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
);
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
);
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
);
INSERT INTO "case" VALUES(1,'fa61d7b3beb481acca9ba5cd00ee6d72e33b0268e9c7c2a01d9d6f50e95edb5e','gold',NULL,'tiny','fake','fp32','spin','plain',1,1,'{"size": 1, "data": "none"}');
INSERT INTO "case" VALUES(2,'348d6435bd3ba9679dee99da08c18204221f3c7f1b53c4b58152d808b3e0cc74','gold',NULL,'tiny','fake','bf16','spin','plain',1,1,'{"size": 1, "data": "none"}');
INSERT INTO "case" VALUES(3,'f83d3849bf6a293407ccdfea48a679d1a7192acc4a9f337d288c05710178d0e4','gold',NULL,'wrong','fake','fp32','spin','plain',1,1,'{"size": 1, "data": "none"}');
INSERT INTO "case" VALUES(4,'b49c6871d2f7fcd6979b0ba88cba5a5238981f1bf5767ab61f942437a53b6b1c','gold',NULL,'wrong','fake','bf16','spin','plain',1,1,'{"size": 1, "data": "none"}');
INSERT INTO "case" VALUES(5,'1c7b6fd280e1efe91f6012af13247075ca0b87f360d5bf665894a94b22286657','gold',NULL,'unproven','fake','fp32','spin','plain',1,1,'{"size": 1, "data": "none"}');
INSERT INTO "case" VALUES(6,'f9c77a3058824bb3b9d7103ff1dc8e72c398a193b2615f8992afed069e1357ae','gold',NULL,'unproven','fake','bf16','spin','plain',1,1,'{"size": 1, "data": "none"}');
CREATE TABLE environment (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	machine_key TEXT NOT NULL, 
	doc JSON NOT NULL, 
	CONSTRAINT pk_environment PRIMARY KEY (id), 
	CONSTRAINT uq_environment_uid UNIQUE (uid)
);
INSERT INTO "environment" VALUES(1,'5ec2afb98f48f1eec9c6c4cceafef78cb1c7fc558cfd76f32131222d4de67088','amd-epyc-2c-24g-19af5190','{"machine_key": "amd-epyc-2c-24g-19af5190", "hardware": {"cpu": "AMD EPYC", "isa": ["avx", "avx2", "avx512_bf16", "avx512_bitalg", "avx512_vbmi2", "avx512_vnni", "avx512_vp2intersect", "avx512_vpopcntdq", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512ifma", "avx512vbmi", "avx512vl", "avx_vnni", "f16c", "fma", "sse4_1", "sse4_2", "sse4a"], "cores": 2, "affinity": [0, 1], "cores_total": 2, "memory": 25276510208, "governor": null, "frequency_khz": null, "kernel": "6.1.0", "huge_pages": "always [madvise] never", "memory_limit": null, "cpu_limit": null, "host": "a-host", "accelerator": {"name": "fake"}, "threads": null}, "software": {"python": "3.11.7", "executable": "/somewhere", "libc": "glibc 2.36", "openmp": [], "allocator": ["libc"], "torch": null, "ipex": null}, "variables": {"GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1", "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TOP_PAD_": "67108864", "MALLOC_TRIM_THRESHOLD_": "1099511627776", "OMP_WAIT_POLICY": "PASSIVE", "TORCH_CPP_LOG_LEVEL": "ERROR", "TORCH_WARM_POOL": "0"}}');
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
);
INSERT INTO "launch" VALUES(1,1,0,1,'ok','','{"started_at": "2026-11-23T10:03:01.997000+00:00", "finished_at": "2026-11-23T10:03:07.185000+00:00", "block": 67, "metrics": {"step_time": 0.0005467079403686838, "throughput": 1829.1301921198171, "p50": 0.0005467079403686838, "p90": 0.0006439664328137218, "cpu_time": 0.0003085418955223881, "import_time": 0.21298419799859403, "prepare_time": 0.0002478019960108213, "warm_time": 0.002514784995582886, "page_faults": 0.0018570102135561746, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.7160697808584524, "held_up": 0.21515965721436572, "io_pressure": 0.0004950257275245636, "memory_pressure": 0.0, "others": 0.7102543047027796, "run_delay": 0.21515965721436572, "steal": 0.0, "turns": 5.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 9.0, "steady": 1.0, "first_step": 0.0003827839973382652}, "proof": [{"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,1,1,1,'ok','','{"started_at": "2026-11-23T10:03:01.997000+00:00", "finished_at": "2026-11-23T10:03:07.185000+00:00", "block": 60, "metrics": {"step_time": 0.0005340281166354543, "throughput": 1872.56058033108, "p50": 0.0005105523832753533, "p90": 0.0007038654999632854, "cpu_time": 0.0003102131333333334, "warm_time": 0.002858560001186561, "page_faults": 0.006076388888888889}, "gate": {"cpu_pressure": 0.6944809043060649, "held_up": 0.18899632922538714, "io_pressure": 0.00115863154640404, "memory_pressure": 0.0, "others": 0.6920060935802521, "run_delay": 0.18899632922538714, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 1.0, "steady": 1.0, "first_step": 0.00037296000664355233, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,2,0,1,'ok','','{"started_at": "2026-11-23T10:03:01.997000+00:00", "finished_at": "2026-11-23T10:03:07.185000+00:00", "block": 67, "metrics": {"step_time": 0.0006417528208807361, "throughput": 1558.232340338775, "p50": 0.0006417528208807361, "p90": 0.000727445597055806, "cpu_time": 0.00032121464179104485, "import_time": 0.15790261400252348, "prepare_time": 0.00022251400514505804, "warm_time": 0.0026447490017744713, "page_faults": 0.0018570102135561746, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.7160697808584524, "held_up": 0.21515965721436572, "io_pressure": 0.0004950257275245636, "memory_pressure": 0.0, "others": 0.7102543047027796, "run_delay": 0.21515965721436572, "steal": 0.0, "turns": 5.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 9.0, "steady": 1.0, "first_step": 0.0003306970029370859}, "proof": [{"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,2,1,1,'ok','','{"started_at": "2026-11-23T10:03:01.997000+00:00", "finished_at": "2026-11-23T10:03:07.185000+00:00", "block": 60, "metrics": {"step_time": 0.0005296459917493242, "throughput": 1888.0535595052504, "p50": 0.0005292939167702571, "p90": 0.0007294567333398542, "cpu_time": 0.0003168848749999999, "warm_time": 0.002890777999709826, "page_faults": 0.0078125}, "gate": {"cpu_pressure": 0.6944809043060649, "held_up": 0.18899632922538714, "io_pressure": 0.00115863154640404, "memory_pressure": 0.0, "others": 0.6920060935802521, "run_delay": 0.18899632922538714, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 0.0, "steady": 1.0, "first_step": 0.00034233399492222816, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,3,0,1,'ok','','{"started_at": "2026-11-23T10:03:07.195000+00:00", "finished_at": "2026-11-23T10:03:12.665000+00:00", "block": 66, "metrics": {"step_time": 0.0005294731742072723, "throughput": 1888.6698112651331, "p50": 0.0005038438787530388, "p90": 0.0007290547423921948, "cpu_time": 0.0003634819545454541, "import_time": 0.19381545099895447, "prepare_time": 0.00023037599748931825, "warm_time": 0.003112221005721949, "page_faults": 0.0015873015873015873, "peak_memory": 67108864.0, "accuracy": 0.0, "agreement": 0.0, "fidelity": 0.0017363281461004565}, "gate": {"cpu_pressure": 0.5953728918190985, "held_up": 0.1822984839725885, "io_pressure": 5.3607768923762644e-05, "memory_pressure": 0.0, "others": 0.6838748092588551, "run_delay": 0.1822984839725885, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 7.0, "steady": 1.0, "first_step": 0.00038390600093407556}, "proof": [{"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": false, "found": "1.74e-03", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,3,1,1,'ok','','{"started_at": "2026-11-23T10:03:07.195000+00:00", "finished_at": "2026-11-23T10:03:12.665000+00:00", "block": 65, "metrics": {"step_time": 0.00046840003068120075, "throughput": 2134.9272726256786, "p50": 0.0004620494153081941, "p90": 0.0005775191692429451, "cpu_time": 0.00033776200769230753, "warm_time": 0.002701915000216104, "page_faults": 0.004830917874396135}, "gate": {"cpu_pressure": 0.8924773352169784, "held_up": 0.1476045439013842, "io_pressure": 0.0016324813449654961, "memory_pressure": 4.321591912595909e-05, "others": 0.6590427666657726, "run_delay": 0.1476045439013842, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 11.0, "steady": 1.0, "first_step": 0.00035884899989468977, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,4,0,1,'ok','','{"started_at": "2026-11-23T10:03:07.195000+00:00", "finished_at": "2026-11-23T10:03:12.665000+00:00", "block": 66, "metrics": {"step_time": 0.0004910864697166924, "throughput": 2036.3012660008728, "p50": 0.0004869146818457397, "p90": 0.0006905389090013958, "cpu_time": 0.0003119984999999999, "import_time": 0.1998083639991819, "prepare_time": 0.00024953499814728275, "warm_time": 0.0024962759998743422, "page_faults": 0.0015873015873015873, "peak_memory": 67108864.0, "accuracy": 0.0, "agreement": 0.0, "fidelity": 0.0017363281461004565}, "gate": {"cpu_pressure": 0.5953728918190985, "held_up": 0.1822984839725885, "io_pressure": 5.3607768923762644e-05, "memory_pressure": 0.0, "others": 0.6838748092588551, "run_delay": 0.1822984839725885, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 7.0, "steady": 1.0, "first_step": 0.00031153800227912143}, "proof": [{"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": false, "found": "1.74e-03", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,4,1,1,'ok','','{"started_at": "2026-11-23T10:03:07.195000+00:00", "finished_at": "2026-11-23T10:03:12.665000+00:00", "block": 65, "metrics": {"step_time": 0.0004541373230704966, "throughput": 2201.9771315839816, "p50": 0.00045269970768668615, "p90": 0.0005610489230513429, "cpu_time": 0.0003257752384615387, "warm_time": 0.004584501002682373, "page_faults": 0.004830917874396135}, "gate": {"cpu_pressure": 0.8924773352169784, "held_up": 0.1476045439013842, "io_pressure": 0.0016324813449654961, "memory_pressure": 4.321591912595909e-05, "others": 0.6590427666657726, "run_delay": 0.1476045439013842, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 12.0, "steady": 1.0, "first_step": 0.0003510469978209585, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,5,0,1,'ok','','{"started_at": "2026-11-23T10:03:12.707000+00:00", "finished_at": "2026-11-23T10:03:18.205000+00:00", "block": 65, "metrics": {"step_time": 0.0004695417461334728, "throughput": 2129.736084671241, "p50": 0.00045557816920336334, "p90": 0.0006788654307736298, "cpu_time": 0.0003330449384615387, "import_time": 0.21367094900051598, "prepare_time": 0.00021983999613439664, "warm_time": 0.002690899003937375, "page_faults": 0.001610305958132045, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.8102941668992026, "held_up": 0.14013837303013288, "io_pressure": 0.0, "memory_pressure": 0.0, "others": 0.6403664222146949, "run_delay": 0.14013837303013288, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 13.0, "steady": 1.0, "first_step": 0.0003357330060680397}, "proof": [{"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,5,1,1,'ok','','{"started_at": "2026-11-23T10:03:12.707000+00:00", "finished_at": "2026-11-23T10:03:18.205000+00:00", "block": 59, "metrics": {"step_time": 0.00035791086443399977, "throughput": 2793.9917431157055, "p50": 0.00035791086443399977, "p90": 0.0005642719152709074, "cpu_time": 0.0003414034237288129, "warm_time": 0.003103949005890172, "page_faults": 0.0036036036036036037}, "gate": {"cpu_pressure": 0.6780545238977155, "held_up": 0.09011123470033607, "io_pressure": 0.0008465018159679062, "memory_pressure": 0.0, "others": 0.5865450498683812, "run_delay": 0.09011123470033607, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 13.0, "steady": 1.0, "first_step": 0.0003747530063265003, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,6,0,1,'ok','','{"started_at": "2026-11-23T10:03:12.707000+00:00", "finished_at": "2026-11-23T10:03:18.205000+00:00", "block": 65, "metrics": {"step_time": 0.00040581086919141507, "throughput": 2464.202109698335, "p50": 0.0003891663538524881, "p90": 0.000685593846160023, "cpu_time": 0.0003346900769230763, "import_time": 0.20725623200269183, "prepare_time": 0.00021227899560471997, "warm_time": 0.0025899070024024695, "page_faults": 0.001610305958132045, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.8102941668992026, "held_up": 0.14013837303013288, "io_pressure": 0.0, "memory_pressure": 0.0, "others": 0.6403664222146949, "run_delay": 0.14013837303013288, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 13.0, "steady": 1.0, "first_step": 0.00033808699663495645}, "proof": [{"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(1,6,1,1,'ok','','{"started_at": "2026-11-23T10:03:12.707000+00:00", "finished_at": "2026-11-23T10:03:18.205000+00:00", "block": 59, "metrics": {"step_time": 0.0003474580678473211, "throughput": 2878.045129864179, "p50": 0.0003474580678473211, "p90": 0.0005246694406920697, "cpu_time": 0.0003379728474576271, "warm_time": 0.0029007239936618134, "page_faults": 0.003003003003003003}, "gate": {"cpu_pressure": 0.6780545238977155, "held_up": 0.09011123470033607, "io_pressure": 0.0008465018159679062, "memory_pressure": 0.0, "others": 0.5865450498683812, "run_delay": 0.09011123470033607, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 3.0, "steady": 1.0, "first_step": 0.00039241799822775647, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,1,0,1,'ok','','{"started_at": "2026-11-23T10:03:20.728000+00:00", "finished_at": "2026-11-23T10:03:25.680000+00:00", "block": 66, "metrics": {"step_time": 0.0003655373636292731, "throughput": 2735.6984524684513, "p50": 0.0003655373636292731, "p90": 0.00038284303026915893, "cpu_time": 0.0003654386060606048, "import_time": 0.10435580299963476, "prepare_time": 0.0002152840024791658, "warm_time": 0.0030380989992409013, "page_faults": 0.0010787486515641855, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.0491341413732215, "held_up": 0.0004172231382869372, "io_pressure": 0.0, "memory_pressure": 0.0, "others": 0.5041546993185887, "run_delay": 0.0004172231382869372, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 11.0, "steady": 1.0, "first_step": 0.0004253679944667965}, "proof": [{"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,1,1,1,'ok','','{"started_at": "2026-11-23T10:03:20.728000+00:00", "finished_at": "2026-11-23T10:03:25.680000+00:00", "block": 58, "metrics": {"step_time": 0.0003641128275595637, "throughput": 2746.401456665006, "p50": 0.0003626036723917109, "p90": 0.00037707746553772677, "cpu_time": 0.0003635595344827587, "warm_time": 0.0031236479990184307, "page_faults": 0.003863134657836645}, "gate": {"cpu_pressure": 0.12337845956271094, "held_up": 0.0021684937455578998, "io_pressure": 0.00076674669921708, "memory_pressure": 0.0, "others": 0.504371582869909, "run_delay": 0.0021684937455578998, "steal": 0.0, "turns": 10.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 4.0, "steady": 1.0, "first_step": 0.00037886900099692866, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,2,0,1,'ok','','{"started_at": "2026-11-23T10:03:20.728000+00:00", "finished_at": "2026-11-23T10:03:25.680000+00:00", "block": 66, "metrics": {"step_time": 0.00033933819698480267, "throughput": 2946.912575376197, "p50": 0.00033933819698480267, "p90": 0.00034476498485398196, "cpu_time": 0.00033893837878787894, "import_time": 0.1923044010036392, "prepare_time": 0.00019931899441871792, "warm_time": 0.0025236469955416396, "page_faults": 0.0010787486515641855, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.0491341413732215, "held_up": 0.0004172231382869372, "io_pressure": 0.0, "memory_pressure": 0.0, "others": 0.5041546993185887, "run_delay": 0.0004172231382869372, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 4.0, "steady": 1.0, "first_step": 0.00031932900310494006}, "proof": [{"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,2,1,1,'ok','','{"started_at": "2026-11-23T10:03:20.728000+00:00", "finished_at": "2026-11-23T10:03:25.680000+00:00", "block": 58, "metrics": {"step_time": 0.0003697749395761438, "throughput": 2704.3476800949643, "p50": 0.0003686451378473129, "p90": 0.0003875060344931814, "cpu_time": 0.0003689979482758613, "warm_time": 0.002833352002198808, "page_faults": 0.003863134657836645}, "gate": {"cpu_pressure": 0.12337845956271094, "held_up": 0.0021684937455578998, "io_pressure": 0.00076674669921708, "memory_pressure": 0.0, "others": 0.504371582869909, "run_delay": 0.0021684937455578998, "steal": 0.0, "turns": 10.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 3.0, "steady": 1.0, "first_step": 0.0003531499969540164, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,3,0,1,'ok','','{"started_at": "2026-11-23T10:03:25.687000+00:00", "finished_at": "2026-11-23T10:03:31.209000+00:00", "block": 69, "metrics": {"step_time": 0.0005023800724724213, "throughput": 1990.5248133720434, "p50": 0.000411934739162646, "p90": 0.0006555548551251127, "cpu_time": 0.00032464094927536205, "import_time": 0.09186694999516476, "prepare_time": 0.00021526300406549126, "warm_time": 0.00300378799875034, "page_faults": 0.0019267822736030828, "peak_memory": 67108864.0, "accuracy": 0.0, "agreement": 0.0, "fidelity": 0.0017363281461004565}, "gate": {"cpu_pressure": 0.6640279351479897, "held_up": 0.18261537263270014, "io_pressure": 0.016435933736667744, "memory_pressure": 0.0001625959065435125, "others": 0.6802481804369725, "run_delay": 0.18261537263270014, "steal": 0.0, "turns": 7.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 12.0, "steady": 1.0, "first_step": 0.0003769160030060448}, "proof": [{"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": false, "found": "1.74e-03", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,3,1,1,'ok','','{"started_at": "2026-11-23T10:03:25.687000+00:00", "finished_at": "2026-11-23T10:03:31.209000+00:00", "block": 67, "metrics": {"step_time": 0.0005412484029848337, "throughput": 1847.580509217726, "p50": 0.0005404424179022186, "p90": 0.000646360477635901, "cpu_time": 0.00030219932835820885, "warm_time": 0.002984348997415509, "page_faults": 0.004694835680751174}, "gate": {"cpu_pressure": 0.5344448857817297, "held_up": 0.19274300390320473, "io_pressure": 0.0067527104365505235, "memory_pressure": 4.406815599409927e-06, "others": 0.6806081869922243, "run_delay": 0.19274300390320473, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 13.0, "steady": 1.0, "first_step": 0.0003497950019664131, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "fp32", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,4,0,1,'ok','','{"started_at": "2026-11-23T10:03:25.687000+00:00", "finished_at": "2026-11-23T10:03:31.209000+00:00", "block": 69, "metrics": {"step_time": 0.0004861430579035516, "throughput": 2057.0076724172723, "p50": 0.0004861430579035516, "p90": 0.0006483374926956722, "cpu_time": 0.00031535230434782616, "import_time": 0.19865448299970012, "prepare_time": 0.00026447700656717643, "warm_time": 0.00652422099665273, "page_faults": 0.0013149243918474688, "peak_memory": 67108864.0, "accuracy": 0.0, "agreement": 0.0, "fidelity": 0.0017363281461004565}, "gate": {"cpu_pressure": 0.6640279351479897, "held_up": 0.18261537263270014, "io_pressure": 0.016435933736667744, "memory_pressure": 0.0001625959065435125, "others": 0.6802481804369725, "run_delay": 0.18261537263270014, "steal": 0.0, "turns": 7.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 7.0, "steady": 1.0, "first_step": 0.0003064600023208186}, "proof": [{"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": false, "found": "1.74e-03", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,4,1,1,'ok','','{"started_at": "2026-11-23T10:03:25.687000+00:00", "finished_at": "2026-11-23T10:03:31.209000+00:00", "block": 67, "metrics": {"step_time": 0.0005540993283355066, "throughput": 1804.7305760213824, "p50": 0.0005409545223871524, "p90": 0.0007141481194716405, "cpu_time": 0.00030267158955223875, "warm_time": 0.002504669006157201, "page_faults": 0.003912363067292645}, "gate": {"cpu_pressure": 0.5344448857817297, "held_up": 0.19274300390320473, "io_pressure": 0.0067527104365505235, "memory_pressure": 4.406815599409927e-06, "others": 0.6806081869922243, "run_delay": 0.19274300390320473, "steal": 0.0, "turns": 6.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 10.0, "steady": 1.0, "first_step": 0.00032814299629535526, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": true, "found": "bf16", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,5,0,1,'ok','','{"started_at": "2026-11-23T10:03:31.222000+00:00", "finished_at": "2026-11-23T10:03:36.027000+00:00", "block": 66, "metrics": {"step_time": 0.00038093495453667305, "throughput": 2625.1200843889187, "p50": 0.0003804099999825033, "p90": 0.00039997086368561156, "cpu_time": 0.0003778985757575757, "import_time": 0.10323057400091784, "prepare_time": 0.00020928400044795126, "warm_time": 0.0031344439994427375, "page_faults": 0.0015873015873015873, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.054936170151543985, "held_up": 0.005308805267202372, "io_pressure": 0.0014558611723711954, "memory_pressure": 0.0, "others": 0.48386131509210056, "run_delay": 0.005308805267202372, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 13.0, "steady": 1.0, "first_step": 0.0003922379983123392}, "proof": [{"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "fp32"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,5,1,1,'ok','','{"started_at": "2026-11-23T10:03:31.222000+00:00", "finished_at": "2026-11-23T10:03:36.027000+00:00", "block": 56, "metrics": {"step_time": 0.00037322654459005984, "throughput": 2679.337829784771, "p50": 0.00037286439276483307, "p90": 0.0003854968393040638, "cpu_time": 0.0003726097767857145, "warm_time": 0.003167934002703987, "page_faults": 0.0045662100456621}, "gate": {"cpu_pressure": 0.0889569928675714, "held_up": 0.0032025344598756696, "io_pressure": 0.002271031248576673, "memory_pressure": 0.0, "others": 0.48813568063248514, "run_delay": 0.0032025344598756696, "steal": 0.0, "turns": 10.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 7.0, "steady": 1.0, "first_step": 0.00035860799835063517, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "fp32"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,6,0,1,'ok','','{"started_at": "2026-11-23T10:03:31.222000+00:00", "finished_at": "2026-11-23T10:03:36.027000+00:00", "block": 66, "metrics": {"step_time": 0.0003570446212754839, "throughput": 2800.770381101562, "p50": 0.0003570446212754839, "p90": 0.00036918663637620875, "cpu_time": 0.0003436902424242432, "import_time": 0.21003663499868708, "prepare_time": 0.00022421599715016782, "warm_time": 0.0024666719982633367, "page_faults": 0.0010787486515641855, "peak_memory": 67108864.0, "accuracy": 1.0, "agreement": 1.0, "fidelity": 0.0}, "gate": {"cpu_pressure": 0.054936170151543985, "held_up": 0.005308805267202372, "io_pressure": 0.0014558611723711954, "memory_pressure": 0.0, "others": 0.48386131509210056, "run_delay": 0.005308805267202372, "steal": 0.0, "turns": 9.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 5.0, "steady": 1.0, "first_step": 0.0003122280031675473}, "proof": [{"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "bf16"}], "accuracy": [{"name": "fidelity", "ok": true, "found": "0.00e+00", "expected": "at most 1e-12"}], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
INSERT INTO "launch" VALUES(2,6,1,1,'ok','','{"started_at": "2026-11-23T10:03:31.222000+00:00", "finished_at": "2026-11-23T10:03:36.027000+00:00", "block": 56, "metrics": {"step_time": 0.00035084599994661403, "throughput": 2850.253387959856, "p50": 0.00034642221427410344, "p90": 0.00037143171435413284, "cpu_time": 0.0003508743928571422, "warm_time": 0.003239041005144827, "page_faults": 0.005136986301369863}, "gate": {"cpu_pressure": 0.0889569928675714, "held_up": 0.0032025344598756696, "io_pressure": 0.002271031248576673, "memory_pressure": 0.0, "others": 0.48813568063248514, "run_delay": 0.0032025344598756696, "steal": 0.0, "turns": 10.0, "turns_dropped": 0.0, "arms": 3.0, "turn_warm": 0.0, "steady": 1.0, "first_step": 0.0003566750019672327, "forked": 1.0}, "proof": [{"name": "start", "ok": true, "found": "fork", "expected": "fork"}, {"name": "dtype", "ok": false, "found": "a dtype nobody asked for", "expected": "bf16"}], "accuracy": [], "contended": "", "notes": [], "fingerprint": null, "against": null}','');
CREATE TABLE lock (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_lock PRIMARY KEY (id), 
	CONSTRAINT uq_lock_uid UNIQUE (uid)
);
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

;
INSERT INTO "measurement" VALUES(1,1,2,0.000540368028502069,0.000540368028502069,6.33991186661472284902e-06,5.34028116635454309577e-04,5.46707940368683755275e-04,'ok','');
INSERT INTO "measurement" VALUES(1,2,2,3.64825095594418385459e-04,3.64825095594418385459e-04,7.12268034854689939885e-07,3.64112827559563722625e-04,3.65537363629273102504e-04,'ok','');
INSERT INTO "measurement" VALUES(2,1,2,1.85084538622544869214e+03,1.85084538622544869214e+03,2.17151941056314399256e+01,1.82913019211981713856e+03,1872.56058033108,'ok','');
INSERT INTO "measurement" VALUES(2,2,2,2.7410499545667289566e+03,2.7410499545667289566e+03,5.35150209827747858071e+00,2.73569845246845125079e+03,2.7464014566650062079e+03,'ok','');
INSERT INTO "measurement" VALUES(3,1,2,5.2863016182201855251e-04,5.2863016182201855251e-04,1.80777785466652027648e-05,5.10552383275353349745e-04,5.46707940368683755275e-04,'ok','');
INSERT INTO "measurement" VALUES(3,2,2,0.000364070518010492,0.000364070518010492,1.46684561878109584812e-06,3.62603672391710910808e-04,3.65537363629273102504e-04,'ok','');
INSERT INTO "measurement" VALUES(4,1,2,6.73915966388503591237e-04,6.73915966388503591237e-04,2.99495335747818319099e-05,6.43966432813721759327e-04,7.03865499963285423147e-04,'ok','');
INSERT INTO "measurement" VALUES(4,2,2,3.79960247903442824117e-04,3.79960247903442824117e-04,2.88278236571608e-06,3.77077465537726771224e-04,3.82843030269158931221e-04,'ok','');
INSERT INTO "measurement" VALUES(5,1,2,3.09377514427860772147e-04,3.09377514427860772147e-04,8.35618905472662555286e-07,3.08541895522388082487e-04,3.10213133333333407597e-04,'ok','');
INSERT INTO "measurement" VALUES(5,2,2,3.64499070271681710649e-04,3.64499070271681710649e-04,9.39535788923060799851e-07,3.63559534482758676954e-04,3.65438606060604798553e-04,'ok','');
INSERT INTO "measurement" VALUES(6,1,1,2.12984197998594027012e-01,2.12984197998594027012e-01,NULL,2.12984197998594027012e-01,2.12984197998594027012e-01,'ok','');
INSERT INTO "measurement" VALUES(6,2,1,1.04355802999634761363e-01,1.04355802999634761363e-01,NULL,1.04355802999634761363e-01,1.04355802999634761363e-01,'ok','');
INSERT INTO "measurement" VALUES(7,1,1,2.47801996010821312665e-04,2.47801996010821312665e-04,NULL,2.47801996010821312665e-04,2.47801996010821312665e-04,'ok','');
INSERT INTO "measurement" VALUES(7,2,1,2.15284002479165792465e-04,2.15284002479165792465e-04,NULL,2.15284002479165792465e-04,2.15284002479165792465e-04,'ok','');
INSERT INTO "measurement" VALUES(8,1,2,2.68667249838472343981e-03,2.68667249838472343981e-03,1.71887502801837399601e-04,2.51478499558288604021e-03,2.85856000118656083941e-03,'ok','');
INSERT INTO "measurement" VALUES(8,2,2,3.0808734991296660155e-03,3.0808734991296660155e-03,4.2774499888764694333e-05,3.03809899924090132117e-03,3.12364799901843070983e-03,'ok','');
INSERT INTO "measurement" VALUES(9,1,2,3.96669955122253177492e-03,3.96669955122253177492e-03,2.10968933766635721033e-03,1.85701021355617456459e-03,6.07638888888888898526e-03,'ok','');
INSERT INTO "measurement" VALUES(9,2,2,2.47094165470041534499e-03,2.47094165470041534499e-03,1.39219300313622967694e-03,1.0787486515641854512e-03,3.8631346578366448051e-03,'ok','');
INSERT INTO "measurement" VALUES(10,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'ok','');
INSERT INTO "measurement" VALUES(10,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'ok','');
INSERT INTO "measurement" VALUES(11,1,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(11,2,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(12,1,1,0.0,0.0,NULL,0.0,0.0,'ok','');
INSERT INTO "measurement" VALUES(12,2,1,0.0,0.0,NULL,0.0,0.0,'ok','');
INSERT INTO "measurement" VALUES(13,1,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(13,2,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(15,1,2,5.85699406315030087627e-04,5.85699406315030087627e-04,5.60534145657059557944e-05,5.29645991749324186043e-04,6.41752820880736097632e-04,'ok','');
INSERT INTO "measurement" VALUES(15,2,2,3.54556568280473254767e-04,3.54556568280473254767e-04,1.52183712956705625377e-05,3.39338196984802665124e-04,3.69774939576143790199e-04,'ok','');
INSERT INTO "measurement" VALUES(16,1,2,1.72314294992201257625e+03,1.72314294992201257625e+03,1.64910609583237715018e+02,1.55823234033877497492e+03,1.88805355950525040496e+03,'ok','');
INSERT INTO "measurement" VALUES(16,2,2,2.82563012773558057226e+03,2.82563012773558057226e+03,1.2128244764061628302e+02,2.70434768009496428933e+03,2.94691257537619685537e+03,'ok','');
INSERT INTO "measurement" VALUES(17,1,2,5.85523368825496522485e-04,5.85523368825496522485e-04,5.62294520552395209363e-05,5.29293916770257055759e-04,6.41752820880736097632e-04,'ok','');
INSERT INTO "measurement" VALUES(17,2,2,3.53991667416057756261e-04,3.53991667416057756261e-04,1.46534704312551182416e-05,3.39338196984802665124e-04,3.68645137847312901607e-04,'ok','');
INSERT INTO "measurement" VALUES(18,1,2,7.28451165197830101567e-04,7.28451165197830101567e-04,1.00556814202408962427e-06,0.000727445597055806,7.29456733339854191192e-04,'ok','');
INSERT INTO "measurement" VALUES(18,2,2,3.66135509673581676596e-04,3.66135509673581676596e-04,2.13705248195997189394e-05,3.44764984853981957656e-04,3.87506034493181395535e-04,'ok','');
INSERT INTO "measurement" VALUES(19,1,2,3.19049758395522340716e-04,3.19049758395522340716e-04,2.1648833955224789597e-06,3.16884874999999888861e-04,3.2121464179104484678e-04,'ok','');
INSERT INTO "measurement" VALUES(19,2,2,3.53968163531870089362e-04,3.53968163531870089362e-04,1.50297847439911783692e-05,3.38938378787878938098e-04,3.68997948275861294836e-04,'ok','');
INSERT INTO "measurement" VALUES(20,1,1,1.5790261400252347812e-01,1.5790261400252347812e-01,NULL,1.5790261400252347812e-01,1.5790261400252347812e-01,'ok','');
INSERT INTO "measurement" VALUES(20,2,1,1.9230440100363921374e-01,1.9230440100363921374e-01,NULL,1.9230440100363921374e-01,1.9230440100363921374e-01,'ok','');
INSERT INTO "measurement" VALUES(21,1,1,2.2251400514505803585e-04,2.2251400514505803585e-04,NULL,2.2251400514505803585e-04,2.2251400514505803585e-04,'ok','');
INSERT INTO "measurement" VALUES(21,2,1,1.9931899441871792078e-04,1.9931899441871792078e-04,NULL,1.9931899441871792078e-04,1.9931899441871792078e-04,'ok','');
INSERT INTO "measurement" VALUES(22,1,2,2.76776350074214860796e-03,2.76776350074214860796e-03,1.23014498967677354812e-04,2.64474900177447125315e-03,2.89077799970982596278e-03,'ok','');
INSERT INTO "measurement" VALUES(22,2,2,2.6784994988702237606e-03,2.6784994988702237606e-03,1.54852503328584134578e-04,2.52364699554163962602e-03,2.83335200219880789518e-03,'ok','');
INSERT INTO "measurement" VALUES(23,1,2,4.83475510677808771597e-03,4.83475510677808771597e-03,2.9777448932219127177e-03,1.85701021355617456459e-03,0.0078125,'ok','');
INSERT INTO "measurement" VALUES(23,2,2,2.47094165470041534499e-03,2.47094165470041534499e-03,1.39219300313622967694e-03,1.0787486515641854512e-03,3.8631346578366448051e-03,'ok','');
INSERT INTO "measurement" VALUES(24,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'ok','');
INSERT INTO "measurement" VALUES(24,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'ok','');
INSERT INTO "measurement" VALUES(25,1,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(25,2,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(26,1,1,0.0,0.0,NULL,0.0,0.0,'ok','');
INSERT INTO "measurement" VALUES(26,2,1,0.0,0.0,NULL,0.0,0.0,'ok','');
INSERT INTO "measurement" VALUES(27,1,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(27,2,1,1.0,1.0,NULL,1.0,1.0,'ok','');
INSERT INTO "measurement" VALUES(29,1,2,4.98936602444236595305e-04,4.98936602444236595305e-04,3.05365717630357957727e-05,4.68400030681200745322e-04,5.29473174207272336867e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(29,2,2,5.21814237728627475405e-04,5.21814237728627475405e-04,1.94341652562062114015e-05,5.02380072472421264004e-04,5.41248402984833686807e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(30,1,2,2.01179854194540575916e+03,2.01179854194540575916e+03,1.23128730680272724384e+02,1.88866981126513314845e+03,2.13492727262567859726e+03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(30,2,2,1.91905266129488472869e+03,1.91905266129488472869e+03,7.14721520771586256177e+01,1.84758050921772610302e+03,1.99052481337204335426e+03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(31,1,2,4.82946647030616416258e-04,4.82946647030616416258e-04,2.08972317224223374989e-05,4.62049415308194105864e-04,5.03843878753038780862e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(31,2,2,4.76188578532432303051e-04,4.76188578532432303051e-04,6.42538393697863e-05,0.000411934739162646,5.40442417902218608452e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(32,1,2,6.53286955817569941346e-04,6.53286955817569941346e-04,7.57677865746248456989e-05,5.77519169242945149857e-04,7.29054742392194841255e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(32,2,2,6.50957666380506841212e-04,6.50957666380506841212e-04,4.5971887446058382412e-06,0.000646360477635901,6.55554855125112679453e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(33,1,2,3.50621981118880816311e-04,3.50621981118880816311e-04,1.28599734265732817094e-05,3.37762007692307534602e-04,3.63481954545454098021e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(33,2,2,3.13420138816785450071e-04,3.13420138816785450071e-04,1.12208104585765971669e-05,3.02199328358208852904e-04,3.24640949275362047238e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(34,1,1,1.93815450998954474925e-01,1.93815450998954474925e-01,NULL,1.93815450998954474925e-01,1.93815450998954474925e-01,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(34,2,1,9.18669499951647594571e-02,9.18669499951647594571e-02,NULL,9.18669499951647594571e-02,9.18669499951647594571e-02,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(35,1,1,2.30375997489318251609e-04,2.30375997489318251609e-04,NULL,2.30375997489318251609e-04,2.30375997489318251609e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(35,2,1,2.15263004065491259098e-04,2.15263004065491259098e-04,NULL,2.15263004065491259098e-04,2.15263004065491259098e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(36,1,2,2.90706800296902656555e-03,2.90706800296902656555e-03,2.05153002752922475337e-04,2.70191500021610409021e-03,3.11222100572194904088e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(36,2,2,2.99406849808292463421e-03,2.99406849808292463421e-03,9.71950066741556e-06,2.98434899741550907492e-03,0.00300378799875034,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(37,1,2,3.20910973084886138456e-03,3.20910973084886138456e-03,1.62180814354727386751e-03,1.58730158730158730021e-03,4.83091787439613503524e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(37,2,2,3.31080897717712843014e-03,3.31080897717712843014e-03,1.38402670357404538464e-03,1.92678227360308282865e-03,4.69483568075117381479e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(38,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(38,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(39,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(39,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(40,1,1,1.73632814610045647582e-03,1.73632814610045647582e-03,NULL,1.73632814610045647582e-03,1.73632814610045647582e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(40,2,1,1.73632814610045647582e-03,1.73632814610045647582e-03,NULL,1.73632814610045647582e-03,1.73632814610045647582e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(41,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(41,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(43,1,2,4.72611896393594502555e-04,4.72611896393594502555e-04,1.84745733230978856787e-05,4.54137323070496589771e-04,4.91086469716692361128e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(43,2,2,5.20121193119529173776e-04,5.20121193119529173776e-04,3.39781352159775128056e-05,4.8614305790355160676e-04,5.54099328335506632371e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(44,1,2,2.11913919879242712345e+03,2.11913919879242712345e+03,8.28379327915544081371e+01,2.03630126600087282893e+03,2.20197713158398164523e+03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(44,2,2,1.9308691242193272047e+03,1.9308691242193272047e+03,1.26138548197944942328e+02,1.80473057602138237595e+03,2.0570076724172722607e+03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(45,1,2,4.69807194766212960282e-04,4.69807194766212960282e-04,1.71074870795267879302e-05,4.52699707686686145247e-04,4.86914681845739721107e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(45,2,2,0.000513548790145352,0.000513548790145352,2.74057322418003830241e-05,4.8614305790355160676e-04,5.40954522387152372808e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(46,1,2,6.25793916026369371509e-04,6.25793916026369371509e-04,6.474499297502646529e-05,5.61048923051342906219e-04,6.90538909001395836799e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(46,2,2,6.81242806083656293053e-04,6.81242806083656293053e-04,3.2905313387984194088e-05,6.48337492695672153175e-04,7.14148119471640541351e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(47,1,2,3.18886869230769281167e-04,3.18886869230769281167e-04,6.88836923076939174927e-06,3.11998499999999916523e-04,3.25775238461538700022e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(47,2,2,3.09011946950032479787e-04,3.09011946950032479787e-04,6.34035739779370273276e-06,3.02671589552238749949e-04,3.15352304347826155415e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(48,1,1,1.99808363999181892722e-01,1.99808363999181892722e-01,NULL,1.99808363999181892722e-01,1.99808363999181892722e-01,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(48,2,1,1.98654482999700121581e-01,1.98654482999700121581e-01,NULL,1.98654482999700121581e-01,1.98654482999700121581e-01,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(49,1,1,2.49534998147282749414e-04,2.49534998147282749414e-04,NULL,2.49534998147282749414e-04,2.49534998147282749414e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(49,2,1,2.64477006567176431417e-04,2.64477006567176431417e-04,NULL,2.64477006567176431417e-04,2.64477006567176431417e-04,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(50,1,2,3.5403885012783575803e-03,3.5403885012783575803e-03,1.04411250140401534736e-03,2.49627599987434223294e-03,4.58450100268237292766e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(50,2,2,4.51444500140496529638e-03,4.51444500140496529638e-03,2.00977599524776451289e-03,2.50466900615720078349e-03,0.00652422099665273,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(51,1,2,3.20910973084886138456e-03,3.20910973084886138456e-03,1.62180814354727386751e-03,1.58730158730158730021e-03,4.83091787439613503524e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(51,2,2,2.61364372957005684089e-03,2.61364372957005684089e-03,1.29871933772258800476e-03,1.31492439184746883612e-03,3.91236306729264484566e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(52,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(52,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(53,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(53,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(54,1,1,1.73632814610045647582e-03,1.73632814610045647582e-03,NULL,1.73632814610045647582e-03,1.73632814610045647582e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(54,2,1,1.73632814610045647582e-03,1.73632814610045647582e-03,NULL,1.73632814610045647582e-03,1.73632814610045647582e-03,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(55,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(55,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12');
INSERT INTO "measurement" VALUES(57,1,2,4.13726305283736281361e-04,4.13726305283736281361e-04,5.58154408497365107748e-05,3.57910864433999770586e-04,4.69541746133472792136e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(57,2,2,3.77080749563366468719e-04,3.77080749563366468719e-04,3.85420497330660519717e-06,3.73226544590059836417e-04,3.80934954536673046811e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(58,1,2,2.46186391389347318178e+03,2.46186391389347318178e+03,3.32127829222232321629e+02,2.1297360846712408602e+03,2.79399174311570550337e+03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(58,2,2,2.65222895708684518471e+03,2.65222895708684518471e+03,2.71088726979262446543e+01,2.62512008438891871267e+03,2.67933782978477120204e+03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(59,1,2,4.06744516818681553938e-04,4.06744516818681553938e-04,4.88336523846817833517e-05,3.57910864433999770586e-04,4.5557816920336333729e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(59,2,2,3.76637196373668173277e-04,3.76637196373668173277e-04,3.77280360883510594918e-06,3.72864392764833067327e-04,3.80409999982503279226e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(60,1,2,6.21568673022268635211e-04,6.21568673022268635211e-04,5.72967577513612e-05,5.64271915270907436883e-04,6.78865430773629833539e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(60,2,2,3.92733851494837674436e-04,3.92733851494837674436e-04,7.23701219077388813866e-06,3.85496839304063786298e-04,3.99970863685611562575e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(61,1,2,3.37224181095175756621e-04,3.37224181095175756621e-04,4.17924263363710145162e-06,3.33044938461538682274e-04,3.41403423728812885178e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(61,2,2,3.75254176271645116611e-04,3.75254176271645116611e-04,2.64439948593060648526e-06,3.72609776785714510126e-04,3.77898575757575723096e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(62,1,1,2.13670949000515975058e-01,2.13670949000515975058e-01,NULL,2.13670949000515975058e-01,2.13670949000515975058e-01,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(62,2,1,1.03230574000917840749e-01,1.03230574000917840749e-01,NULL,1.03230574000917840749e-01,1.03230574000917840749e-01,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(63,1,1,2.19839996134396642446e-04,2.19839996134396642446e-04,NULL,2.19839996134396642446e-04,2.19839996134396642446e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(63,2,1,2.09284000447951257228e-04,2.09284000447951257228e-04,NULL,2.09284000447951257228e-04,2.09284000447951257228e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(64,1,2,2.89742400491377338767e-03,2.89742400491377338767e-03,2.06525000976398587226e-04,2.69089900393737480044e-03,3.10394900589017197489e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(64,2,2,3.15118900107336230576e-03,3.15118900107336230576e-03,1.6745001630624756217e-05,3.13444399944273754954e-03,3.16793400270398706197e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(65,1,2,2.60695478086782426313e-03,2.60695478086782426313e-03,9.96648822735779395948e-04,1.61030595813204508402e-03,3.60360360360360365908e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(65,2,2,3.07675581648184353483e-03,3.07675581648184353483e-03,1.48945422918025645146e-03,1.58730158730158730021e-03,0.0045662100456621,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(66,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(66,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(67,1,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(67,2,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(68,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(68,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(69,1,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(69,2,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected fp32');
INSERT INTO "measurement" VALUES(71,1,2,3.76634468519368090233e-04,3.76634468519368090233e-04,2.91764006720469796021e-05,3.47458067847321110631e-04,4.05810869191415069835e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(71,2,2,3.53945310611048966596e-04,3.53945310611048966596e-04,3.09931066443493771073e-06,3.50845999946614028885e-04,3.57044621275483904307e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(72,1,2,2.67112361978125682077e+03,2.67112361978125682077e+03,2.06921510082922168296e+02,2.46420210969833487985e+03,2.87804512986417921644e+03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(72,2,2,2.82551188453070881226e+03,2.82551188453070881226e+03,2.47415034291468600709e+01,2.80077038110156217951e+03,2.85025338795985589968e+03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(73,1,2,3.68312210849904573053e-04,3.68312210849904573053e-04,2.08541430025834895276e-05,3.47458067847321110631e-04,3.89166353852488089686e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(73,2,2,3.51733417774793670224e-04,3.51733417774793670224e-04,5.31120350069023408265e-06,3.46422214274103436142e-04,3.57044621275483904307e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(74,1,2,6.05131643426046346954e-04,6.05131643426046346954e-04,8.04622027339766364428e-05,5.24669440692069710512e-04,0.000685593846160023,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(74,2,2,3.70309175365170824972e-04,3.70309175365170824972e-04,1.12253898896204416628e-06,3.69186636376208753701e-04,3.71431714354132842034e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(75,1,2,3.36331462190351680903e-04,3.36331462190351680903e-04,1.64138526727539168538e-06,3.34690076923076316323e-04,3.37972847457627099693e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(75,2,2,3.47282317640692692571e-04,3.47282317640692692571e-04,3.59207521644951252234e-06,3.43690242424243180049e-04,3.50874392857142205093e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(76,1,1,2.07256232002691831439e-01,2.07256232002691831439e-01,NULL,2.07256232002691831439e-01,2.07256232002691831439e-01,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(76,2,1,2.10036634998687077313e-01,2.10036634998687077313e-01,NULL,2.10036634998687077313e-01,2.10036634998687077313e-01,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(77,1,1,2.1227899560471996665e-04,2.1227899560471996665e-04,NULL,2.1227899560471996665e-04,2.1227899560471996665e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(77,2,1,2.24215997150167822837e-04,2.24215997150167822837e-04,NULL,2.24215997150167822837e-04,2.24215997150167822837e-04,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(78,1,2,2.74531549803214147686e-03,2.74531549803214147686e-03,1.55408495629671961069e-04,2.5899070024024695158e-03,2.90072399366181343793e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(78,2,2,2.85285650170408189296e-03,2.85285650170408189296e-03,3.86184503440745174884e-04,2.46667199826333671808e-03,3.23904100514482706785e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(79,1,2,2.30665448056752413891e-03,2.30665448056752413891e-03,0.000696348522435479,1.61030595813204508402e-03,3.00300300300300297695e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(79,2,2,3.10786747646702408987e-03,3.10786747646702408987e-03,2.02911882490283863866e-03,1.0787486515641854512e-03,5.13698630136986272853e-03,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(80,1,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(80,2,1,67108864.0,67108864.0,NULL,67108864.0,67108864.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(81,1,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(81,2,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(82,1,1,0.0,0.0,NULL,0.0,0.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(82,2,1,0.0,0.0,NULL,0.0,0.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(83,1,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
INSERT INTO "measurement" VALUES(83,2,1,1.0,1.0,NULL,1.0,1.0,'invalid','proof failed: dtype: found a dtype nobody asked for, expected bf16');
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

;
INSERT INTO "paired" VALUES(1,0,1,1,1,'case','twin',1.34945799568125579526e-01,5);
INSERT INTO "paired" VALUES(1,0,2,1,2,'case','case',2.45967147973067845612e-01,5);
INSERT INTO "paired" VALUES(1,1,2,1,2,'twin','case',6.99059671829793671804e-02,5);
INSERT INTO "paired" VALUES(2,0,1,1,1,'case','twin',2.06784332759815114854e-02,6);
INSERT INTO "paired" VALUES(2,0,2,1,2,'case','case',2.51529161024035552429e-02,6);
INSERT INTO "paired" VALUES(2,1,2,1,2,'twin','case',1.14929621760007094621e-02,6);
INSERT INTO "paired" VALUES(3,0,1,3,3,'case','twin',1.36963434504147496539e-01,6);
INSERT INTO "paired" VALUES(3,0,2,3,4,'case','case',-8.96801860515257232009e-02,6);
INSERT INTO "paired" VALUES(3,1,2,3,4,'twin','case',-2.72829551220144406187e-01,6);
INSERT INTO "paired" VALUES(4,0,1,3,3,'case','twin',-6.98786776766913142466e-02,6);
INSERT INTO "paired" VALUES(4,0,2,3,4,'case','case',-2.28306733592482657968e-02,6);
INSERT INTO "paired" VALUES(4,1,2,3,4,'twin','case',0.0741296633634736,6);
INSERT INTO "paired" VALUES(5,0,1,5,5,'case','twin',-1.18359711562864067246e-01,6);
INSERT INTO "paired" VALUES(5,0,2,5,6,'case','case',-7.22413373256949320477e-02,6);
INSERT INTO "paired" VALUES(5,1,2,5,6,'twin','case',-2.35943401535965158188e-02,6);
INSERT INTO "paired" VALUES(6,0,1,5,5,'case','twin',1.21128137866932661381e-03,9);
INSERT INTO "paired" VALUES(6,0,2,5,6,'case','case',-3.1392042575324907716e-02,9);
INSERT INTO "paired" VALUES(6,1,2,5,6,'twin','case',-3.26033239539942343299e-02,9);
INSERT INTO "paired" VALUES(7,0,1,1,1,'case','twin',-1.24809738387220647837e-01,9);
INSERT INTO "paired" VALUES(7,0,2,1,2,'case','case',-0.0741486686350683,9);
INSERT INTO "paired" VALUES(7,1,2,1,2,'twin','case',4.28173386497476826662e-02,9);
INSERT INTO "paired" VALUES(8,0,1,1,1,'case','twin',-1.59250401925481455123e-03,10);
INSERT INTO "paired" VALUES(8,0,2,1,2,'case','case',2.86632083367646117721e-02,10);
INSERT INTO "paired" VALUES(8,1,2,1,2,'twin','case',3.77759030221636038504e-03,10);
INSERT INTO "paired" VALUES(9,0,1,3,3,'case','twin',2.57964513503719850007e-01,7);
INSERT INTO "paired" VALUES(9,0,2,3,4,'case','case',1.61579803798250765112e-03,7);
INSERT INTO "paired" VALUES(9,1,2,3,4,'twin','case',-1.39130608886893547548e-01,7);
INSERT INTO "paired" VALUES(10,0,1,3,3,'case','twin',-3.72201227949919832838e-02,6);
INSERT INTO "paired" VALUES(10,0,2,3,4,'case','case',-7.40881071960477477489e-02,6);
INSERT INTO "paired" VALUES(10,1,2,3,4,'twin','case',1.25982712782717332089e-01,6);
INSERT INTO "paired" VALUES(11,0,1,5,5,'case','twin',-1.31953876388823942988e-02,9);
INSERT INTO "paired" VALUES(11,0,2,5,6,'case','case',-7.36856598826651776334e-02,9);
INSERT INTO "paired" VALUES(11,1,2,5,6,'twin','case',-5.52045340726037281342e-02,9);
INSERT INTO "paired" VALUES(12,0,1,5,5,'case','twin',-1.03042288694377148772e-02,10);
INSERT INTO "paired" VALUES(12,0,2,5,6,'case','case',-3.44014698305770139086e-02,10);
INSERT INTO "paired" VALUES(12,1,2,5,6,'twin','case',-1.29636354131714703896e-02,10);
CREATE TABLE policy (
	id INTEGER NOT NULL, 
	uid VARCHAR(64) NOT NULL, 
	doc JSON NOT NULL, 
	CONSTRAINT pk_policy PRIMARY KEY (id), 
	CONSTRAINT uq_policy_uid UNIQUE (uid)
);
INSERT INTO "policy" VALUES(1,'6614566768981ef52fa4410a0bb4f21b8afd394542121d99c2dc6d1c7c31a78e','{"name": "screen-1", "tolerance": 0.05, "hard_limit": 0.3, "alpha": 0.005, "ok_alpha": 0.05, "mde_power": 0.8, "minimum_launches": 2, "known_sessions": 3, "kept_sessions": 12, "tau_prior": 0.19, "tau_prior_spread": 0.8, "tau_pool": null, "pool_series": 5, "tau_floor": 0.002, "accuracy_bound": 0.02, "loss_bound": 0.05, "fidelity_factor": 2.0, "fidelity_floor": 1e-05, "false_discovery_rate": 0.05, "shift_cases": 5}');
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
);
INSERT INTO "round" VALUES(1,'d5d99884a36c4913b5b6389fe5848dcb',1,1,'tiny fake infer 1x1 none',1,'together','2026-11-23T10:03:01.998000+00:00',2.72476686799927847459e+00,5,0);
INSERT INTO "round" VALUES(2,'2318f9df9e12462992df1f6842d95c05',1,1,'tiny fake infer 1x1 none',2,'together','2026-11-23T10:03:05.069000+00:00',2.0979139330011093989e+00,6,0);
INSERT INTO "round" VALUES(3,'35406d8ff904411caa3a1a202410e3ae',1,1,'wrong fake infer 1x1 none',1,'together','2026-11-23T10:03:07.195000+00:00',2.90138427800411591306e+00,6,0);
INSERT INTO "round" VALUES(4,'adc37eb932b440e58ba472b4c2fdbb35',1,1,'wrong fake infer 1x1 none',2,'together','2026-11-23T10:03:10.463000+00:00',2.17005676199914887547e+00,6,0);
INSERT INTO "round" VALUES(5,'7aba9be4d04241f9a412cdb9ed7ba393',1,1,'unproven fake infer 1x1 none',1,'together','2026-11-23T10:03:12.707000+00:00',2.66392619600083,6,0);
INSERT INTO "round" VALUES(6,'b9aefc7c5cd74438b76165a906bdc750',1,1,'unproven fake infer 1x1 none',2,'together','2026-11-23T10:03:15.691000+00:00',2.48333871299837483093e+00,9,0);
INSERT INTO "round" VALUES(7,'40bb64f0260a4fe7a33a6c2eaa02eabb',2,1,'tiny fake infer 1x1 none',1,'together','2026-11-23T10:03:20.729000+00:00',2.52341652999894,9,0);
INSERT INTO "round" VALUES(8,'06d76cb759a44512ad6e7fd44320efe9',2,1,'tiny fake infer 1x1 none',2,'together','2026-11-23T10:03:23.524000+00:00',2.14326064699707785621e+00,10,0);
INSERT INTO "round" VALUES(9,'abc2925ea4e64015bd5018d04b3a782b',2,1,'wrong fake infer 1x1 none',1,'together','2026-11-23T10:03:25.687000+00:00',2.78086214799986919388e+00,7,0);
INSERT INTO "round" VALUES(10,'0fe7c7b3d3ed4b92a63210cd3302de28',2,1,'wrong fake infer 1x1 none',2,'together','2026-11-23T10:03:28.857000+00:00',2.3416976090011303313e+00,6,0);
INSERT INTO "round" VALUES(11,'97c77ef795614df6b805a06c9010b695',2,1,'unproven fake infer 1x1 none',1,'together','2026-11-23T10:03:31.222000+00:00',2.57691378200252074748e+00,9,0);
INSERT INTO "round" VALUES(12,'4ece1e1eb1464c85a33bbf3143b90e33',2,1,'unproven fake infer 1x1 none',2,'together','2026-11-23T10:03:33.985000+00:00',2.03257768900221,10,0);
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
);
INSERT INTO "run" VALUES(1,'01a207db-f2c9-7e5d-9272-9bafc2b14360',1,'2026-11-23T10:03:04.780073+00:00','2026-11-23T10:03:18.289580+00:00',NULL,NULL,NULL,NULL,'finished','{"suite": "gold", "command": ["-p", "no:hypothesispytest", "-p", "ipexperf.short_options", "--perf-load=/somewhere", "--device", "fake", "--dtype", "fp32,bf16", "--mode", "spin", "--stack", "plain", "--model", "tiny,wrong,unproven", "--perf-launches", "2", "--perf-samples", "5", "--perf-seconds", "0.05", "--perf-db", "h.db", "-q"], "preset": "quick", "git": {"commit": null, "branch": null, "dirty": null}, "settled": {"line": "", "shift": null, "fails": true, "slower": []}}');
INSERT INTO "run" VALUES(2,'01a207dc-3b3b-7b6a-94b7-39b53daf0de8',1,'2026-11-23T10:03:23.325253+00:00','2026-11-23T10:03:36.045589+00:00',NULL,NULL,NULL,NULL,'finished','{"suite": "gold", "command": ["-p", "no:hypothesispytest", "-p", "ipexperf.short_options", "--perf-load=/somewhere", "--device", "fake", "--dtype", "fp32,bf16", "--mode", "spin", "--stack", "plain", "--model", "tiny,wrong,unproven", "--perf-launches", "2", "--perf-samples", "5", "--perf-seconds", "0.05", "--perf-db", "h.db", "-q"], "preset": "quick", "git": {"commit": null, "branch": null, "dirty": null}, "settled": {"line": "", "shift": null, "fails": true, "slower": []}}');
CREATE TABLE samples (
	series_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	launch INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	CONSTRAINT pk_samples PRIMARY KEY (series_id, run_id, launch), 
	CONSTRAINT fk_samples_series_id FOREIGN KEY(series_id) REFERENCES series (id), 
	CONSTRAINT fk_samples_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "samples" VALUES(1,1,0,X'C7447A60FC5C433FCE6EE1CB986A413FC3AFC630F52D423F1FA89C655D74413FE5EC161E7094343FDA2DFC3ACDDF333F0F54CE1E7411403F1B13E9A9EAE33C3F63223D7C3D57403F2A67B75C1EEA413FFC6A4C3CE2C4423F95B35BFC344D463FE1576362FB19453F0F54CE827CD0443FC7447A4048ED413F');
INSERT INTO "samples" VALUES(5,1,0,X'DEAA61733F1F343FBFAA88DCD623343F39BB48C555E2333F046DC8597938343F222599408D95343F1FE8DAF650E0333F67F761A16694343F5C546A24AE62343F39D79C75FCF5333F26B68093000F343F76FBF5657FED333F9D7DEB3D51FB343F2E5CA3D04980363F495FDA4273F6353F9DA588E77E91353F');
INSERT INTO "samples" VALUES(14,1,0,X'ED2211A8FA9B323F2E949BA6BB5F2D3FE5A6C4D9417B303F8206410161632D3F000000000000000000000000000000002E941991631F273F39DB1D4A2A05213FDEFA6C5FEE73293F6FE168ACC48D2F3FCE724501E19D313F8D1DA8E4CCA0373F6F05CA5829B5333F2A4F3C0ECBAC333F583B5EB704932C3F');
INSERT INTO "samples" VALUES(1,1,1,X'777777A9CF954D3FCDCCCCA67310473FCDCCCC66AE44423F666666685D14433F33333398D119433F222222B2CC57423F000000E5D2BA403F89888894F8FF3E3F222222918995423FDEDDDD51E4A93E3F111111372B8D403F898888FC8C78403F6666664F729A423F333333A737A8453FEFEEEE7CE055383F777777D573FC393FABAAAA74C68C393F777777877CDA393F');
INSERT INTO "samples" VALUES(5,1,1,X'494A1BFC73C6333FF7E90FF5C7E6333FD1BF5F7DD697333FE6EF3CB7E524343F2F490B3F0BD5333FF733CCB55497333F448A15B9938A343F6659123AD0CB333FCD8A9B0A9EAB333F00BE23CF2084343F80537E5845F3333FB3D47B21978F343F331C82A85640363FCD8E683D215A363F006B8F78E373353FBCC82A93C15E393FDE9D43B88C51393FDE208549F4DA393F');
INSERT INTO "samples" VALUES(14,1,1,X'221AC58051B3433F15F83331E13A3A3FE6CF1F7BFEF2303F91CE595F1A05323FF7DEC67D5D60323FE6914193E319313F33A702253CD8293FAB0B4CAA9B6B263FE66C46A67780313F661D8285784D243F226239675F502A3F00E6F6D097C5283F9A8F810D6AEB2D3F00F6697D97F7343FEF06ED25EA1D073F11D1AC9F8AD7E33E9A197073CCF0CD3E0000000000000000');
INSERT INTO "samples" VALUES(15,1,0,X'6B4CA46B0C71433FDA2DFC12071B443F911EA88CC4BD3C3F32911E502388423F95B35BB06907453FDA2DFC5EFE6A453F41E5ECD6BC82453F0BBF1A1BE322443F9DDDC2034531443F7AA0724238584F3F95B35B10C735463F63223DFC04E1453FB0C6448641D6473FE981CA39CFBF453F6FE157ABF0EE433F');
INSERT INTO "samples" VALUES(19,1,0,X'766511B665CA363F60F18967A21E353F395BF1A2D2FA343F8AD0D2320947353FA49BF0289DB4343F0058EEFB92F6343F046DA488B197343F5095D9586B8D343F8D0D121903D0343F58B7878F4D21353F6F4578DF1819353F00E4A9123833353FB7286308F85F353F6B7430D8C6C9343F8D41A961160D353F');
INSERT INTO "samples" VALUES(28,1,0,X'99E483D40E19303FA0A8A08F1919333F049D34A9F2111F3FF865B4F6B4932F3F0F18F881905B353F1796F2282BE0353F917E44621B6F363FF590CD6FB1B9333F6BBCC1066493333F2A75307A55C8443FC37F10541954373F2A7FBF2C3390363F916E2E4B054E3A3FF10B2E806FB7363F58E3E3002DD2323F');
INSERT INTO "samples" VALUES(15,1,1,X'EFEEEE14050A353F89888888DDA03C3F777777BF84C3423FDEDD5D94E8C5503F222222D96098423F2222226820E7473F55555527A8813D3F89888819935E413FEFEEEEB36EDC423F000000080A58413FDEDDDD77C7AD383F8988882EF25D413F22222202F729373FABAAAA46C102473FCDCCCCAC35B2463FABAAAA8E6BF13B3F9A9999EBD0D93A3F777777C932513A3F');
INSERT INTO "samples" VALUES(19,1,1,X'F5739D18E59E333FE2BADF631AD3333F62141CCA4AFA333F691182F3387C413F44100E85ADA3333F80FC855CB9B7333F4D94A8C132C2343F44C0DB290202353F913566329527343FC496CC97B1C6343F771CF470B9F0333F66940B2AB308343F7745E642C822373F110C84CB0882373F33E2D04CC86F373FCD7F2A45A6503A3F66C345682A5C3A3F11157B6E774A3A3F');
INSERT INTO "samples" VALUES(28,1,1,X'DEED0EE5DCCBF63E26E76758BD9E213F370CE6F8AF8F313FFEDB80A6D910403F2BBE3378A58E313F9E50F3BA29173C3F000B77D3D281213F00FD05FFBB782B3F1A4171A69992313F772F3D24F5CD2B3F7753A5F093F8123F113603748E682D3F44441EB96690A13EEFAC8167E884363FA2C08F9765F6353F77277D47311FFA3E33734DB437B4DF3E222296E0E91C9D3E');
INSERT INTO "samples" VALUES(29,1,0,X'6DB2C9A62EA9423FC2071FDC2E7B423F7CF0C149CF33423FC2071F38A931463F46175DFA1774483F5555556DB272473F000000705AD1373F4E36D9F463D4373F5D74D1DBE8D0453FE9A28B6E6E223C3F74D14527ACCE373F74D14523C1E3473F55555555AD90383FE1830FCED4B6383F74D145E7BE90383FB2C9268BFEA93D3FBAE8A27D8C82403F0000007A8930423F');
INSERT INTO "samples" VALUES(33,1,0,X'A3FACE635569353F1F22248B630E353F6509CA842F7E343F2741611DB67A383FB2EFF6CF566A383F462B2F44AD85383FC28B03223CBF373F3E3CB13444D5373FF01BBB54A1C0373FF810747FB707383F939D53022ACF373F27B1749AA937383F5D045734FC90383FD189FF5812B4383FE1AF2FC64991383F6D7AD90DDDB1353FF89473F68B64343F1FFCAEA24F79343F');
INSERT INTO "samples" VALUES(42,1,0,X'C22567C679D32F3FF08F8FFADDD12F3FE90CB96CB9D42F3F17E7526ED1E9333F6D41F7C9107F383F17A32391FF60363F5D74BD33F496B23E0000000000000000D1B38F3A0F60393F6583B01B016E103F000000000000000027098BECAD90373F0000000000000000934DA6D473408A3E0000000000000000B2F9A6A4ACE51F3FB215C33A2E44293F462FB43DF1D12F3F');
INSERT INTO "samples" VALUES(29,1,1,X'3BB113CB8526423FD9899DC4887D413F2337724B7C34393F187AA17FFE1C3F3F1CB991E3F03E3E3FD10BBD20E7473E3F043FF073A231473F821FF8290283423F8EDCC8E1DB37423F4BADD4CAD75D403FB9911B39BDEA373FBDD00B95D72C3C3FA1177A8991FC363FC54EECF894EC423FFCC00FA024CC403FECC44EC45163373F476EE4563571373FD10BBD685F3E363F');
INSERT INTO "samples" VALUES(33,1,1,X'82D4237A918D343FA1288CB3EEB0363F66F7C3266719363FF032CF9D290F373F2FE8FD66022C363F3B7996EF0239363F3B0D35820321383F6A436154C4F5343FF80F31748C01353F4B49898A979B343FDD1C96D077E2333FF4AA8245EA1D343F62234AE404D6363F9E201370FFB0353FD5020D7BF278353F337BFCA2E158373F6A91323B0A6F373F968A9237EA35363F');
INSERT INTO "samples" VALUES(42,1,1,X'ADC064444B812F3FF809E5622A97283F475EDABFCEDB083FB9A733540A1E203FA1A54147E828203F23C58000E520203F66DE2F3ECF43363FCD660E6ECF11303FD1E3B93AC6DF2E3F1CB905E08D42283F20E053523028103F0CC18ACD9220203F10FC8C2A52D4C33E438D897D7B26303F5F70EBAC1841283F4FEC148B2F45A73EBDD02B98EE3F8C3EF4423F26B2FEA23E');
INSERT INTO "samples" VALUES(43,1,0,X'1F7CF003A9A0463F36D96417BDD3433FD145171F0EFF413F7CF0C14991E8443FABAAAA8C3221473FABAAAA9E9A93463F934D36F102713E3FF0C107FF546B383F175D7499E76A393F081F7C02873A403F279B6CA212E93F3FB2C9260F270A363F74D145B361FF433F1F7CF0C5F960403F103EF86CB7CD333FD14517E1945C373F081F7C84EB68343FD9649321DAD2353F');
INSERT INTO "samples" VALUES(47,1,0,X'6D4AE79BEAE8333FF005F02F80C4333F1F763A84E614343F1F5015D14DD0353FABE05D839543363FE183AD613C3B353F465337C29964343F55012C24F5A7343FA331FBF25480343F4E62DA53E5BE363FF89047DA0853363F8CB8BA830C0B363F103A7289600B343F1F8CA7D75FD9333F460F23F319CE333FF8E8ADBA0C39363FE912FD1CAFA5333F6DB2A68287BF333F');
INSERT INTO "samples" VALUES(56,1,0,X'A3BF45901559393F10F0D05611E0333F271B5545D5D32F3FD15117C60202343F10EA5A603200383F46E96BF7F1EC373F1026559D691B243F36A92CC51B210E3F17FDE24E29AE133F6DF6F66A586D233F6D72C9679A2D233F000000000000000046ED923258F4333FE1338F22BBD2293F0000000000000000177D809C0142F23ED96434F8B489E83E5D447C5CC0A3003F');
INSERT INTO "samples" VALUES(43,1,1,X'F0033F60DAB03F3FD9899D50FA913F3FC54EEC0425203C3F0CBDD073E10C3D3FA1177A012F433D3F3BB113EFBA0F413FFCC00F385771413F7662274603BE3C3FD54AAD70E930403F10FCC0F761E6413F043FF0F3FFA13B3FB1133B39C1EB3B3F000000B0C6943D3F7662277647DB3D3F087EE04FEC8C3D3FE0077E700AAB3D3F2BB552636B62423F7223379E4809443F');
INSERT INTO "samples" VALUES(47,1,1,X'F058EFF2C4A0353F82A3695DB8B3343F23859C4C5412343F827E7F691BF3343FB1B9EC4B0D34353F967ACF62ABF9353F6E8AAE3540CD363F3BCBD1364BAC343F47FC1A6ECA4B343F33F77BB7C479363F2752FD54DD8E333FC93D671276D6333FC10389B1267F353F66EEC17ABFC7353F27724E3D9DC1353F53BBED934190353FEC7CB1CD2DB2353FD5A2504A88CD333F');
INSERT INTO "samples" VALUES(56,1,1,X'9EBB982C4D22243F1C8664FD81BF253FA14FC8E31F1D203FB9CBC64D0B36203F8A57C1C12521203FCD66880F5E4E283F101EE02E352F283F376211D21A26203F8AA50E590C2F283FE432F5E823A92A3F5F5CF670BA27203F473280D8F12C203F53A304A74A2D203FC15FBB005428203F184A5FDE83151F3FD1C330D38137203FF05764F406282E3FE0478AB36C46343F');
INSERT INTO "samples" VALUES(57,1,0,X'532BB55218D93D3FE4466E749A673D3F6666665655DB3D3F6666668E374B453FD10BBDE4912F463F432FF492BEF7443FF4422FF46D02363FD54AAD107FF8403F476EE4A25591423F143BB18B4611393F3FF00343A0FE413FC98DDC345BAE473FB1133BA139DE3B3F7EE007EE6A5D373FCDCCCC8CDFAF3F3FA5566A69BC3E463F2BB552BB87513D3F087EE0C7BA99353F');
INSERT INTO "samples" VALUES(61,1,0,X'10BA344C6FB8353F66B2F0884651353FA91DFF5748C7353F8A3D2A358645353F8632704CE8AA353F2FC4BE4A8985353F86DEED39DD02363F2F64A09156D0353F7A717C6C95B8353F3FECE95CE111393F8622CFF15F14383FFC8862DF85AA373F9E587F9D3C35373FE8850DD92256373FCDCC2C18E06D373FD5AA27BE0814373F4FBC31ABCBD6353F0C9D3F021E91353F');
INSERT INTO "samples" VALUES(70,1,0,X'FCE4A6D39A43203F8E1C2051552F203F4F34E2C0F12A203FC1C7E3136152353FD965EA9886B5363FB919880C3D6B343F00000000000000003BA1110E9F42283F20706E5EA0D52E3F000000000000000033CBB473D7D3273F147FD947F9B2373F866EDAA144A6123F6EE476460E969E3E9AB970DBE484203F66C2C24C556A353FAD9413D92AEF1D3F532BB5639B46A23E');
INSERT INTO "samples" VALUES(57,1,1,X'FCF2D86AD3C4353F4ADD972F84FA353FA1E1A42623C9353FD98AA091D1BD373FE6B1156158CD373F8286934E3A5A403F27755F26BB5E373FF3D88AB0389E373F9CD47D59AF043C3F2B82869B2DF9353F796C4510070D363F52F7E50176DC3E3FA5EECB23ED85373F040D2775BF74373FEABE3CB63ABC373F642B823E4F69353F23683899C082353F000000803D663A3F8793BA17745F363F1E5B11348EB7363FDD97C73EBF68373F236838911B1D373F1E5B11944A58363F828693369C26423F8FAD08B6747D423F11349CB6D1E8533F1E5B1160E0A5433F');
INSERT INTO "samples" VALUES(61,1,1,X'B6ACBE594DC5353FC3C5EA4073C4353FFC5E239786C9353F98CB03CC62BE373F8F539B68B1CD373F9C545A47C5D3373FD098CDFE375F373F30CDC5C8899E373F6C374B044196373F57501F81FED3353F16C9CFB1740D363F71827506BBFB353F164114A05A86373FA10DA1492C75373F119825B56F8E373FDD7370220F6A353FF3E078AF1C83353F826673D5BAF6353F7E01278ACC5F363F3DBAA0D94F1F363FA18DDE8DA9FB353FBF846871B81D373F042DD455CA58363FA54E25D9E9EE363FD0C8CC376194373F0DB7D899A223373FA9FBB58B2C67353F');
INSERT INTO "samples" VALUES(70,1,1,X'0000000000000000C8568EFB4B4FCB3E0000000000000000000000000000000000000000000000005792BAD96AC2213F00000000000000000000000000000000A9B384A737BB113FB62252A237F0C23E00000000000000005FE4FF3497C3213F00000000000000000000000000000000A9FB44878F23C73E00000000000000000000000000000000647B2AC1FDBF113F00000000000000000D877DEB0D21E33E5F9E38E3FBDBF63E00000000000000000000000000000000C81268A35BBF2A3F0435A74919D02A3F1602F30AC1404C3F308F948133E6313F');
INSERT INTO "samples" VALUES(71,1,0,X'D54AAD481557403FC10FFC783AA63F3F476EE4922D77463F965AA975E624363FB1133B695212363F187AA10FFCE13D3F20F8810FA0AF3B3FECC44E74358A363F5FE885DE8ACB353F821FF80971A2463F333333C32081393F8EDCC81539D4353FD10BBD109568373F576AA58E69B9373F187AA1E380D6443F143BB123B951373F333333237B8E453FE8855E00B03E3E3F');
INSERT INTO "samples" VALUES(75,1,0,X'2038119CDB1F353FCD04AC86BFBF343F661A42B697A3343F5F988574D717363FCD98D71F6E0A363F04D3B6BEE7D3353FE851D4D8A1B7363FE86DEF35B98A363F43C7E806B5C1353F43CF10C622BF353F14872C40EE18353F7652D3D98FCD353FCD8CF123F568373FE8B5E8F8D4AD373F3F20E84242ED373F729BCE523252373F2FFCF7FF2D2F373F9692C5AB08D3353F');
INSERT INTO "samples" VALUES(84,1,0,X'BDF8B4BB2C1F273F4B991D69E9CF253FE807D039324C383F233716E21D17AB3ED10B09C0A7B5A03EA5F68DD2D01E203FB981A6C1F5E2133F0000000000000000A117B2DC26C7A43E04A7A5EB9586373F862E7423AAA3113F865E98E9CF549C3E0000000000000000A556CA0E14D0A73E6227B51AD5C0313F0000000000000000CDD844B13DEE333F7ED0003BD6D8203F');
INSERT INTO "samples" VALUES(71,1,1,X'38A9FB023F49363F98C7562C173F363F349CD4F5ED25363F94BA2F2B8200403FD0705277D18C3F3FD98AA00158C03E3F1641C30961C5363FF3D88A900CED353F41C349659915353FB215414354F9353FE6B115A987C53E3FF3D88A486EBD3E3F5F1E5B91212F363F57040D2F7AE5363FEABE3CE60E20373F94BA2F17931E3F3FF7E5B1558CD5353F0D27755F0F9F353FFCF2D8AA861C363FBF3CB67AA027363FE2A4EEABAB1D363F5B11345438B5363F796C4548ACCA363F94BA2F8734D3363F27755FDE0D00423FEFCB630B3F31413F57040DB7A548433F');
INSERT INTO "samples" VALUES(75,1,1,X'3B21EB9D9F40363F5FEE388C6F3F363F3DF8A6533E26363FCC80B5373921373FEFCFE90F77A8363FD50D93A4D0D3353FB2673A6A6924353F8B88AEB3FC2B353F385B0C8E8A03353FE25C180848CE353F64EBA81B6BE3353F0D1BA3A30AD0353FB201A2097F2F363F27E58C6920D2363F5FCEC0ED7A20373F9C3CA777F637363F6CD1FE69F3D5353F2765FB02729F353F2BBAEC96A416363F115010F50528363FBB1F52EDF91D363FFCC6FF5B4A86363F5B05D1AD2FCB363F2745A6D550BA363F09FAADFF1675363FB28509BFF66C353FC83E00044837353F');
INSERT INTO "samples" VALUES(84,1,1,X'87936B113B51A23E000000000000000000000000000000006CE38F4E46C2213F09D6C34DF5CB213F276955B1ACDC213FD9AA2294EE1EFA3E642B1CFE3D3AE83E8BA027B10F98B23EE6314B89A711C43E348CAD18EAC5213FD01019E724DE213F0000000000000000C349497DE5DDB33E0000000000000000DDFFECF51FCF213F000000000000000000000000000000004EEA06D140ED993E000000000000000000000000000000000000B125EDD2C73E0000000000000000FCF220D12557B93E1114B48012192B3F8B586310C0ED293FB648FE69705B313F');
INSERT INTO "samples" VALUES(1,2,0,X'7CF0C16B56FE363F9B6CB205B3F4373F2FBAE8FE73B9373F36D9641799E5383FE1830FAA3314393F3EF8E08B4E15393F9B6CB271AC3E383F46175D18EDB8373F36D96457BDDA373F555555F1D584363F000000283320383FA38B2E264030363F081F7C4C42C7373F081F7CB867DD373FA38B2ECA36B4383F2FBAE81E3A4B383F555555E913E9373F36D96487A0F2373FF8E083C7281B383F279B6CAE7B4F373F279B6CC6FEAA373F36D96457F748383F46175D0015F1373FF0C1070F94F6373F36D9644B0A17393F1F7CF09DF22D393FE9A28BFAC13E393F');
INSERT INTO "samples" VALUES(5,2,0,X'552141663CEA363FD1A75AB02BCD373F1F66A32FC6B9373F557FA680DFE5383F0809CA6C7914393FE11D85259815393FB23F15D9303B383F8415633450B9373F9393D52614DB373FF8829EE7FD85363F65D51741B11D383F93B3CA62EA30363F4E8A6458C3B2373F466777DAADDA373F5535927F5BB5383F8483C011DD4B383F08DFF17ABBE9373F55159ADC0AF3373F10BA8E95EF1B383FF0A9BF91EA4F373FABC699FB52AB373F0078B551A632383F74414A7193F1373F5D0871C5F9F6373F4E560B3B7717393F17FD3199682E393FC2F7DEE50E3F393F');
INSERT INTO "samples" VALUES(14,2,0,X'179D69F4CBA8B43E6D325AD9031DC43E000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000008C2E323CEA3E8E3E0000000000000000A34B6A227D71B53E6593CF6D21158D3E0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000E103C52E3D40B73E00000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "samples" VALUES(1,2,1,X'F734C28EA47A343F12967B1610D0343F09CB3DD97D4B343F9F46585A7D7C373FCB3D8D34C769373F84E59E82E191373FB1DCD3880ACF383F4758EE614FB6383FA8119643EB8A383F8DB0DC0B6109363F84E59E5E4663363F12967B72E211363F4F232C3B31B5373FB9A711EA7AC3373F6A84E51A2FF9373F2CF7343A7708383FEE6984E9AE42383FCB3D8D182BFB373F3E8DB0E06A30383F7C1A61751EF6373FDDD30843930E383F000000C42267383F09CB3D110A72393F967B1A292E24393F61B9A7CD70F6373F9F4658920992373F4F232C036E0B373FC2724F072801383FB9A711BE0663353FEE69845112EB343F');
INSERT INTO "samples" VALUES(5,2,1,X'5FD3E59F8776343F1ABA4D54429E343F35DC0612F74B343F5826FB23C052373F2C3AB6812E6A373F73A26587D971373FD466E3D34F99383F6A8DB5747F88383F09D5BC778E8C383FCBF31075CD09363FE6A2C5D6FF2F363F120CFEE1EC12363FC28E51555F90373F4F2DB766E1C3373F12C4633827E3373FD4B01962A104383FDDFFBD31B412383F8DF0B93CB8FB373FB194307DB204383F3E0DD9B888F6373F96AB1FABADF7373F1A73AB589737383FD4C4381C9C44393FF724BDA59424393FC282A8F625F1373FD4F0ECE48F68373F96870401010C373FD40C3334C001383F8431C8F6CF33353FD44827BBF1EB343F');
INSERT INTO "samples" VALUES(14,2,1,X'3E8D1A72AC8C933EF704D7312B1EC73E0000000000000000C20250DBB65FC53E0000000000000000E62EBEA7C849C03E3EBDB8883455CB3E6A5489B7014BC73E000000000000000000000000000000006AE4BE43E425CA3E00000000000000009F067AE171B2C23E00000000000000003E0DDA9EED69B63E9F46DB77563E913E35E2B3C9C560C83E000000000000000047F822A23155C63E00000000000000002C77D58AB45BB73E96FB39F7E34AC83EB9876C8AF401C73E0000000000000000C2721E352BEC993E84C58665B313C53E00000000000000000000000000000000734F2BAFDE15C83E0000000000000000');
INSERT INTO "samples" VALUES(15,2,0,X'9B6CB26155E8353F3EF8E0074960363FF0C10783530B363F9B6CB23DC10D363F65934D568335363F175D7405CD18363FA38B2E462156363F8C2EBA6C731A363F5D74D105BA99363FF0C1079B194D363FF8E083F76C4D363F74D145C7F724373F9B6CB2553298363FA38B2EE61518363F3EF8E0FB9CF6353F4E36D984EAFB353FE9A28BA6B34F363F36D964A31310363F8C2EBA94B9F0353F74D145C3E03C363F2FBAE89EA035363F2FBAE8263A84363F55555575263D363F9B6CB28D8146363FE9A28BBE4B52363F4E36D938D76B363FD1451731668C363F');
INSERT INTO "samples" VALUES(19,2,0,X'F0BC352D9FE8353F746FE0FFA660363FC267341D920B363FC20B6F30B407363F00766A70202D363F4E24D36E4917363F08398DEA9649363F363999A9C31A363F6D707FE7109B363FBAF814650F4E363F2F32F837424E363FC2F11A951826373FBA1A197E8083363FCA46AA069918363F36ED19C3E4F6353F937D772FE9EB353FCABAEBEB472A363F3ECC80CBB010363F74494C58CCE9353FCA1268D00215363F6DAA93407136363F6D4A7E57AC61363F844B419A8D3D363F2F4607EF0747363FF86CA111F34A363FA3B72D8E236C363F84D7E6DBC28C363F');
INSERT INTO "samples" VALUES(28,2,0,X'0000000000000000000000000000000000000000000000006593439DB2339A3E840F39F68185A13EF8E01B766BA77D3ECA26BD77B640AA3E0000000000000000000000000000000000000000000000000000000000000000000000000000000010BE7633E770B53E000000000000000000000000000000005D74F6D1B687B03E6DB2D3DC2B3BC33E00000000000000007CF04578B3ED9D3E55D51F42404BC43E00000000000000006DB25F11A8D6C13E00000000000000000000000000000000B2C93A66E1019F3E00000000000000000000000000000000');
INSERT INTO "samples" VALUES(15,2,1,X'2CF734820C70343FEE69848137DA343F4F232C237EA3343FB1DCD3BC356F373F35C27233D21A373F000000387439373FA81196CFD628383F8DB0DCBBBF4E383FA811965F9C3C393F734F23D8A3C7373F84E59EA630DE373FF734C2DE0D83373F232CF7686784383FEE69842594E7383F967B1A2177C8383F2CF734F62536373F2CF73446679B373F6A84E59E5992373F09CB3D218AFB403F4758EEF5C6D9393FB1DCD34CF849363FA811960F9AC1393FEE698411F54E393FF734C2BE4565393F35C27283C9B2383F12967B1EA242393F967B1A4DCBB0383FDDD3080F544F383FCB3D8D685712383F7C1A61756282383F');
INSERT INTO "samples" VALUES(19,2,1,X'B3E11DEAFF70343F77A0D69175AD343F12DB46C0459B343F391102D8A63E373FF3719E298FF3363F966FA2EE2B2D373FB920B59F6FF5373F6177FB363A4F383F739B2F066C1E393FB153E0D62396373F230E8292B5DE373F099920F4A75B373F6AA272CABC84383F6AB2016B4AC5383FDD1799C90AC9383F6A0EE68C24D2363F1A1D4596219C373F4F574938BD92373FF7758222F8C1403FF78AE6579BAE393F6A74E7D87A4B363FD470E0374392393FD4D401BC6E4F393F6A883A4B473B393F4F3BC3B036AE383F61514DA96A07393F96175DD32EB1383F58126429C14A383F58621E14C312383FB168F6DDF75C383F');
INSERT INTO "samples" VALUES(28,2,1,X'0000000000000000355240323CBFC63EEEE9581EFB01A23E000098E20AB6C83E3502C0F974F2C33E8DF053D82D53A93E09CB4D7C271BCA3E0000000000000000EE493FE130C9BE3E3E2DDFBE2F3BC93E000000000000000047989B686819C43E00000000000000003562F36D5271C13E0000000000000000F7E40BB9A44ED93E0000000000000000000000000000000035220E8A35C0DB3E47F84B2A7B72C63E00000000000000008405C3F24616C83E00000000000000006A048EC9615CC53E58EE1352269E933EE6FEA205351DCE3E00000000000000004F237DF566A3943E00000000000000003542F0026922C33E');
INSERT INTO "samples" VALUES(29,2,0,X'0FCCB59B4AA8353F0FCCB5438E17443F6C07E696D0AA433F0473ED54317B453F4316B2E02784373F4AFC8CEAB441383F0473EDFCE37C433F899F516E0E8E453FAE1D983B1EFF3A3F4AFC8CF2F8BE383F555555A58CF8363FDB81B9E622DC363F0B59C8F6F377443FB60373DDFA6C433F');
INSERT INTO "samples" VALUES(33,2,0,X'2DE87262301F353F044FB622F46D353F0B39E2D6A541343F86C4675665F5333F30338972AA93363F21E775892B06373F7E1A07ACCA84343FD7225F986C4D343F2D9478C3A730373F291D7971D5FF373FD79A95B0D7F3363FD323FEBD77DC363F8211310229A0343F6FF27BABFFFA333F');
INSERT INTO "samples" VALUES(42,2,0,X'5D0BE2D2853BE13E436781514EC2323FE44D7E942015333FA0D211095802373FFC6CECAF8F2AEE3E38DDFC28BAC9F33E2D153E302D76323FE66EBA6CDACF363F4EFFCB61CC790E3F9185DC3A66F9E73EEDC0FCDBD66B803E0000000000000000D3EB5D2EEE50343F4E59550597DB323F');
INSERT INTO "samples" VALUES(29,2,1,X'223D50418FB5413FB7F0AB1542A6413F8D89F4A057393F3F6FE157A79C81483F223D501D0642403FFC6A4C3CC4433A3F7AA0728E102E453F95B35BB077E4443FA89CDD2AF253443F5039BB85C478433F32911E0038AD433FBF1A1325CFA7413FD69848EF14C3413F99480F283677443F2A67B738F1B7433F4CA407C22E22353F1B13E9B943C0343FE157637A31A2343F');
INSERT INTO "samples" VALUES(33,2,1,X'D4DBA532C3B3333F4586C5459BA3333F3253C659C676333F54F07EECACA7363F63666B62C08B383F9D4B70F13C443A3F2A656A10B44C353FBF5CAAE767D7353FA8446684CAA3333F0F3802EEE474333FB09EBF5594B7333F0B135CDB6497333F13116ADF7DDB333F86237597A2C0333FC3C3627FDFB6333F58BBA73472E7343F8D45B33ACDC0343FC317E59E75A2343F');
INSERT INTO "samples" VALUES(42,2,1,X'B4B3D1A9F6702F3F86831793DA532F3F1F221047BC85273FD6C993B35A5D3A3FC3E7A6CA16E61F3F00000000000000004C34298BCA10353FF5EA4E4D1AF3333F9D2B53962E04353F823A3474A67D333F0B83676AF8A3333FFCFAE8F341722F3F95FBF6643C582F3F0441ED9FCE2E353F359A75F202B7333FDA2DE4CC1CE6CD3E00000000000000000000000000000000');
INSERT INTO "samples" VALUES(43,2,0,X'00000048CFC33C3F6F7AD3A33C9B403F6894F829A63E453F3FA3C4230369443F899F51225BA3433F0FCCB5E331C6453F4E6F7A734021363F257E467143BF343F6F7AD35B2A8D343FC5CF28A99882363FC15C3B38864F363F59C842AE3C38363F6894F859B34B403F0473ED8820DC3F3F0B59C83A31923D3FB2908570B009433FA737BD9DCE96413F7E4689F7F16E3C3F000000589B3F433FEDC05C278359453F46899FD9B5E2383F');
INSERT INTO "samples" VALUES(47,2,0,X'89F99106766F343F73F18F8653DD343F07DA5A48883E343FD357335F333A343F0B39DF07A837343FC1F479D5BBAA343F303F055C66C6343FB23C125B8AAE343F07D660527C85343FDF3C44F4B873363F0B4D3A92D84F363FC84A93328F13363F64615164760C353FF59E5154F368343FD36BBF0BC37B343FDF9CD6EFE5AF343FD3D33D93A8A5343FE6CAFACCCA4B343F074EA995330B353F4A649A86F5AD343F9C261C9407DB333F');
INSERT INTO "samples" VALUES(56,2,0,X'3B50064EB0AA203FD34F6E05EAB4283F25EEF89C1340363F9173608C3E99343F77180F3F6C10333F9C080A1307E3363F77204A1C53BCF53E16B224A63C50B23EABAAD2709642A13ED02805524336A13E00000000000000006C07E897F683C23E645DC1A2A817273FA707FECA42E8263FF96119B6EC2E223F4E07DF6F8064313FBD29A415ED112D3F009865A22B48203F822D9B93FE74313F46155ED0FD05363F00908802E21C143F');
INSERT INTO "samples" VALUES(43,2,1,X'5039BBFDDAB9413F760BBFCE5F97413F911EA868B566473F5039BBFD08EE363F54CE6E01D6B3363F457AA0527B6E433F8AF4408543C7433FDEC2AFB6B670433FE981CAB92D99333F8D89F44048283B3FE981CA59B240363F2A67B7806396423F73760B97BCB44A3FBF1A13113B8F433F4CA407C27357413F911EA81013BD433F7E3526FEAD5C413F0495B3EFAF84433F');
INSERT INTO "samples" VALUES(47,2,1,X'9DCADDAAB3CB333F2EE91ECA8B79333F4588529401D5333F603EA7A07EE6363F1FFE875C7CAC363FD6ACFBA93837373F958798FD6FE0333F95D955C8FC1E343F6BC20F3A4F90333F5071A403A414353F73B66866D0F0343FA8A001FEBEF5343F3D381732A4BE333F499B8EB5F278333FA81023FBA884333FDEDAE593F7D6333FBB7DF3122A3D333F137D20AC7E84333F');
INSERT INTO "samples" VALUES(56,2,1,X'9D20BA9D24522F3F35F0C3884C6C2F3FA40E4B4876F93A3FBB85D1A7F12EA13E39BBC96C278F9F3E7ACC7D02384F2F3F3D24927A10AF333F8D7F5CE14BC3323F6FE1AB7EFC1DA43E08EAB4C41251183F13292FC4610FF53ECBAD3BAFC737303F8250C58D1FD6403F671304C606A6333F671F6AADA5572E3F769B1089BDA4333F32290B0CAFFB2E3F32E12E045D86333F');
INSERT INTO "samples" VALUES(57,2,0,X'36D9642FD0C0373F7CF0C18F882F383F36D964C765363A3F65934D8238EE383F46175D808D4F393FA38B2E96D428393F840F3E28633C383F5D74D141194A373FCA269BA44883393F1F7CF0154FCE393F934D36D54B193A3F0000003C5D943B3F279B6C0A1CC8373F8C2EBA640710383FD1451725F0A2383F5D74D13D2CB3383FD96493D5D5FF383F4E36D9DCEB3A393F');
INSERT INTO "samples" VALUES(61,2,0,X'9BF1952E35C1373F1F883D3512C7373FCA3C34B738E6393F8CFE19A34AD4383FE13749E51D44393F84D7F68BE420393F65CBDA27C6B4373F27517B81F441373FA367F2AFAB83393F3EC63D1184C5393F17EDAB5AB9193A3F9BF43E57891B3A3FABA25760B788373F8C36DD2C3DEA373F931D97DB37A3383F36B973316AB3383F08E3B49FA9FB383F8CB63A69E1B3383F');
INSERT INTO "samples" VALUES(70,2,0,X'00000000000000001FFCAF320446DA3E36D94F249E3DD43E65139281A989BA3E175D9C2B8D0DA83EB2C9BDBFCA9FA03E3619992D140FE13E4E36AA607412A13E0000000000000000175DDF7F10A0A23E000000000000000074E9F33F63A0F73EC28720B358FBCF3ED1C5E0B68D3FBC3E0000000000000000000000000000000036D978279FB7923ED1B52C98C2FCE03E');
INSERT INTO "samples" VALUES(57,2,1,X'922449C2A287343F6EDBB61B7570343F499224A0434B343F4992246BC221393FDBB66D3FCAD3383F000000184082383FDBB66D2DC862393FB76DDBF512F1383F49922429E5783A3F6EDBB630F87C373F6EDBB65E918D373F49922442354E383F6EDBB63BC77B383F4992247418AE383F6EDBB6FE9365383FDBB66DF04D23393FDBB66D5FA06F383F00000025482C383FB76DDB66A030373F000000D1EB5D373F6EDBB61766CA363F922449B5B9C0383F922449FDF464393FB76DDBBCB239383F922449519043393F49922468AD6F333F000000B3835B333FB76DDB498692383FB76DDB4F039B383FB76DDB0596BE383F');
INSERT INTO "samples" VALUES(61,2,1,X'ABADC67CBA66343FAEB20A14E770343F97A44D24994B343FBB3F094178EF383FA564E21239D4383F49C2B1B29182383F5BBE62951264393F6E01F1858CF1383F5BA92405198D383F5B28BC81644D373F5B8F1C0DFD8D373F92566797944E383FC90F29F46478383FB7CDBD2220A8383F129DC291EF65383F802E2F217D8F383FDB3AA30AC670383F5B7F14CAF024383F9225C02E8631373F00C1E6BDD45E373F6E07C56F43CB363F49D0F29FF7BB383FDBD27490C58B383F6E205092A9F5373F0003143A11E6333FDB6FF78C3270333F490E1203D05B333F928AD84C3C8D383F00CF7BBF8D9B383FDBD39E3B92BB383F');
INSERT INTO "samples" VALUES(70,2,1,X'9270B244A5F2C03E0000000000000000000000000000000000880010278FC93E0000000000000000000000000000000000000000000000000000000000000000B7D310B28847FE3E926860300958C83E000000000000000000000000000000006EDB4F2BE5C78F3EB76D84491D68993E000000000000000025A1F5ECA29BE23E000000000000000000000000000000000000000000000000000000000000000000000000000000002589B6B14F95943E0028ADF4ED45EB3E006C3A6D6822D13EC084228B9277153F000000000000000000000000000000000000D2476070973E000000000000000049923BED0B228C3E');
INSERT INTO "samples" VALUES(71,2,0,X'7CF0C18B900A363F8C2EBA5090B1383F65934DA28794343FCA269B100591363F103EF8044F6B363FABAAAAB21059363F2FBAE89ACF76373F3EF8E047316C373F934D369DD870373F46175D1C4B75363FB2C926CB6FF3373FE1830F42456B363F555555D54792373F1F7CF0C9556C373F8C2EBAF83666373F9B6CB215C8BA363FCA269BF46087363FF8E0837F5D7B363F6DB2C99ADBF0373FF8E08387EC31383FD14517FD97BA373F2FBAE87E9343363F175D7401D47B353F840F3E98C1DD363F9B6CB2C1DE9F373F4E36D90C5A9C373FD964933981DD383F');
INSERT INTO "samples" VALUES(75,2,0,X'74D5D2FCC9FC353F7CA85D116B75353F274F230A1E8D343F270BE6592A86363F467F6EE7AE65363FE135DCA66159363F5DD8AB100A70373FB28328339C6C373F178748E62671373FD9C0F1E16761363F6D56CE27257D363F7C8E9F62AA6B363FA37B6C506C83373F1F5442E7D164373FABC244569266373F3EDC42860EB5363FF0D98B4F0480363FD908A4B8A07B363F9BC408F434F1373F1F58FFD86BAC373F080BC52DEABA373FBAB4808BDC3E363F46DB59E9267C353F7C84E123CA60363F5D0C35CDE69B373FD94C2021A39C373F1006E584A6DE383F');
INSERT INTO "samples" VALUES(84,2,0,X'74D1D8BA4745AC3EBAFC3BDA54EA093F74D18961D95F9F3EF8E0B2C3FC6AA63E175D64B04AD1973E0000000000000000279B7876E3BC9C3E00000000000000000000000000000000000008EB0CACB43E08EF36F73F73F73E000000000000000036D944BE2B1CAF3EA38BDA440A589F3E00000000000000007CF0E91BBFF2983E175D98940AE09E3E000000000000000000000000000000004ED6265BE2D2E03E0000000000000000CA26A37AD45D943E0000000000000000D964CA2F3770DF3E6DB245879428913E00000000000000000000000000000000');
INSERT INTO "samples" VALUES(71,2,1,X'25499206ED49343F25499236296C343FB76DDB08B76D343F92244914540E393F499224DA136F393F000000ECC98B393F6EDBB6C030C8373FB76DDB9686BB373F25499207B786373F922449269ACE353F0000006A3E8D353F254992B8A19A353F0000001B360E383F4992241857E4373F6EDBB605AFAE373F0000006FBC7B373F9224491C7048373F6EDBB692C3EE373FB76DDB0E7B32383F0000008D7F2F383FB76DDB109757383F6EDBB6BF71DE353FDBB66D5767D9353F0000000CBD6A353F6EDBB60C2B60363F6EDBB6ADE6E8343F25499234F45D353F922449C6D46E363FDBB66DA33CB1363F6EDBB61400B4363F');
INSERT INTO "samples" VALUES(75,2,1,X'0954C857214B343F27DB290C956C343FD721A621186E343F298109E62C0F393F404896E46D6F393FE51EB116C98C393F3708C657D688373F1B388C0094B3373F77234B612A87373FB77E0160F598353F002C6924B48D353F6E40098FF29A353F806B979EFF0A383FB7AE5F1DB8E4373F92D368ED02AF373F807F6A163853373FA596018CFA48373FEEA5D3FD1FEF373F92523F376B2E383F490A631F1030383F5BBA80ABE857383FB7CAEDE8C0DF353F25CFA38398DA353F92B50C84C449353FDB6D2848A52C363FDB5B255BFEE6343F924D5231945E353F6E95F553D36F363F6E648F58B9B1363F2512AA8969B4363F');
INSERT INTO "samples" VALUES(84,2,1,X'000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000B76B87EBB13FD03E927462CA1803A13E000000000000000049BAECED43B1CB3E00000000000000000000000000000000DB76E6BEB456923E00000000000000000000000000000000922495A4A204C53E000000000000000000000000000000006E5BC43CACD4953E0000000000000000000000000000000000000000000000000000000000000000491A0F448305C13E49123E939CA0CA3E4912BEF51DB5893E0000000000000000000000000000000000000000000000000000000000000000');
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
);
INSERT INTO "seat" VALUES(1,0,1,'case',0,'[5]',X'1D21B6C9D851423F54CE6E61FD1E393FABAAAA4A6F3C3F3FE981CA3167A9433FE8FAE36195F2433F');
INSERT INTO "seat" VALUES(1,1,1,'twin',NULL,'[5]',X'1FA89C41B57C413F8B7B27692EF4423FB14D2B4E8130443F41E5EC4E9A80463FFC6A4C2C74EE363F');
INSERT INTO "seat" VALUES(1,2,2,'case',0,'[5]',X'DA2DFC96FCF8413FE0D07CCA8353443FF8D598FCF69C443FD07CAE6F0125493F5863227900D7453F');
INSERT INTO "seat" VALUES(2,0,1,'case',1,'[6]',X'055BB0E7A5A3473FE9933EE653D7423F777777951DF0403F2DD882C9381E403F055BB011DE79413F3333339BE7CB393F');
INSERT INTO "seat" VALUES(2,1,1,'twin',NULL,'[6]',X'BCBBBBB467994A3F77777755CD6E433F8EE338CB24A8413FD8822D848149403FC1166C2D5F3B3B3F832DD8287971393F');
INSERT INTO "seat" VALUES(2,2,2,'case',1,'[6]',X'78777709A4103D3FABAAAA781B59493F0BB660A09CFE403F50FAA4A1EA5D3F3F832DD826A618433F943EE96B7A093B3F');
INSERT INTO "seat" VALUES(3,0,3,'case',0,'[6]',X'E4388E99B972423F1F7CF0DF7B5D473F03B57E09306D3E3F36D964CFC49E403FE3388E036B9D383FDC1912BFB182403F');
INSERT INTO "seat" VALUES(3,1,3,'twin',NULL,'[6]',X'7FA5402D34F8363FF52B05C2D9EF3F3FFD4A81D8B5EC413FA540ADB11C8D423FBD9D21070D4A463FF8E083FF515D453F');
INSERT INTO "seat" VALUES(3,2,4,'case',0,'[6]',X'0D8979137C26443F9B6CB2D17434463F88793B836AC23A3F4D36D93C6DCD3C3F13F376CA24DA3E3F3B43628273DD353F');
INSERT INTO "seat" VALUES(4,0,3,'case',1,'[6]',X'8DC7783CC414403FACBFFA2BF28B3E3F0769902A80F9433F599445216C463C3F0CBDD093017A3F3F576AA5D64C06373F');
INSERT INTO "seat" VALUES(4,1,3,'twin',NULL,'[6]',X'C10FFCE850FC3C3F988449F00DBC3F3F511665198A2A433FD8744DB7CE9F393F3CC6637C2BDF393FB87CCB8BD315403F');
INSERT INTO "seat" VALUES(4,2,4,'case',1,'[6]',X'8549983C53763E3F61122671D7CF3E3FAFE99A6E6B00403F9CC339B481733E3F2BA002D2A8A93D3F8449986868C0413F');
INSERT INTO "seat" VALUES(5,0,5,'case',0,'[6]',X'344883B402B43D3F288BB2AC827B453F0FE7701E5D073F3F31099394DF11423F544005B4D6A33B3F7FF557C793CD3F3F');
INSERT INTO "seat" VALUES(5,1,5,'twin',NULL,'[6]',X'1DCEE174C3A23D3F8FF118A7D7773D3FADD44A4D624A403FA32CCAFA78003C3FE7700E4FC51A413FF9966F090B28393F');
INSERT INTO "seat" VALUES(5,2,6,'case',0,'[6]',X'FFEAAFB2CA35423F754DD7A411B3383F243772CBCA01383F411AA4F913DE3E3FC8788C77559A3D3F9006693CE51C403F');
INSERT INTO "seat" VALUES(6,0,5,'case',1,'[9]',X'4D3B07EB28D8353F41C34985DFBF3A3FE860CDBA8B00393FFDA190E438F6383F313E651A4D92373F2D313E1D6F1B373F2B82868340D5363FC19A2586DF403B3F45D070D652FC493F');
INSERT INTO "seat" VALUES(6,1,5,'twin',NULL,'[9]',X'8BA0E1A43E6E353FEFCB63DB00B8363F642B8296D9203A3F642B8236455D363F1085E4128F62363F78BD8DC61E143D3F49DD972756DC363F11349C2C0844403FD8DBE82764554C3F');
INSERT INTO "seat" VALUES(6,2,6,'case',1,'[9]',X'57040DB7163A363F45D0709A646F3F3F6DF487AA57ED353F84354BBC18D43B3FE0F536E238BC363F33ED1C44BADB383F89F1299B9B20363F78BD8DB65DC6363FCFC19A35A628423F');
INSERT INTO "seat" VALUES(7,0,1,'case',0,'[9]',X'6DB2C97AD48E373F711CC7190905393F081F7CA0C7F0373FA8F52B15C3F1363FE7ED0C45A01D383F3DF8E02FFA0C383FC3071F14E1B1373FCF9098773510383F15A8F54BEA2B393F');
INSERT INTO "seat" VALUES(7,1,1,'twin',NULL,'[9]',X'24E6EDD4ECB5343F5BBF52C80690343F13F3767ABFFD343FD14517C1AE48353F15A8F5173E49353FD4FA9592007E353F4B815AD35B6F353F21316F937B22383FF52B0532B28E353F');
INSERT INTO "seat" VALUES(7,2,2,'case',0,'[9]',X'4362DE4EFB1B363F081F7C88B01E363F840F3EE8C458363F1F7CF01D2A95363F7FA540BDA137363F793B439A901E363FBBE8A2A71321363F0BD4FA0DF657363FAD5F29B82D6E363F');
INSERT INTO "seat" VALUES(8,0,1,'case',1,'[10]',X'0632292A6687343FFBCDD605627D373F35C2720F17B0383F0C6452F42D2A363FD06FB66A9ED0373FA1DF6C697017383FDDD30833B411383F8B17C8541EFF383F1B61B9CBA286373FCDD6A1076B1A363F');
INSERT INTO "seat" VALUES(8,1,1,'twin',NULL,'[10]',X'0C645210815D343FF734C2AE2E29353F8DB0DC4B9ECE383F5D209312C2DC373FAD43BFE97E9E363FD7A1DF1083B2383F0C6452D475AB373F35C2721771E1363FD7A1DFA0114A393F58EE69ACA276383F');
INSERT INTO "seat" VALUES(8,2,2,'case',1,'[10]',X'232CF70C96A4343FF834C2622941373F9F46584E6691383FA57881744BB8373F385B873A26BC383F957B1A49A276373FAD43BF81465E3B3F84E59E4A9C7C393FF49BAD4F12E2383F0C6452A4044C383F');
INSERT INTO "seat" VALUES(9,0,3,'case',0,'[7]',X'16B29091B3EB3E3F38BDE9F50093443F46899F65EEE2373F46899F357985443FFC8C12970BDF393F986B07C657EA363F60AE1D6A77F2433F');
INSERT INTO "seat" VALUES(9,1,3,'twin',NULL,'[7]',X'D9B0BF379E02443F7E46890FD99F403F109DAF16C6B7433F3ED2CA0CDB66413F979A0DE77D49443FB7D46C388DDF3D3FEF91565697933F3F');
INSERT INTO "seat" VALUES(9,2,4,'case',0,'[7]',X'F304447B4369413FF3044463859B443FA122DC6A8F24353FA051E22FC958363FF5A6377D3D573F3F88CE5703A8F2403F852C647928AE413F');
INSERT INTO "seat" VALUES(10,0,3,'case',1,'[6]',X'8B7B270D7FFD403F051C9A4B2CF7413F93A58E78D3CC443F6B4CA4E343EF423F886D5AC5BE50433F18051C52E1D6343F');
INSERT INTO "seat" VALUES(10,1,3,'twin',NULL,'[6]',X'3318054402DA3F3FAF3F5EFEBFE73A3FC01A13D1F1D6393F5B71EFDC44C0423FE5EC1672A2B2463F4FB2D49909903C3F');
INSERT INTO "seat" VALUES(10,2,4,'case',1,'[6]',X'73760B67A592433F1054CE36472A3C3FC9524708DB56403F43F3B9DE95DC3C3F2A67B778CE33453F07A380FF7ADF423F');
INSERT INTO "seat" VALUES(11,0,5,'case',0,'[9]',X'D964935F2CF8373F4E36D9244F92393F74D1450B313C393FF0C107353EC3373F74D145DDCBA8393FCA269B88D4D63A3FDA6493B711EC373F175D74310EAB383F944D36D9601D393F');
INSERT INTO "seat" VALUES(11,1,5,'twin',NULL,'[9]',X'13F37642DEB2383F24E6ED803100393F185D747DE5C5383FC8711CE76777373F175D749DDBAC393F3C436232C37C3A3FDC1912ABDC1A373F103EF8A0024D373F081F7C48AA52393F');
INSERT INTO "seat" VALUES(11,2,6,'case',0,'[9]',X'793B432A3870363F815ABF42CC71363F000000804871373F9D21316355F1363F00000088F176373F1F7CF02D8294363F6848CC5F75F4373F98B733086334363FEB570A589308383F');
INSERT INTO "seat" VALUES(12,0,5,'case',1,'[10]',X'C3300C2AC96B343F0CC3309699D2383FF43CCF6E9599393F0CC3309B3FC8373F6118868F2685383F3DCFF3261295383F6118861AA61D373FF43CCFCF75CA383F9FE77979405A353F6118868A0AA4383F');
INSERT INTO "seat" VALUES(12,1,5,'twin',NULL,'[10]',X'ABAAAACF2FA3343F254992B8C170383F25499296BFFF373FABAAAAB802C4353F611886159C85383F555555851C75383F3DCFF3C83E66373F876118DED965363F3DCFF3505EAD363F9FE779B59FDB353F');
INSERT INTO "seat" VALUES(12,2,6,'case',1,'[10]',X'ABAAAA6C4461343F9FE779F36558393F188661CA24AE373F932449187EA7353F9324496869E0373FABAAAAB4FA90373F25499239DB3D383F6DDBB60B32B6353F555555FA018D353FF43CCFD4059C363F');
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
);
INSERT INTO "series" VALUES(1,'3d25492c69ab55d416f63728dc204f009dd9587695a2f69cf7fd8ff7bfb86749',1,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(2,'66868784eed4d56823466c8ba19d540ac31525ad6335643e6567347e8c720b90',1,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(3,'e8626493a6b90161c03b7bc2c63fcbcb49dcd557ec0a896b3f5be4369d2e49a6',1,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(4,'49ec93e3b083d976479e3247b56b84dd9081f6d063a53f4ec797b922ff73c5bf',1,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(5,'32151f31f0b025319eb0f27f4a0940e6e25e09e738c1646a317d2f3b660430da',1,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(6,'5bb1dca3adfe3a3cf5352c08a844e9ba42210da018418f128a0ca132dc662f30',1,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(7,'cc97e2cc41b4d4f68d1bb1a4d72a0c94031d92ec65150907fbd2fe703fca3c7f',1,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(8,'a0aa7ff1e4623a10211d21a4c426d687b3e3595773a38e8419b03f27b96b0747',1,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(9,'03afc96e540ea0968119366fc7e7a3a98115bd45572c7fbfd00cdc686b25c112',1,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(10,'fb1c7cda30db7d0fdb5f6b94d4759a44dc256abd59acd4439984d4487746f3de',1,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(11,'8815e54800611026315ad959ec7b6389fd0d65861ef533c1f1cd181a08a3e159',1,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(12,'a431c3045e21446d8c37a486c3d84023ba2ded2af56fe411c947f313e281443a',1,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(13,'0c552de83f60d2ca27cb7d2f71077598c8dde25ed6aba98279fb90653864eea5',1,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(14,'e8b0c456e5b912a24e659cfcbda73bf794d068a91cc542382063c597af1a24d2',1,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
INSERT INTO "series" VALUES(15,'b0077803ea78fd1583823c86bfcb8c7d8522d73df6d56c883c22b9727d81c247',2,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(16,'ac1eba77b97c9471ac95818decc0e8f8ab90c0e6a34df97bcde8c3bebf37bc23',2,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(17,'f243e5b0a71ebce1262712a0d9cd5222a265074527ae68fa55cf742a72e764fe',2,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(18,'a74a3ce32e4d0d7f60bf29e0f1dab886253d58db8fdbc2d6781ac34c2e9ae7c1',2,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(19,'4cbb6d68d7fd230f29ea1e31be174399d339ced4ddd8ac4d552c5d0fce5aef31',2,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(20,'8e91ada02ccaacf87e5130c93deeb338af2664e67efe6b3234d25359c7da6977',2,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(21,'a9910054766dd236234628009728066917a744da48cf1675e18651d43744c504',2,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(22,'af9b088016e82e1e19524edda664fe1b297613b1fda1daf1ebd021e867c56add',2,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(23,'29477334ca8e6b20dc9648d52ee40436f88c9160074c4c3eafe29f1531b76a14',2,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(24,'20a9b28059444d1b820d4fc00cd02d00101055de97bef5ef46a95465a3b77c6e',2,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(25,'1eeb0c2181739c3cd454318db9c4b4bc438ea1a6b5c4f9c2aafce6362fc9a7da',2,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(26,'b824120ae32a183880436519aa9086b22d8609d82bc818eb36b0528c3b8f16f8',2,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(27,'c9094c09e537e14ccdd73d43f18847b3f0f428b43086ce140f637bfa005b4eea',2,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(28,'9f6eebf1a3553c12245811ef679207c41960d6e192039819fff4e1f1755cc2e8',2,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
INSERT INTO "series" VALUES(29,'e596f950551d9277f7efcc137c776091f77ff482907821c081d049d7d0d401c7',3,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(30,'154a5eb1c68c1fa37ec9b13b391734e2a4c189039646ac8d235381427050da44',3,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(31,'080cc09018b55539451bf27241239bc88e98a9188f4b370bd3ba94c8b014d5cb',3,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(32,'d13dffca3c02c69083220ddaf46621e99ebbc6f39c8c9e1be37bf4127131d6a8',3,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(33,'e3fe01715ea06bce9ce01ea0f2be8a36040ba532011b55efcd966d1a82a599e3',3,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(34,'528563ebc6a281e0805527fea1419309feafe092af12a1bacd7a4be1d15790b0',3,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(35,'71a9026d2fed5191bcd218b73bcefdbfd8a737c8b8a05d8ecf5c5589d1b10e1c',3,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(36,'85d0b1319fd3bc410deb1ca91c8c2d925e1cc8c2a37525b524d6aebd531124cd',3,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(37,'68c5b48aad310c38586ed17c483c33cc143af379ddb74d2335f15dd9ecb57691',3,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(38,'80f0471875692523d913fcf6efc1cca0cd705fa95706222b722e527c9b69632a',3,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(39,'74a63cf6c2ef72ab574f55cb595ea6eba844e0a7d734874b55511a35fd85091f',3,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(40,'622f5348fe0430a5381c5634a9ebb9afa703db0775a2ba48da0ee79621f9535f',3,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(41,'2e58edcc56eee34249f35a99c926fbd5f3f691d6dbd362acb9eed7b1185268c0',3,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(42,'c3be71d86470ba0b3109115caf9b650e685941b61cbe9ece831f82a59394a337',3,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
INSERT INTO "series" VALUES(43,'5af9590b6e96c3b20514a31b6906819d22a223cba662ca5e6a5fda9414ff4072',4,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(44,'b8ea643dde9353209702e65d2976d745101e3bf0e759333591cc2fb2bf1abcc7',4,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(45,'fa813619fb6f7eb90e629ec3ebc95b88dc6718255556895962f2ceb4fa26571e',4,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(46,'cd1b686df7c5ef9586e4bca4f839e1e77532543564050d8381c43ed75b862844',4,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(47,'8788aaaa980f0734d3aed15b7ff2e8b6a400b54492ff7ba658433edc790208f8',4,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(48,'b6cb54564611c5e48fd876f73f2855337b9bc9eca9a7eec65640d56380361803',4,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(49,'5ed0d8d9d4abd1801d82c9e1065a0b891b240b001b6bf462cbdd081e262d87b2',4,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(50,'7f353c394d10cbb0c8a662e73647f50e51286bf6541ab38cd04abe41cfc22e21',4,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(51,'1a55d48814edbfe518d6c631f6deee1f76f1dd2979d30f8f0154de05b841cc3c',4,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(52,'c2e35cf40c3fd16264c6ffcff3f2ab44b67c15b4912248eec9fe720aa729d002',4,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(53,'a7217e40623449f1c1f9d41b3fe7e4efd40d30843b8cbd22c1be20ef04f95ef4',4,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(54,'3dbc117a9e1b970c31aef6ecfb6baa4af285485d4609efb6159daec69dab9b37',4,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(55,'42bd6b72a723739a16f09cbac312815ab0d65343dd07aad05f94720b0e65de37',4,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(56,'460bdc45f02a4962798604a3426c5a1698ad27c87d9e56dd9a8ebecf3b5c88ff',4,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
INSERT INTO "series" VALUES(57,'77b887662cb264045af590f2df3eef9320cecc202807687ef878ef88760c4c58',5,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(58,'25c48bb1d48a7371b1570acf9ce1def4ca77ddfc4a3e7bf8fc94f4c916c25015',5,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(59,'4906e2a3f24ad56e320411f289c0089b7ad90b95f37839de0a1f673bca38661b',5,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(60,'f27b98d4414cbef8a7bfc5546d5c46f26044600fabb145f56b083d2471ec1387',5,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(61,'19f94907bfdec3188ed5bb5e29fc8f218ada5a8f94937cb3217b75bca9b5cb63',5,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(62,'8ebca1eabc61078369c04dded87f4ff6df3b93c3f38c53e49399b95c6c713124',5,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(63,'5e41ace599f13c3162b974595ad73bb7f2a4cda6fc8a6fdd1e9ea10644b5b7de',5,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(64,'1fa57e21e4cc1e89c599ac42a220309ffb8f23ba8d84d65db70de9440234860b',5,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(65,'cad41e042a9576f6be92e44cf0ac91ce86bbc86dc4fade9f1a78b99dd3863830',5,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(66,'37fbae27d3859f3460e6eaeb362cbba71b42b2f26f35a2dc4b3e47a48fc007a9',5,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(67,'b76b3cff098f3f830edd7d28ab4062bd05726a395d05af278fb0d39c8db5bff4',5,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(68,'bfaf3b64b6d42d527d1f0bd0e7a7d2ea937dd6e77cb1ce6878bd5253844a26ac',5,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(69,'2f5fd9e84c2db1b6c013211bc4b2c622dc1e3dfb92a3ec87f8cb867053ac7b01',5,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(70,'be4b04cefc4d14195e5dabc1e2f83611f88d6a1860c944018624560887bfcf48',5,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
INSERT INTO "series" VALUES(71,'c48e4fde72ca0a540c4bc8ddf74d86827d7c31334ebc4a9b54c5024a8943cf98',6,'amd-epyc-2c-24g-19af5190','step_time','s',0);
INSERT INTO "series" VALUES(72,'3bc3e5ae135e6df1c4576a74b7f20d4c0aa54cacadff3dbb880c3f47d48305b8',6,'amd-epyc-2c-24g-19af5190','throughput','items/s',1);
INSERT INTO "series" VALUES(73,'58f0963b88b37640d175964c441b419c61ad5e67fe53ad91c532024cb9f4fc10',6,'amd-epyc-2c-24g-19af5190','p50','s',0);
INSERT INTO "series" VALUES(74,'2bab3acce4fcf96eada5a261572aae606aa28aca17ce120d073fcb89ec62bd44',6,'amd-epyc-2c-24g-19af5190','p90','s',0);
INSERT INTO "series" VALUES(75,'77a769ed285477f1665f6d0e839592b530a37be7bf446204027f189fc880feb1',6,'amd-epyc-2c-24g-19af5190','cpu_time','s',0);
INSERT INTO "series" VALUES(76,'181e724aec1316318d4d974e0a337b2d8fbf4b69495e6f57955ee7e46eb36fc3',6,'amd-epyc-2c-24g-19af5190','import_time','s',0);
INSERT INTO "series" VALUES(77,'ad5bc6a2e3a17a0d7fed1650d8c2f8d1ed738674eb967905d908a88312f29bda',6,'amd-epyc-2c-24g-19af5190','prepare_time','s',0);
INSERT INTO "series" VALUES(78,'7face1048232129bebce6c425f99de81cb209ec1ed82c46022f20726d85ab0bc',6,'amd-epyc-2c-24g-19af5190','warm_time','s',0);
INSERT INTO "series" VALUES(79,'2359175c0e6a89c01c6092821698e5a434aeffa3f442c4bb18ec53961d697e89',6,'amd-epyc-2c-24g-19af5190','page_faults','1',0);
INSERT INTO "series" VALUES(80,'01b4dcb69137d8182bec1c3f0f0d0fa89bc4a392e5e7a2c40391712e23d138f1',6,'amd-epyc-2c-24g-19af5190','peak_memory','bytes',0);
INSERT INTO "series" VALUES(81,'b61faef8f62cdfd655b056d4ec9a8c5d6e96daf3213709fc9e090c05bb6465da',6,'amd-epyc-2c-24g-19af5190','accuracy','fraction',NULL);
INSERT INTO "series" VALUES(82,'2c7a5776167f85733832c9f266104396dc3907678318158a009553d73c253517',6,'amd-epyc-2c-24g-19af5190','fidelity','relative rmse',NULL);
INSERT INTO "series" VALUES(83,'4880672baf8fc21fbe918b0d39ddcfc915df6777e52dc7ec9db0ccf54eaec631',6,'amd-epyc-2c-24g-19af5190','agreement','fraction',NULL);
INSERT INTO "series" VALUES(84,'640c43ff8207643297a33b320bfb91f96a3322f0a341873b82383bc9124c90ee',6,'amd-epyc-2c-24g-19af5190','run_delay','s',0);
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
);
INSERT INTO "verdict" VALUES(1,1,1,'no_baseline',NULL,NULL,NULL,'{"text": "nothing was accepted for this case on this machine yet", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:07.187261+00:00');
INSERT INTO "verdict" VALUES(15,1,1,'no_baseline',NULL,NULL,NULL,'{"text": "nothing was accepted for this case on this machine yet", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:07.190068+00:00');
INSERT INTO "verdict" VALUES(29,1,1,'invalid',NULL,NULL,NULL,'{"text": "accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:12.667427+00:00');
INSERT INTO "verdict" VALUES(43,1,1,'invalid',NULL,NULL,NULL,'{"text": "accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:12.679361+00:00');
INSERT INTO "verdict" VALUES(57,1,1,'invalid',NULL,NULL,NULL,'{"text": "proof failed: dtype: found a dtype nobody asked for, expected fp32", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:18.207574+00:00');
INSERT INTO "verdict" VALUES(71,1,1,'invalid',NULL,NULL,NULL,'{"text": "proof failed: dtype: found a dtype nobody asked for, expected bf16", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:18.219515+00:00');
INSERT INTO "verdict" VALUES(1,2,1,'no_baseline',NULL,NULL,NULL,'{"text": "nothing was accepted for this case on this machine yet", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:25.682314+00:00');
INSERT INTO "verdict" VALUES(15,2,1,'no_baseline',NULL,NULL,NULL,'{"text": "nothing was accepted for this case on this machine yet", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:25.684347+00:00');
INSERT INTO "verdict" VALUES(29,2,1,'invalid',NULL,NULL,NULL,'{"text": "accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:31.211566+00:00');
INSERT INTO "verdict" VALUES(43,2,1,'invalid',NULL,NULL,NULL,'{"text": "accuracy failed: fidelity: found 1.74e-03, expected at most 1e-12", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:31.214776+00:00');
INSERT INTO "verdict" VALUES(57,2,1,'invalid',NULL,NULL,NULL,'{"text": "proof failed: dtype: found a dtype nobody asked for, expected fp32", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:36.029020+00:00');
INSERT INTO "verdict" VALUES(71,2,1,'invalid',NULL,NULL,NULL,'{"text": "proof failed: dtype: found a dtype nobody asked for, expected bf16", "lo": null, "hi": null, "baseline": null, "structure": {"outcome": "unknown", "reason": "nothing was captured", "changes": [], "fails": false}}','2026-11-23T10:03:36.031120+00:00');
CREATE INDEX ix_case_model_mode ON "case" (model, mode);
CREATE INDEX ix_series_case_id ON series (case_id);
CREATE INDEX ix_run_environment_id ON run (environment_id);
CREATE INDEX ix_run_started_at ON run (started_at);
CREATE INDEX ix_run_branch_started_at ON run (branch, started_at);
CREATE INDEX ix_run_commit_sha ON run (commit_sha);
CREATE INDEX ix_measurement_run_id ON measurement (run_id);
CREATE INDEX ix_launch_case_id ON launch (case_id);
CREATE INDEX ix_launch_environment_id ON launch (environment_id);
CREATE INDEX ix_samples_run_id ON samples (run_id);
CREATE INDEX ix_verdict_run_id ON verdict (run_id);
CREATE INDEX ix_verdict_policy_id ON verdict (policy_id);
CREATE INDEX ix_baseline_series_id ON baseline (series_id);
CREATE INDEX ix_baseline_run_id ON baseline (run_id);
CREATE INDEX ix_baseline_superseded_by ON baseline (superseded_by);
CREATE INDEX ix_environment_machine_key ON environment (machine_key);
CREATE INDEX ix_round_run_id ON round (run_id);
CREATE INDEX ix_round_environment_id ON round (environment_id);
CREATE INDEX ix_seat_case_id ON seat (case_id);
CREATE INDEX ix_paired_base_id ON paired (base_id);
CREATE INDEX ix_paired_case_id ON paired (case_id);
CREATE INDEX ix_bisection_case_id ON bisection (case_id);
COMMIT;
