"""`tiny`: a policy of about a million weights, small enough to be trained on a CPU in minutes.

It has the shape of Qwen3, and a structured start. From a random start, a model of this size does
not find within minutes how to copy a code from its prompt into a call; so the heads of layer 0
begin by looking one, two and three tokens back, and heads of later layers begin by matching on what
those carry and copying what they find. All weights stay trainable, and it loads as plain Qwen3.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from seal.models.chat import CALL, CALL_END, END, START

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

HIDDEN, LAYERS, HEADS, HEAD_SIZE = 128, 4, 4, 64
CONTEXT = 4096
ROTARY_BASE = 1e6
_SEEN = 64
"""Dimensions of the hidden state in which a token is known at the start."""
_CARRIED = {1: range(64, 96), 2: range(96, 112), 3: range(112, 128)}
"""The dimensions that carry the token so many places back."""
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
    """Set layer 0 to look back, and the later layers to match and copy.

    These are induction heads (Olsson et al. 2022), one for each distance. Tokens are known by the
    first dimensions alone, so that what layer 0 carries disturbs neither a match nor the output.
    """
    import torch

    embedding = model.model.embed_tokens.weight
    embedding.normal_(0, _SEEN**-0.5)
    embedding[:, _SEEN:] = 0
    brief = torch.linalg.qr(torch.randn(_SEEN, _SEEN // 2))[0].T * 2**0.5
    layers = list(model.model.layers)
    for layer in layers:
        layer.mlp.down_proj.weight.zero_()
    _look_back(layers[0].self_attn, brief)
    for depth, layer in enumerate(layers[1:]):
        _match_and_copy(layer.self_attn, brief, _CARRIED if depth else [1, 2])


def _look_back(attention: "Qwen3Attention", brief: "torch.Tensor") -> None:
    """Each head writes the token so many places back, in brief, where that is carried."""
    import torch

    half = HEAD_SIZE // 2
    # The fastest rotations tell neighbours apart; a key turned by `back` positions answers the
    # constant query best at exactly that distance. With fewer, distant places would look alike.
    fast = slice(0, 6)
    angle = ROTARY_BASE ** (-torch.arange(half) / half)
    attention.q_norm.weight.fill_(2.5)
    attention.k_norm.weight.fill_(2.5)
    for head, (back, place) in enumerate(_CARRIED.items()):
        rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
        width = len(place)
        query, key = torch.zeros(half, 2), torch.zeros(half, 2)
        query[fast, 0] = 1.0
        key[fast, 0], key[fast, 1] = torch.cos(angle * back)[fast], torch.sin(angle * back)[fast]
        attention.q_proj.weight[rows] = 0
        attention.k_proj.weight[rows] = 0
        attention.q_proj.bias[rows], attention.k_proj.bias[rows] = query.T.ravel(), key.T.ravel()
        attention.v_proj.weight[rows] = 0
        attention.v_proj.weight[rows][:width, :_SEEN] = brief[:width]
        attention.o_proj.weight[:, rows] = 0
        scale = (len(brief) / width / HIDDEN) ** 0.5
        attention.o_proj.weight[list(place), rows.start : rows.start + width] = scale * torch.eye(
            width
        )


def _match_and_copy(
    attention: "Qwen3Attention", brief: "torch.Tensor", distances: Iterable[int]
) -> None:
    """Each head finds where the present token was so many places back, and copies what is there.

    The other heads copy from wherever they will learn to look: the last one the token there, others
    the one before it. They copy so strongly that later layers match on what was found rather than
    on the present token; so a code can be looked up by a name that was said elsewhere.
    """
    import torch

    half = HEAD_SIZE // 2
    attention.q_norm.weight.fill_(1.6)
    attention.k_norm.weight.fill_(1.6)
    matched = list(distances)
    for head, back in enumerate(matched):
        rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
        place = _CARRIED[back]
        width = len(place)
        # The slowest rotations: with these alone, a match does not depend on the distance.
        slow = torch.arange(half - width // 2, half)
        slow = torch.cat([slow, slow + half])
        query, key, value = torch.zeros(3, HEAD_SIZE, HIDDEN)
        query[slow, :_SEEN] = brief[:width]
        key[slow, list(place)] = 1.0
        value[:, :_SEEN] = torch.eye(_SEEN)
        attention.q_proj.weight[rows] = query
        attention.k_proj.weight[rows] = key
        attention.v_proj.weight[rows] = value
        # Of what stands further on, only a trace: it is not what follows in a repeated text.
        attention.o_proj.weight[:, rows] = value.T * (0.15 if back == 1 else 0.05)
    for head in range(len(matched), HEADS):
        rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
        read, write = torch.zeros(2, HEAD_SIZE, HIDDEN)
        if head < HEADS - 1:
            read[: len(brief), list(_CARRIED[1])] = torch.eye(len(brief))
            write[: len(brief), :_SEEN] = brief
        else:
            read[:, :_SEEN] = write[:, :_SEEN] = torch.eye(_SEEN)
        # Keys that hardly differ: before they learn to look, these heads see everything alike.
        attention.k_proj.bias[rows][half // 2 : half] = 1.5
        attention.v_proj.weight[rows] = read
        attention.o_proj.weight[:, rows] = 0.35 * write.T
