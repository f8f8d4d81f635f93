"""Convert a decoder of ours to the class of `transformers` that computes the same, with the same weights."""

from typing import Any

import torch
import transformers

NAMES = {
    "model.embed_tokens": "tokens",
    "model.layers": "layers",
    "model.norm": "norm",
    "lm_head": "head",
    "input_layernorm": "norm",
    "post_attention_layernorm": "last_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.out",
    "mlp.gate_proj": "gate",
    "mlp.up_proj": "up",
    "mlp.down_proj": "down",
}
"""Names of modules in transformers, and ours."""


def network(decoder: Any) -> Any:
    """Return transformers' network with the configuration of a decoder. It shares the decoder's weights."""
    shape = decoder.shape
    kind = "Qwen2ForCausalLM" if shape.bias else "LlamaForCausalLM"
    network_class = getattr(transformers, kind)
    turns: dict[str, Any] = {"rope_theta": shape.theta}
    if int(transformers.__version__.split(".")[0]) >= 5:
        turns = {"rope_parameters": {"rope_type": "default", **turns}}
    configuration = network_class.config_class(
        architectures=[kind],
        num_hidden_layers=shape.layers,
        hidden_size=shape.width,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        max_position_embeddings=shape.positions,
        rms_norm_eps=shape.epsilon,
        tie_word_embeddings=shape.tied,
        **turns,
    )
    with torch.device("meta"):  # without memory: its own random weights would be thrown away
        converted = network_class(configuration)
    weights = decoder.state_dict()
    converted.load_state_dict({name: weights[renamed(name)] for name in converted.state_dict()}, assign=True)
    converted.tie_weights()  # `assign` made two parameters of one tied tensor
    converted.model.rotary_emb = type(converted.model.rotary_emb)(configuration)  # its buffers are in no state_dict
    return converted.eval()


def renamed(name: str) -> str:
    """Return our name of one of transformers' parameters."""
    for their_name, our_name in NAMES.items():
        name = name.replace(their_name, our_name)
    return name
