"""Which parameters are trained: the last blocks, the input embedding and the output head (the
paper, Phase 1), while the norm after the last block stays frozen; or all, or adapters alone."""

from torch import nn
from transformers import PreTrainedModel

from mamushi.config.sections import Lora, Training
from mamushi.errors import UserError, located


def decoder_blocks(model: PreTrainedModel) -> nn.ModuleList:
    """Return the transformer blocks, first block first: the outermost ``ModuleList`` with as many
    modules as the configuration has hidden layers."""
    blocks = model.config.get_text_config(decoder=True).num_hidden_layers
    lists = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == blocks
    }
    if not lists:
        raise ValueError(f"no list of {blocks} transformer blocks in {type(model).__name__}")
    return lists[min(lists, key=lambda name: name.count("."))]


def last_blocks(model: PreTrainedModel, number: int) -> nn.ModuleList:
    """Return the last ``number`` transformer blocks. Raises ``UserError`` where there are fewer."""
    blocks = decoder_blocks(model)
    if number > len(blocks):
        raise UserError(f"trained_blocks: {number}, but the model has {len(blocks)}")
    return blocks[len(blocks) - number :]


def body(model: PreTrainedModel) -> nn.Module:
    """Return the part of a model that gives hidden states, without the head."""
    inner: nn.Module = model.base_model
    if inner is not model:
        return inner
    # Llama 4 goes by the name that its body has beside a vision model.
    return next((m for m in model.children() if isinstance(m, PreTrainedModel)), inner)


def freeze(model: PreTrainedModel, training: Training) -> None:
    """Let gradients flow only into parameters that ``training.method`` trains. ``full`` trains all,
    ``lora`` adapters, which a model without any is given. ``partial``, the default, trains the last
    ``trained_blocks``, embedding and head; a head tied to the embedding if either is trained."""
    model.requires_grad_(training.method == "full")
    if training.method == "lora":
        add_adapters(model, training.lora)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(is_adapter(name))
    if training.method == "partial":
        last_blocks(model, training.trained_blocks).requires_grad_(True)
        if training.train_input_embedding:
            model.get_input_embeddings().requires_grad_(True)
        if training.train_output_head and (head := model.get_output_embeddings()) is not None:
            head.requires_grad_(True)


def add_adapters(model: PreTrainedModel, lora: Lora) -> None:
    """Put low-rank adapters (Hu et al. 2021, LoRA) into the model, in place, unless it has some; at
    first they change nothing. ``target_modules`` are the names (or their ends) of linear
    modules, None for all but the output head."""
    if any(is_adapter(name) for name, _ in model.named_parameters()):
        return
    with located("pip install 'mamushi-unlearn[lora]'"):
        import peft
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.target_modules or "all-linear",
        bias="none",
        # Only so does peft leave the output head out of all linear modules.
        task_type="CAUSAL_LM",
    )
    with located("training.lora.target_modules"):
        peft.inject_adapter_in_model(config, model)


def is_adapter(name: str) -> bool:
    """Return whether a parameter of this name, of peft's, is one of an adapter."""
    return ".lora_" in f".{name}"


def merge_adapters(model: PreTrainedModel) -> None:
    """Add each adapter to the weight beside it, in fp32, in place, and take it out of the model."""
    for name, module in list(model.named_modules()):
        # What only peft's own layers have.
        if hasattr(module, "lora_A"):
            # Rounded to bf16, W + s B A is mostly W.
            module.get_base_layer().float()
            module.merge()
            model.set_submodule(name, module.get_base_layer())
