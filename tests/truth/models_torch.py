# SPDX-License-Identifier: GPL-3.0-or-later
"""Two decoders whose steps were recorded on GPUs, for the exporter.

Written from what their recorded allocations say, op by op: "basics" and
"kait" differ in the order of einsum's operands, the norm, the rotary embedding,
the mask and the loss, and in which results their functions give a name: those
live until the function returns.  The functions at the end name
what is exported:

    /usr/bin/python3 tools/export_torch.py tests/truth/models_torch.py:basics
"""

import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocabulary, width))

    def forward(self, ids):
        return self.weight[ids]


# ---- basics


class BasicsLinear(nn.Module):
    """x comes first: the product is contiguous."""

    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outside, inside))

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class BasicsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x.to(torch.float32)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * scale
        return self.weight * x


def angles(positions, width):
    half = torch.arange(0, width, 2) / width
    return torch.outer(torch.arange(positions), 10000.0 ** -half)


class BasicsRotary(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        table = angles(positions, width)
        self.register_buffer("table", torch.stack((table.cos(), table.sin())))

    def forward(self, x):
        pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        even, odd = pairs.permute(4, 0, 1, 2, 3).unbind(0)
        cos, sin = self.table[:, : x.shape[-2]].unbind(0)
        first = cos * even - sin * odd
        second = sin * even + cos * odd
        both = torch.cat((first.unsqueeze(-1), second.unsqueeze(-1)), -1)
        return both.reshape(x.shape)


def basics_softmax(x):
    shifted = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(shifted)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def basics_product(q, k, v, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    shares = basics_softmax(scores)
    return torch.einsum("...qk,...kd->...qd", shares, v)


class BasicsAttention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.heads = heads
        self.q = BasicsLinear(width, width)
        self.k = BasicsLinear(width, width)
        self.v = BasicsLinear(width, width)
        self.out = BasicsLinear(width, width)
        self.rotary = rotary

    def split(self, x):
        x = x.reshape(x.shape[0], x.shape[1], self.heads, -1)
        return x.permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self.split(q), self.split(k), self.split(v)
        q = self.rotary(q)
        k = self.rotary(k)
        at = torch.arange(x.shape[1], device=x.device)
        mask = at[None, None, :, None] >= at[None, None, None, :]
        y = basics_product(q, k, v, mask)
        y = y.permute(0, 2, 1, 3).reshape(x.shape)
        return self.out(y)


def silu(x):
    return x * torch.sigmoid(x)


class BasicsFeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = BasicsLinear(width, inner)
        self.w2 = BasicsLinear(inner, width)
        self.w3 = BasicsLinear(width, inner)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))


class BasicsBlock(nn.Module):
    def __init__(self, norm, attention, feed_forward):
        super().__init__()
        self.norm1, self.attention = norm(), attention
        self.norm2, self.feed_forward = norm(), feed_forward

    def forward(self, x):
        attended = self.attention(self.norm1(x))
        middle = x + attended
        fed = self.feed_forward(self.norm2(middle))
        return middle + fed


class Decoder(nn.Module):
    def __init__(self, embedding, blocks, norm, head):
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = norm, head

    def forward(self, ids):
        embedded = self.embedding(ids)
        x = embedded
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


def basics_model(layers, width, heads, inner, vocabulary, positions):
    rotary = BasicsRotary(positions, width // heads)
    blocks = [
        BasicsBlock(lambda: BasicsNorm(width),
              BasicsAttention(width, heads, rotary),
              BasicsFeedForward(width, inner))
        for _ in range(layers)
    ]
    return Decoder(Embedding(vocabulary, width), blocks, BasicsNorm(width),
                   BasicsLinear(width, vocabulary))


def log_softmax(x):
    largest = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - largest
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


def basics_loss(logits, target):
    negated = -log_softmax(logits)
    return torch.gather(negated, -1, target.unsqueeze(-1)).mean()


# ---- kait


class KaitLinear(nn.Module):
    """W comes first: in memory the product is [outside, rows]."""

    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outside, inside))

    def forward(self, x):
        return torch.einsum("oi,...i->...o", self.weight, x)


class KaitNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.sqrt(length.pow(2) / self.width + 1e-5)
        scaled = x / scale
        y = torch.einsum("d,...d->...d", self.weight, scaled)
        return y.to(x.dtype)


