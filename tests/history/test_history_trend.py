"""Series filtered by names and ranges."""

import pytest
from history_records import CRASHED, ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.history import History
from ipexperf.verdict import Verdict

STEPS = (0.01, 0.03, 0.02, None, 0.05, 0.04)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    with History.open(tmp_path_factory.mktemp("history") / "history.db") as opened:
        for day, step in enumerate(STEPS, 1):
            uid = opened.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T08:00:00Z"})
            bad = step is None
            launches = (make_launch(0, 0.01), CRASHED) if bad else (make_launch(0, step),)
            opened.record(uid, make_measurement(launches=launches), Verdict("failed", "crashed") if bad else OK)
            opened.record(uid, make_measurement(make_case("vgg16", mode="train")), OK)
        yield opened


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"model": ["resnet50", "vgg16"]}, 12),
        ({"mode": ["train"]}, 6),
        ({"mode": ["infer", "train"], "stack": "ipex"}, 12),
        ({"metric": None}, 24),
        ({"branch": "main"}, 12),
        ({"branch": "topic"}, 0),
        ({"machine": "other"}, 0),
        ({"limit": 2}, 4),
        ({"since": "2026-05-05"}, 4),
        ({"until": "2026-05-02"}, 4),
        ({"since": "2026-05-02", "until": "2026-05-02"}, 2),
        ({"since": "last~1", "until": "last"}, 4),
        ({"until": "last~5"}, 2),
        ({"since": "2026-05-06T09:00Z"}, 0),
    ],
)
def test_a_trend_takes_several_names_and_ranges(history, asked, count):
    """A day lasts until its end, and a run at the end of a range is in it."""
    assert len(history.trend(**asked)) == count
