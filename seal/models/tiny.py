"""`tiny`: a policy of about a million weights, small enough to be trained on a CPU in minutes.

It has the shape of Qwen3, and a structured start. From a random start, a model of this size does
not find within minutes how to look up in its prompt what a user named. Here the heads of layer 0
begin by looking one and two tokens back, heads of layer 1 by finding what was said last, and heads
of later layers by matching on what was found and copying what follows there. What is left to learn
is which of the words said last to look for. All weights stay trainable, and it loads as plain
Qwen3.
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
_CARRIED = {1: range(64, 88), 2: range(88, 104)}
"""The dimensions that carry the token so many places back."""
_FOUND = range(104, 128)
"""The dimensions for tokens found elsewhere: apart from the present token, they are matched on."""
_CLOSE, _FAR = range(7, 10), range(11, 14)
"""Rotations by which a head sees about the last 20 tokens, and about the last 100."""
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
    """Set layer 0 to look back, layer 1 to match and to find, the later ones to match on both.

    Heads that match are induction heads (Olsson et al. 2022), one for each distance. Tokens are
    known by the first dimensions alone, so that what is carried or found disturbs no output.
    """
    import torch

    embedding = model.model.embed_tokens.weight
    embedding.normal_(0, _SEEN**-0.5)
    embedding[:, _SEEN:] = 0
    brief = torch.linalg.qr(torch.randn(_SEEN, _SEEN // 2))[0].T * 2**0.5
    layers = list(model.model.layers)
    for layer in layers:
        layer.mlp.down_proj.weight.zero_()
    first, second, *later = [layer.self_attn for layer in layers]
    _look_back(first, brief)
    for attention in (second, *later):
        attention.q_norm.weight.fill_(1.6)
        attention.k_norm.weight.fill_(1.6)
        _match(attention, 0, brief, back=1)
    _match(second, 1, brief, back=2)
    _find(second, 2, brief, _CLOSE)
    _find(second, 3, brief, _FAR)
    for attention, reach in zip(later, (_CLOSE, _FAR), strict=True):
        _match(attention, 1, brief, back=1, found=True)
        _match(attention, 2, brief, back=2, found=True)
        _find(attention, 3, None, reach)


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


def _match(
    attention: "Qwen3Attention", head: int, brief: "torch.Tensor", *, back: int, found: bool = False
) -> None:
    """The head sees where a token stood so many places back, and copies what stands there.

    Which token is the present one, or those that were found: so a code is looked up by a name that
    was said elsewhere.
    """
    import torch

    half = HEAD_SIZE // 2
    rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
    place = _CARRIED[back]
    width = len(place)
    # The slowest rotations: with these alone, a match does not depend on the distance.
    slow = torch.arange(half - width // 2, half)
    slow = torch.cat([slow, slow + half])
    query, key, value = torch.zeros(3, HEAD_SIZE, HIDDEN)
    if found:
        query[slow, list(_FOUND[:width])] = 1.0
    else:
        query[slow, :_SEEN] = brief[:width]
    key[slow, list(place)] = 1.0
    value[:, :_SEEN] = torch.eye(_SEEN)
    attention.q_proj.weight[rows] = query
    attention.k_proj.weight[rows] = key
    attention.v_proj.weight[rows] = value
    # Two places behind the present token there is not what follows in a repeated text.
    attention.o_proj.weight[:, rows] = value.T * (0.05 if back == 2 and not found else 0.15)


def _find(
    attention: "Qwen3Attention", head: int, brief: "torch.Tensor | None", reach: range
) -> None:
    """The head sees what was said last, all of it alike; it will learn what to look for.

    Args:
        attention: The layer's.
        head: Which of its heads.
        brief: What the tokens seen are written in, as found; None: they are copied.
        reach: Rotations that go once round in some multiple of the distance to be seen.
    """
    import torch

    half = HEAD_SIZE // 2
    rows = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
    read, write = torch.zeros(2, HEAD_SIZE, HIDDEN)
    if brief is None:
        read[:, :_SEEN] = write[:, :_SEEN] = torch.eye(_SEEN)
    else:
        width = len(_FOUND)
        read[:width, :_SEEN] = brief[:width]
        write[:width, list(_FOUND)] = torch.eye(width)
    for projection in (attention.q_proj, attention.k_proj):
        projection.bias[rows][:half][list(reach)] = 1.5
        projection.weight[rows] *= 0.3
    attention.v_proj.weight[rows] = read
    attention.o_proj.weight[:, rows] = 0.35 * write.T
