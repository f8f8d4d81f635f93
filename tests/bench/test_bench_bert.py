"""BERT is the network that it is called after."""

from typing import Any

import pytest

from ipexperf.bench import registry

torch = pytest.importorskip("torch")

from ipexperf.zoo.models import _bert

SMALL = _bert.Shape(layers=2, width=16, heads=4)
TOKENS = [[101, 7592, 2088, 102, 0, 0], [101, 3958, 27227, 2001, 1037, 102]]
MASK = [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
PUBLISHED = {"bert_base": 109_482_240, "bert_large": 335_141_888, "distilbert": 66_362_880, "minilm": 22_713_216}
"""How many parameters the published encoders have."""


def inputs() -> tuple[Any, Any]:
    return torch.tensor(TOKENS), torch.tensor(MASK)


def small(shape: Any = SMALL) -> Any:
    torch.manual_seed(0)
    return _bert.Bert(shape).eval()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_is_as_large_as_its_original(name: str) -> None:
    """All its parameters but those that make it a classifier: DistilBERT is published without a pooler."""
    with torch.device("meta"):
        network = registry.models.get(name).build()
    count = sum(value.numel() for value in network.parameters())
    width = network.classifier.in_features
    pooler = {"distilbert": width * (width + 1), "minilm": -width * (width + 1)}.get(name, 0)
    assert count - 2 * (width + 1) - pooler == PUBLISHED[name]


def theirs(layer: Any) -> Any:
    """PyTorch's own encoder layer with the weights of ours."""
    own = torch.nn.TransformerEncoderLayer(16, 4, 64, 0.0, "gelu", _bert.EPSILON, batch_first=True).eval().double()
    attention, parts = layer.attention, (layer.attention.query, layer.attention.key, layer.attention.value)
    own.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([part.weight for part in parts]),
            "self_attn.in_proj_bias": torch.cat([part.bias for part in parts]),
            **{f"self_attn.out_proj.{name}": value for name, value in attention.out.state_dict().items()},
            **{f"linear1.{name}": value for name, value in layer.up.state_dict().items()},
            **{f"linear2.{name}": value for name, value in layer.down.state_dict().items()},
            **{f"norm1.{name}": value for name, value in layer.norm.state_dict().items()},
            **{f"norm2.{name}": value for name, value in layer.last_norm.state_dict().items()},
        }
    )
    return own


def test_a_layer_is_pytorchs_own_encoder_layer() -> None:
    """With the same weights and the same mask it says the same, of every token that is one."""
    network = small().double()
    for value in network.parameters():
        torch.nn.init.normal_(value, std=0.5)
    hidden, mask = torch.randn(2, 6, 16, dtype=torch.float64), torch.tensor(MASK)
    added = (1.0 - mask[:, None, None, :].double()) * _bert.MASKED
    outputs = network.layers[0](hidden, added)
    # With gradients: without, PyTorch takes another way, which sets to zero what is masked.
    expected = theirs(network.layers[0])(hidden, src_key_padding_mask=mask == 0)
    assert torch.allclose(outputs[mask == 1], expected[mask == 1], atol=1e-12)
    assert not torch.allclose(outputs, network.layers[1](hidden, added))


def test_what_is_filled_up_changes_nothing() -> None:
    """Another number behind the text's end is not seen; the same number without the mask is."""
    network, (tokens, mask) = small(), inputs()
    other = tokens.clone()
    other[0, 5] = 999
    known = network(tokens, mask)
    assert torch.equal(network(other, mask), known)
    assert not torch.equal(network(other, torch.ones_like(mask))[0], network(tokens, torch.ones_like(mask))[0])
    assert not torch.equal(network(tokens, torch.ones_like(mask))[0], known[0])
