"""`local:NAME_OR_PATH[+ADAPTER]`: what is loaded, and what is said of what cannot be."""

import importlib.util
import json
import os
import shutil
import warnings

import pytest

from seal.errors import ConfigError
from seal.models.weights import split_name
from tests.models.small import save_adapter, save_small_llama

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and not os.environ.get("CI"),
    reason="needs the train extra (torch, transformers, peft)",
)
loads_models = [pytest.mark.train, needs_torch, pytest.mark.filterwarnings("default")]
TEXTS = ["Book the blue room on Monday.\n"] * 3


def marked(test):
    for mark in loads_models:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    base = save_small_llama(folder / "base", TEXTS)
    save_small_llama(folder / "wide", TEXTS, hidden=48)
    save_small_llama(folder / "deep", TEXTS, layers=4)
    save_small_llama(folder / "shallow", TEXTS, layers=2)
    save_adapter(base, folder / "adapter")
    return folder


def test_a_plus_parts_the_adapter_from_the_model(tmp_path):
    assert split_name("local:smollm2") == ("smollm2", None)
    assert split_name("local:smollm2+a/b") == ("smollm2", "a/b")
    assert split_name("local:smollm2+a+b") == ("smollm2", "a+b")
    (tmp_path / "a+b").mkdir()
    assert split_name(f"local:{tmp_path}/a+b") == (f"{tmp_path}/a+b", None)
    assert split_name(f"local:{tmp_path}/a+b+c") == (f"{tmp_path}/a+b", "c")
    # A folder `a` beside it makes no difference where both halves are folders.
    for name in ("a", "adapter+c"):
        (tmp_path / name).mkdir()
    adapter = f"{tmp_path}/adapter+c"
    assert split_name(f"local:{tmp_path}/a+b+{adapter}") == (f"{tmp_path}/a+b", adapter)


@pytest.mark.parametrize("name", ["local:smollm2+", "local:+a/b", "local:+"])
def test_half_a_name_is_no_name(name):
    with pytest.raises(ConfigError, match=r"nothing stands .* the plus"):
        split_name(name)


@marked
def test_a_merged_adapter_says_what_peft_says(models):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from seal.models.weights import load_weights

    plain = AutoModelForCausalLM.from_pretrained(models / "base").eval()
    ids = torch.randint(5, 50, (2, 9), generator=torch.Generator().manual_seed(0))
    merged, _ = load_weights(str(models / "base"), str(models / "adapter"))
    adapted, _ = load_weights(str(models / "base"), str(models / "adapter"), merge=False)
    with torch.no_grad():
        before = plain(ids).logits
        wanted = PeftModel.from_pretrained(plain, models / "adapter").eval()(ids).logits
        assert torch.allclose(merged(ids).logits, wanted, atol=1e-5)
        assert torch.allclose(adapted(ids).logits, wanted, atol=1e-5)
    assert not torch.allclose(before, wanted, atol=1e-2)
    assert merged.dtype == torch.float32
    assert any(weights.requires_grad for weights in adapted.parameters())


@marked
def test_the_version_changes_with_model_and_adapter(models):
    from seal.models.weights import weights_version

    base, wide, adapter = (str(models / name) for name in ("base", "wide", "adapter"))
    found = [weights_version(base), weights_version(wide), weights_version(base, adapter)]
    assert len(set(found)) == 3
    assert weights_version(base, adapter) == found[2]


@marked
@pytest.mark.parametrize("other", ["wide", "deep", "shallow"])
def test_an_adapter_of_another_model_is_refused_and_its_own_is_named(models, other):
    from seal.models.weights import open_local_policy

    with pytest.raises(ConfigError, match="does not fit this model") as caught:
        open_local_policy(f"local:{models / other}+{models / 'adapter'}")
    assert f"It was made for '{models / 'base'}'" in str(caught.value)


@marked
def test_an_adapter_that_names_another_base_of_the_same_shape_is_taken(models, tmp_path):
    from seal.models.weights import open_local_policy

    twin = save_small_llama(tmp_path / "twin", TEXTS, seed=5)
    assert open_local_policy(f"local:{twin}+{models / 'adapter'}").version


