"""The transformers of `zeroproof train` in PyTorch, and the runs that --tensors has written down.

Modules are named so that a parameter's name here is its name there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from safetensors import safe_open
from torch import Tensor, nn

# Of the weights that a model computes with, by precision.
WEIGHTS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Shape:
    """The sizes of a model, and what is fixed in those of its family."""

    family: str  # gpt2 or llama
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    sequence: int
    dropout: float = 0
    norm_epsilon: float = 1e-5
    rotary_base: float = 10000
    gelu: str = "tanh"  # as torch calls the approximation; "none" is the exact one

    def __post_init__(self) -> None:
        if self.dropout != 0:
            raise ValueError(f"a dropout of {self.dropout}: masks drawn here would be others")

    @property
    def is_gpt2(self) -> bool:
        return self.family == "gpt2"

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


def norm(shape: Shape) -> nn.Module:
    kind = nn.LayerNorm if shape.is_gpt2 else nn.RMSNorm
    return kind(shape.hidden, eps=shape.norm_epsilon)


class Embedding(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(shape.vocabulary, shape.hidden))
        self.positions = (
            nn.Parameter(torch.empty(shape.sequence, shape.hidden)) if shape.is_gpt2 else None
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = F.embedding(tokens, self.tokens)
        return x if self.positions is None else x + self.positions


class Attention(nn.Module):
    """Rows of the fused weight: all queries by head, then all keys, then all values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        columns = (shape.heads + 2 * shape.kv_heads) * shape.head_size
        self.qkv = nn.Linear(shape.hidden, columns, bias=shape.is_gpt2)
        self.out = nn.Linear(shape.heads * shape.head_size, shape.hidden, bias=shape.is_gpt2)

    def forward(self, x: Tensor) -> Tensor:
        shape = self.shape
        by_head = self.qkv(x).unflatten(-1, (-1, shape.head_size)).transpose(1, 2)
        q, k, v = torch.split(by_head, [shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        if not shape.is_gpt2:
            q, k = rotated(q, shape.rotary_base), rotated(k, shape.rotary_base)
        if shape.kv_heads != shape.heads:
            group = shape.heads // shape.kv_heads
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        result: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return result


def rotated(x: Tensor, base: float) -> Tensor:
    """Turns the pairs (j, j + half) of each position; computed in fp32 at least."""
    half = x.shape[-1] // 2
    wide = torch.promote_types(x.dtype, torch.float32)
    frequencies = base ** -(torch.arange(half, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequencies)
    cosine, sine = angles.cos().to(wide), angles.sin().to(wide)
    first, second = x.to(wide).chunk(2, dim=-1)
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    return torch.cat(turned, dim=-1).to(x.dtype)


class FeedForward(nn.Module):
    """Rows of the first weight of a Llama: the gate, then what it multiplies."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        inner = shape.feed_forward if shape.is_gpt2 else 2 * shape.feed_forward
        self.up = nn.Linear(shape.hidden, inner, bias=shape.is_gpt2)
        self.down = nn.Linear(shape.feed_forward, shape.hidden, bias=shape.is_gpt2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        if self.shape.is_gpt2:
            x = F.gelu(x, approximate=self.shape.gelu)
        else:
            gate, up = x.chunk(2, dim=-1)
            x = F.silu(gate) * up
        result: Tensor = self.down(x)
        return result


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1 = norm(shape)
        self.attention = Attention(shape)
        self.norm2 = norm(shape)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        result: Tensor = x + self.feed_forward(self.norm2(x))
        return result


class Head(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = norm(shape)
        self.tokens = (
            None if shape.is_gpt2 else nn.Parameter(torch.empty(shape.vocabulary, shape.hidden))
        )

    def forward(self, x: Tensor, targets: Tensor, tied: Tensor) -> Tensor:
        """The mean negative log likelihood, of logits in fp32 at least."""
        logits = F.linear(self.norm(x), tied if self.tokens is None else self.tokens)
        wide = torch.promote_types(logits.dtype, torch.float32)
        return F.cross_entropy(logits.to(wide).flatten(0, 1), targets.flatten())


class Transformer(nn.Module):
    """Called with tokens and the token after each, both [samples, sequence]: the loss."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = Embedding(shape)
        self.block = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.head = Head(shape)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.block:
            x = block(x)
        loss: Tensor = self.head(x, targets, self.embedding.tokens)
        return loss


@dataclass(frozen=True)
class Training:
    """How a run was trained. Numbers that are fp32 in the program are those here, exactly."""

    stage: int
    ranks: int
    precision: str
    steps: int
    samples: int
    micro_steps: int
    learning_rate: float
    warm_up_steps: int
    beta1: float
    beta2: float
    epsilon: float
    weight_decay_of_matrices: float
    clip_norm: float

    def rate_of(self, step: int) -> float:
        """The learning rate of a step, from 1: it grows in proportion, and stays. In fp32."""
        if self.warm_up_steps == 0:
            return self.learning_rate
        product = np.float32(self.learning_rate) * np.float32(min(step, self.warm_up_steps))
        return float(product / np.float32(self.warm_up_steps))

    def clip_coefficient(self, gradient_norm: float) -> float:
        if self.clip_norm == 0 or gradient_norm == 0:
            return 1.0
        return min(1.0, self.clip_norm / gradient_norm)


class Recording:
    """What `zeroproof train --tensors FILE` has written. Steps count from 1."""

    def __init__(self, file: Path) -> None:
        with safe_open(file, framework="pt") as opened:
            notes: dict[str, str] = opened.metadata()
            names: list[str] = opened.keys()
            self._tensors: dict[str, Tensor] = {n: opened.get_tensor(n) for n in names}
        model: dict[str, Any] = json.loads(notes["model"])
        self.shape = Shape(**model)
        self.training = Training(**json.loads(notes["training"]))
        prefix = "weight."
        self.names = [name[len(prefix) :] for name in self._tensors if name.startswith(prefix)]

    def is_matrix(self, name: str) -> bool:
        return min(self._tensors[f"weight.{name}"].shape) > 1

    def weight(self, name: str) -> Tensor:
        """Before the first step; a vector if it is no matrix, as the others."""
        return self._of("weight", name)

    def gradient(self, step: int, name: str) -> Tensor:
        return self._of(f"gradient.{step}", name)

    def after(self, step: int, name: str) -> Tensor:
        return self._of(f"after.{step}", name)

    def master(self, step: int, name: str) -> Tensor:
        kind = "after" if self.training.precision == "fp32" else "master"
        return self._of(f"{kind}.{step}", name)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Tokens and targets of a step, of all ranks: [samples, sequence]."""
        tokens, targets = self._tensors["tokens"], self._tensors["targets"]
        return tokens[step - 1].long(), targets[step - 1].long()

    def loss(self, step: int) -> float:
        return float(self._tensors["loss"][step - 1])

    def norm(self, step: int) -> float:
        return float(self._tensors["norm"][step - 1])

    def _of(self, kind: str, name: str) -> Tensor:
        tensor = self._tensors[f"{kind}.{name}"]
        return tensor if self.is_matrix(name) else tensor.flatten()


def adamw(recording: Recording, masters: dict[str, nn.Parameter]) -> torch.optim.AdamW:
    """Over the weights by name, set up as the recording was trained: matrices alone decay."""
    training = recording.training
    matrices = [weight for name, weight in masters.items() if recording.is_matrix(name)]
    others = [weight for name, weight in masters.items() if not recording.is_matrix(name)]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": training.weight_decay_of_matrices},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=training.learning_rate,
        betas=(training.beta1, training.beta2),
        eps=training.epsilon,
    )


@dataclass(frozen=True)
class StepTaken:
    loss: float
    norm: float  # of the gradient before clipping
    gradients: dict[str, Tensor]  # before clipping
    clip_coefficient: float


class Run:
    """Trains again what a recording was trained with, from its weights, on its batches.

    The model computes in `compute`, with weights that are rounded to those of the recording's
    precision; masters and moments are of the type `master`. A batch is taken in `order`, and in as
    many parts as there are `ranks`, whose gradients are averaged.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        compute: torch.dtype,
        master: torch.dtype = torch.float32,
        shape: Shape | None = None,
        order: Sequence[int] | None = None,
        ranks: int = 1,
    ) -> None:
        self._recording = recording
        self._rounded = WEIGHTS[recording.training.precision]
        self._order = order
        self._ranks = ranks
        self.model = Transformer(shape or recording.shape).to(compute)
        self.masters = {
            name: nn.Parameter(recording.weight(name).to(master, copy=True))
            for name in recording.names
        }
        self._optimizer = adamw(recording, self.masters)

    def step(self, number: int) -> StepTaken:
        weights = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, master in self.masters.items():
                weights[name].copy_(master.to(self._rounded) if self._is_mixed else master)
        loss = self._backward(number)
        gradients: dict[str, Tensor] = {}
        for name, master in self.masters.items():
            gradient = weights[name].grad
            assert gradient is not None, name
            gradients[name] = gradient.to(master.dtype)
        norm = sum(float(g.double().square().sum()) for g in gradients.values()) ** 0.5
        clip = self._recording.training.clip_coefficient(norm)
        self.apply(number, {name: clip * gradient for name, gradient in gradients.items()})
        return StepTaken(loss, norm, gradients, clip)

    def apply(self, number: int, clipped: dict[str, Tensor]) -> None:
        """The step of the optimizer alone, with a gradient that is given."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._recording.training.rate_of(number)
        for name, master in self.masters.items():
            master.grad = clipped[name].to(master.dtype)
        self._optimizer.step()

    @property
    def _is_mixed(self) -> bool:
        return self._rounded != torch.float32

    def _backward(self, number: int) -> float:
        tokens, targets = self._recording.batch(number)
        if self._order is not None:
            tokens, targets = tokens[list(self._order)], targets[list(self._order)]
        self.model.zero_grad()
        loss = 0.0
        for part in zip(tokens.chunk(self._ranks), targets.chunk(self._ranks)):
            of_part: Tensor = self.model(*part) / self._ranks
            of_part.backward()  # type: ignore[no-untyped-call]
            loss += of_part.item()
        return loss


def parts(shape: Shape, name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """What a fused weight or bias is made of, so that each is judged for itself; others whole."""
    sizes: dict[str, int] = {}
    if ".qkv." in name:
        keys = shape.kv_heads * shape.head_size
        sizes = {"q": shape.heads * shape.head_size, "k": keys, "v": keys}
    elif ".up." in name and not shape.is_gpt2:
        sizes = {"gate": shape.feed_forward, "up": shape.feed_forward}
    if not sizes:
        yield name, tensor
        return
    for part, rows in zip(sizes, torch.split(tensor, list(sizes.values()))):
        yield f"{name} ({part})", rows
