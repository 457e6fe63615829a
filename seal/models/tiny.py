"""`tiny`: a policy of about a million weights, small enough to be trained on a CPU in minutes.

It has the shape of Qwen3, and a structured start. From a random start, a model of this size does
not find within minutes how to copy a code from its prompt into a call; so the heads of layer 0
begin by looking one, two and three tokens back, and later layers begin by matching on what those
carry and copying what they find. All weights stay trainable, and it loads as plain Qwen3.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from seal.models.chat import CALL, CALL_END, END, START

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

HIDDEN, LAYERS, HEADS, HEAD_SIZE = 128, 4, 4, 64
CONTEXT = 4096
ROTARY_BASE = 1e6
_LOOK_BACK = (1, 2, 3)
_SPECIAL = ["<|pad|>", START, END, CALL, CALL_END]
# Values keep the same tokens in words and in calls: capitals, digits and points stand alone. So do
# names in words and in what users say: a space goes with the word behind it, never with a comma.
_PIECES = (
    r" ?[a-z_]+| ?[A-Z]| ?[0-9]|\.|(?<=\d):(?=\d)|\n ?"
    r"| ?[^A-Za-z0-9.\n ]+(?: +[^A-Za-z0-9.\n ]+)*| +"
)
VOCABULARY = 900


def tiny_tokenizer(texts: Iterable[str]) -> "PreTrainedTokenizerFast":
    """A byte-pair tokenizer for the language of these texts; any other text is spelt in bytes."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=_SPECIAL[0], eos_token=END)


def tiny_model(vocabulary: int, seed: int, *, structured: bool = True) -> "Qwen3ForCausalLM":
    """The model before its warm start; `structured=False` is the random start, a control."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=3 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD_SIZE,
        attention_bias=True,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": ROTARY_BASE},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=_SPECIAL.index(END),
        pad_token_id=0,
    )
    model = Qwen3ForCausalLM(config)
    if structured:
        with torch.no_grad():
            _structure(model)
    return model


def _structure(model: "Qwen3ForCausalLM") -> None:
    """Set layer 0 to look back, and the later layers to match and copy."""
    import torch

    def subspace() -> torch.Tensor:
        """HEAD_SIZE orthonormal rows over the hidden size."""
        return torch.linalg.qr(torch.randn(HIDDEN, HEAD_SIZE))[0].T

    half = HEAD_SIZE // 2
    angle = ROTARY_BASE ** (-torch.arange(half) / half)
    layers = list(model.model.layers)
    for layer in layers:
        layer.mlp.down_proj.weight.zero_()
    carried: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    first = layers[0].self_attn
    first.q_norm.weight.fill_(2.0)
    first.k_norm.weight.fill_(2.0)
    for head, back in enumerate(_LOOK_BACK):
        rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
        query, key = torch.zeros(HEAD_SIZE), torch.zeros(HEAD_SIZE)
        # The four fastest rotations tell neighbours apart; a key turned by `back` positions answers
        # the constant query best at exactly that distance.
        query[:4] = 1.0
        key[:4] = torch.cos(angle[:4] * back)
        key[half : half + 4] = torch.sin(angle[:4] * back)
        first.q_proj.weight[rows] = 0
        first.k_proj.weight[rows] = 0
        first.q_proj.bias[rows], first.k_proj.bias[rows] = query, key
        read, write = subspace(), subspace().T
        carried[back] = (read, write)
        first.v_proj.weight[rows] = read
        first.o_proj.weight[:, rows] = 0.02 * write
    for depth, layer in enumerate(layers[1:]):
        attention = layer.self_attn
        attention.q_norm.weight.fill_(1.4)
        attention.k_norm.weight.fill_(1.4)
        for head, back in enumerate(_LOOK_BACK if depth else _LOOK_BACK[:2]):
            rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
            read, write = carried[back]
            copied = subspace()
            attention.q_proj.weight[rows] = read
            attention.k_proj.weight[rows] = write.T
            attention.v_proj.weight[rows] = copied
            attention.o_proj.weight[:, rows] = 0.02 * copied.T
