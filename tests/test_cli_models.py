"""`ipexperf cases --models`: what is told of each."""

from cli_answers import run

from ipexperf.bench import registry


def test_every_model_is_listed(capsys):
    """With its task and metric, its data and their licence, sizes and batches."""
    out = run(capsys, "cases", "--models")
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == list(registry.models.names())
    shown = out[out.index("resnet50\n") :]
    for line in (
        "  task     classification: share of right answers",
        "  data     digits, ",
        "  size     32 x 32, normal 224 x 224",
        "  batch    train 64, infer 32, full: int8 80, fp32 160, bf16 112",
    ):
        assert line in shown


def test_what_makes_no_sense_is_told_with_its_reason(capsys):
    plain = {"size": 1, "batch_train": 1, "batch_infer": 1}
    registry.model("fussy", **plain, why_nots={"train": "nothing is left to learn"})(object)
    assert "  not      train: nothing is left to learn\n" in run(capsys, "cases", "--models", "--model", "fussy")


def test_data_that_are_not_here_are_told(capsys):
    registry.model("elsewhere", size=1, batch_train=1, batch_infer=1, data="cifar10")(object)
    assert "missing: CIFAR-10 needs its folder: --perf-data=FOLDER" in run(
        capsys, "cases", "--models", "--model", "elsewhere"
    )
