"""`local:NAME_OR_PATH[+ADAPTER]`: what is loaded, and what is said of what cannot be."""

import importlib.util
import json
import os

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