@marked
def test_a_folder_that_holds_no_adapter_is_the_users_to_fix(models, tmp_path):
    from seal.models.weights import open_local_policy

    def said(adapter) -> str:
        with pytest.raises(ConfigError) as caught:
            open_local_policy(f"local:{models / 'base'}+{adapter}")
        return str(caught.value)

    assert f"no folder '{tmp_path / 'nowhere'}'" in said(tmp_path / "nowhere")
    assert "no adapter_config.json" in said(models / "wide")
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "no adapter_model.safetensors" in said(tmp_path)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"torn")
    assert "peft_type None" in said(tmp_path)
    config = json.loads((models / "adapter" / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    assert "does not fit" in said(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{torn")
    assert "adapter_config.json: " in said(tmp_path)


@marked
def test_tiny_alone_has_no_weights_and_the_command_that_makes_them_is_named():
    from seal.models.weights import open_local_policy

    with pytest.raises(ConfigError, match="seal train ENV -m local:tiny"):
        open_local_policy("local:tiny")


@marked
@pytest.mark.parametrize(
    "path", ["./nowhere", "/nowhere/at/all", "~/x", "a b/c", "base/config.json"]
)
def test_what_can_be_no_name_on_the_hub_is_a_folder_that_is_not_there(models, path, monkeypatch):
    from seal.models.weights import open_local_policy

    monkeypatch.chdir(models)
    with pytest.raises(ConfigError, match=f"there is no folder '{path}' here"):
        open_local_policy(f"local:{path}")


def edited(**values):
    """Edits a JSON file of a model's folder."""

    def edit(path):
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return edit


@marked
@pytest.mark.parametrize(
    ("file", "edit", "said"),
    [
        ("config.json", lambda path: path.write_text("null"), ""),
        ("config.json", edited(hidden_size="many"), "hidden_size"),
        ("config.json", edited(num_attention_heads=0), ""),
        ("config.json", edited(hidden_act="none"), "none"),
        ("config.json", edited(num_hidden_layers=4), "its safetensors have no 'model.layers.3"),
        (
            "config.json",
            edited(vocab_size=7),
            r"'model.embed_tokens.weight' is \(\d+, 32\), and \(7,",
        ),
        ("tokenizer_config.json", lambda path: path.write_text("[]"), ""),
        ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:999]), "header"),
        ("model.safetensors", lambda path: path.write_text("garbage" * 9), "header"),
    ],
)
def test_a_broken_folder_is_the_users_to_mend(models, tmp_path, file, edit, said):
    from seal.models.weights import open_local_policy

    shutil.copytree(models / "base", tmp_path / "broken")
    edit(tmp_path / "broken" / file)
    with pytest.raises(ConfigError, match=rf"no model can be loaded from '.*broken' \(.*{said}"):
        open_local_policy(f"local:{tmp_path / 'broken'}")


@marked
@pytest.mark.parametrize("broken", ["base", "adapter"])
def test_what_is_broken_in_the_cache_is_to_be_removed(models, tmp_path, monkeypatch, broken):
    from seal.models.weights import open_local_policy

    monkeypatch.setenv("SEAL_CACHE", str(tmp_path))
    shutil.copytree(models / broken, tmp_path / "starts" / "made")
    for weights in (tmp_path / "starts" / "made").glob("*.safetensors"):
        weights.write_bytes(b"torn")
    name = tmp_path / "starts" / "made"
    with pytest.raises(ConfigError, match="remove the folder, and let the command that made it"):
        open_local_policy(
            f"local:{name}" if broken == "base" else f"local:{models / 'base'}+{name}"
        )


@marked
def test_a_tokenizer_with_more_tokens_than_the_weights_is_refused(models, tmp_path):
    from transformers import AutoModelForCausalLM

    from seal.models.weights import open_local_policy

    shutil.copytree(models / "base", tmp_path / "small")
    model = AutoModelForCausalLM.from_pretrained(models / "base")
    model.resize_token_embeddings(9)
    model.save_pretrained(tmp_path / "small")
    with pytest.raises(ConfigError, match=r"its tokenizer has \d+ tokens, its weights have 9"):
        open_local_policy(f"local:{tmp_path / 'small'}")


@marked
def test_no_code_of_a_model_is_run_and_nobody_is_asked_whether(models, tmp_path, monkeypatch):
    import torch
    from transformers import AutoModelForCausalLM

    from seal.models.weights import open_local_policy

    def ask(*_):
        raise AssertionError("asked")

    monkeypatch.setattr("builtins.input", ask)
    strange, pickled = tmp_path / "strange", tmp_path / "pickled"
    for folder in (strange, pickled):
        shutil.copytree(models / "base", folder)
    (strange / "its.py").write_text("raise SystemExit('ran')")
    edited(model_type="its", auto_map={"AutoConfig": "its.C"})(strange / "config.json")
    with pytest.raises(ConfigError, match="custom code") as caught:
        open_local_policy(f"local:{strange}")
    assert "asked" not in str(caught.value)
    (pickled / "model.safetensors").unlink()
    weights = AutoModelForCausalLM.from_pretrained(models / "base").state_dict()
    torch.save(weights, pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"no file named model\.safetensors"):
        open_local_policy(f"local:{pickled}")


@marked
def test_an_adapter_of_which_only_a_part_would_be_taken_is_refused(models, tmp_path):
    from seal.models.weights import open_local_policy

    shutil.copytree(models / "adapter", tmp_path / "part")
    edited(target_modules=["q_proj"])(tmp_path / "part" / "adapter_config.json")
    with pytest.raises(ConfigError, match=r"no module takes its '.*k_proj|down_proj"):
        open_local_policy(f"local:{models / 'base'}+{tmp_path / 'part'}")


@marked
def test_libraries_that_advise_their_developers_are_not_heard(models):
    from seal.models.weights import open_local_policy

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        open_local_policy(f"local:{models / 'base'}+{models / 'adapter'}")
    assert [str(one.message) for one in heard if one.category is FutureWarning] == []
