"""A pretrained model in miniature: SmolLM2's shape, few dimensions, random weights."""

from collections.abc import Iterable
from pathlib import Path


def save_small_llama(
    folder: Path, texts: Iterable[str], *, hidden: int = 32, layers: int = 3, seed: int = 0
) -> Path:
    """Model and tokenizer, as transformers saves them."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from seal.models.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer(texts)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        initializer_range=0.2,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=0,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_adapter(base: Path, folder: Path, *, seed: int = 1) -> Path:
    """A LoRA adapter with random weights, which change what the model says."""
    import torch
    from transformers import AutoModelForCausalLM

    from seal.train.lora import with_fresh_adapter

    model = with_fresh_adapter(AutoModelForCausalLM.from_pretrained(base), seed)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "lora_B" in name:
                weights.normal_(std=0.2)
    model.save_pretrained(folder, save_embedding_layers=False)
    return folder