def kait_softmax(x):
    largest = torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(x - largest)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def kait_product(q, k, v, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    mask = mask.expand(scores.shape)
    scores = scores.masked_fill(mask == False, float("-inf"))  # noqa: E712
    shares = kait_softmax(scores)
    return torch.einsum("...qk,...kd->...qd", shares, v)


class KaitRotary(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        table = angles(positions, width)
        self.register_buffer("table", torch.stack((table.cos(), table.sin())))

    def forward(self, x, at):
        cos, sin = self.table[0][at], self.table[1][at]
        pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        out = torch.zeros_like(pairs)
        out[..., 0] = pairs[..., 0] * cos - pairs[..., 1] * sin
        out[..., 1] = pairs[..., 0] * sin + pairs[..., 1] * cos
        return out.reshape(x.shape)


class KaitAttention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.heads = heads
        self.q = KaitLinear(width, width)
        self.k = KaitLinear(width, width)
        self.v = KaitLinear(width, width)
        self.out = KaitLinear(width, width)
        self.rotary = rotary

    def split(self, x):
        x = x.reshape(x.shape[0], x.shape[1], self.heads, -1)
        return x.permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        heads = self.split(q), self.split(k), self.split(v)
        size = x.shape[1]
        at = torch.arange(size, device=x.device).expand(x.shape[0], 1, size)
        turned_q = self.rotary(heads[0], at)
        turned_k = self.rotary(heads[1], at)
        above = torch.ones(size, size, device=x.device)
        above = torch.triu(above, 1)
        above = above.bool()
        above = ~above
        y = kait_product(turned_q, turned_k, heads[2], above)
        y = y.permute(0, 2, 1, 3).reshape(x.shape)
        return self.out(y)


class KaitFeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = KaitLinear(width, inner)
        self.w2 = KaitLinear(inner, width)
        self.w3 = KaitLinear(width, inner)

    def forward(self, x):
        gate, up = self.w1(x), self.w3(x)
        return self.w2(gate * torch.sigmoid(gate) * up)


class KaitBlock(BasicsBlock):
    def forward(self, x):
        y = self.norm1(x)
        y = self.attention(y)
        x = x + y
        y = self.norm2(x)
        y = self.feed_forward(y)
        return x + y


def kait_model(layers, width, heads, inner, vocabulary, positions):
    blocks = [
        KaitBlock(lambda: KaitNorm(width),
              KaitAttention(width, heads,
                            KaitRotary(positions, width // heads)),
              KaitFeedForward(width, inner))
        for _ in range(layers)
    ]
    return Decoder(Embedding(vocabulary, width), blocks, KaitNorm(width),
                   KaitLinear(width, vocabulary))


def kait_loss(logits, target):
    logits = logits.reshape(-1, logits.shape[-1])
    target = target.reshape(-1)
    largest = logits.max(dim=-1, keepdim=True)[0]
    shifted = logits - largest
    total = torch.exp(shifted).sum(-1)
    rows = torch.arange(target.shape[0], device=target.device)
    picked = shifted[rows, target]
    losses = torch.log(total) - picked
    return losses.mean()


# ---- attention by itself


class Attention(nn.Module):
    """Queries, keys and values are what is trained."""

    def __init__(self, batch, tokens, width):
        super().__init__()
        for name in "qkv":
            tensor = torch.zeros(batch, tokens, width)
            setattr(self, name, nn.Parameter(tensor))

    def forward(self, ids):
        scores = torch.einsum("bqd,bkd->bqk", self.q, self.k)
        scores = scores / math.sqrt(self.q.shape[-1])
        shares = kait_softmax(scores)
        return torch.einsum("bqk,bkd->bqd", shares, self.v)


def attention_step(batch, tokens, width):
    model = Attention(batch, tokens, width)
    ids = torch.zeros(batch, 0, dtype=torch.int64, device="meta")
    return model.to("meta"), ids, lambda out: out.sum()


# ---- a frozen convolutional network and the image that is trained


class Convolutions(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.image = nn.Parameter(torch.zeros(1, 30, size, size))
        self.register_buffer("original", torch.zeros(1, 30, size, size))
        widths = (30, 16, 32, 64)
        pairs = list(zip(widths, widths[1:]))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding="same") for a, b in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b in pairs)
        widths = (64, 200, 100, 20)
        self.linears = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.last = nn.Linear(20, 1)
        self.dropout = nn.Dropout(0.2)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name == "image")

    def forward(self, _ids):
        x = self.image
        for convolution, norm in zip(self.convolutions, self.norms):
            x = norm(torch.relu(convolution(x)))
            x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.max_pool2d(x, x.shape[2:])
        x = torch.flatten(x, 1)
        for linear in self.linears:
            x = torch.relu(linear(self.dropout(x)))
        return self.last(x)


def convolutions_step(size):
    model = Convolutions(size)

    def loss(out, target):
        image = (model.image - model.original).pow(2).mean()
        return image - (out - target).pow(2)

    ids = torch.zeros(1, 0, dtype=torch.int64, device="meta")
    target = torch.zeros(1, 1, device="meta")
    return model.to("meta"), ids, loss, target


# ---- what is exported


def basics_step(layers, width, heads, inner, vocabulary, tokens):
    """Sizes are what counts: tensors without data take no memory."""
    model = basics_model(layers, width, heads, inner, vocabulary, tokens)
    ids = torch.zeros(4, tokens, dtype=torch.int64, device="meta")
    return model.to("meta"), ids, basics_loss, ids.clone()


def kait_step(layers, width, heads, inner, vocabulary, tokens):
    """What it predicts is its input."""
    model = kait_model(layers, width, heads, inner, vocabulary, tokens)
    ids = torch.zeros(4, tokens, dtype=torch.int64, device="meta")
    return model.to("meta"), ids, kait_loss, ids


def basics():
    return basics_step(2, 1024, 16, 4096, 10000, 128)


def basics_24():
    return basics_step(24, 1024, 16, 4096, 10000, 128)


def kait():
    return kait_step(2, 2560, 32, 10240, 10000, 128)
