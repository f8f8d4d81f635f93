"""`hf:` and `timm:` on tiny weights that are made here: nothing is downloaded. Each needs its package."""

import importlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import bench_cases
import pytest

from ipexperf.bench.api import Workbench
from ipexperf.bench.networks import own, own_target
from ipexperf.conduct import process
from ipexperf.errors import WorkerError

torch = pytest.importorskip("torch")

from ipexperf.bench.networks import own_build

# What the packages themselves warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

TINY = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 24,
}


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    package = pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    own_build._configuration.cache_clear()
    return package


@pytest.fixture
def bert(transformers: Any, tmp_path: Path) -> Path:
    """A folder with a classifier and its weights."""
    torch.manual_seed(0)
    folder = tmp_path / "tiny bert"
    transformers.BertForSequenceClassification(transformers.BertConfig(**TINY)).save_pretrained(folder)
    return folder


def failed(workbench: Workbench) -> set[str]:
    session = workbench.mode.open(workbench)
    return bench_cases.failed((*session.proof(), *session.accuracy()[1]))


def refused(text: str, reason: str) -> None:
    target = own_target.parse(text)
    with pytest.raises(WorkerError, match=re.escape(reason)) as error:
        own_build.network(target)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mode", ["infer", "infer_jit"])
def test_a_saved_transformer_is_measured_out_of_its_folder(bert: Path, mode: str) -> None:
    """The kind of network that its configuration names, on words of its vocabulary, as many as it takes."""
    workbench = bench_cases.of_target(f"hf:{bert}", mode, 4)
    assert workbench.model.name == "hf.tiny_bert"
    assert failed(workbench) == set()
    [words] = own_build.inputs(own_target.parse(f"hf:{bert}"), 6)
    assert (words.shape, words.dtype) == ((6, 24), torch.int64)
    assert 0 <= int(words.min()) <= int(words.max()) < 50
    [fewer] = own_build.inputs(own_target.parse(f"hf:{bert}@7"), 6)
    assert fewer.shape == (6, 7)
    (logits,) = own_build.network(own_target.parse(f"hf:{bert}"))(words)
    assert logits.shape == (6, 2)


def test_a_network_is_found_in_the_hubs_cache_by_its_name(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the hub's own tools leave it: a snapshot, and a reference to it."""
    constants = importlib.import_module("huggingface_hub.constants")
    home = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home))
    kept = home / "models--somebody--tiny"
    shutil.copytree(bert, kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    name = own.register("hf:somebody/tiny")
    assert name == "hf.somebody.tiny"
    assert own.source(own_target.parse("hf:somebody/tiny")) == kept / "snapshots" / "abc"
    transformers = importlib.import_module("transformers")
    configuration = transformers.AutoConfig.from_pretrained(kept / "snapshots" / "abc")
    assert configuration.vocab_size == 50


def test_an_image_transformer_gets_images(transformers: Any, tmp_path: Path) -> None:
    """Of the size and channels that its configuration says."""
    kept = {key: value for key, value in TINY.items() if key not in ("vocab_size", "max_position_embeddings")}
    configuration = transformers.ViTConfig(**kept, image_size=16, patch_size=8, num_channels=3)
    transformers.ViTForImageClassification(configuration).save_pretrained(tmp_path)
    assert failed(bench_cases.of_target(f"hf:{tmp_path}", "infer", 4)) == set()
    [images] = own_build.inputs(own_target.parse(f"hf:{tmp_path}"), 2)
    assert images.shape == (2, 3, 16, 16)


def test_missing_weights_are_one_sentence(bert: Path) -> None:
    """No file at all."""
    for path in bert.glob("*.safetensors"):
        path.unlink()
    refused(f"hf:{bert}", "its weights are not here, and nothing is downloaded: ")


def test_weights_that_lack_a_part_are_refused(transformers: Any, tmp_path: Path) -> None:
    """A classifier whose head was never saved would be measured on random numbers."""
    transformers.BertModel(transformers.BertConfig(**TINY)).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "architectures": ["BertForSequenceClassification"]}))
    refused(f"hf:{tmp_path}", "its weights lack classifier.bias, classifier.weight, which would be random")


def test_an_encoder_with_a_decoder_is_refused(transformers: Any, tmp_path: Path) -> None:
    """It needs a second text."""
    transformers.T5Config(d_model=8, d_ff=8, num_layers=1, num_heads=2, vocab_size=20).save_pretrained(tmp_path)
    refused(f"hf:{tmp_path}", "it is an encoder with a decoder")


def test_a_timm_network_is_measured_out_of_its_folder(tmp_path: Path) -> None:
    """Its configuration and weights, as timm itself saves them for the hub."""
    timm = pytest.importorskip("timm")
    hub = importlib.import_module("timm.models._hub")
    hub.save_for_hf(timm.create_model("test_resnet", pretrained=False), tmp_path)
    workbench = bench_cases.of_target(f"timm:{tmp_path}", "infer_jit", 4)
    assert failed(workbench) == set()


def test_a_timm_network_without_weights_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A name that timm has and this machine has not, and one that nobody has."""
    pytest.importorskip("timm")
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    refused("timm:resnet18.a1_in1k", "its weights are not here, and nothing is downloaded: ")
    refused("timm:nonesuch", "timm:nonesuch: ")


def test_workers_download_nothing_whatever_the_shell_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that the hubs look at."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    environment = process.environment_of(None, {"TRANSFORMERS_OFFLINE": "0"})
    assert (environment["HF_HUB_OFFLINE"], environment["TRANSFORMERS_OFFLINE"]) == ("1", "1")
