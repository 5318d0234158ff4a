# SPDX-License-Identifier: GPL-3.0-or-later
"""Small language models with the ops of Hugging Face's modelling code.

Written from knowledge of transformers' eager implementations, op by op, not
copied: what is cast, what has a name and lives until its function returns,
what a module's fields say.  Sizes come from the keys of a config.json.  The
causal mask, cosines, sines and ALiBi's distances are buffers here, as memsim
has them; transformers makes them anew in each forward.

CASES: name -> (configuration, batch, sequence).
"""

import json

import torch
from torch import nn
from torch.nn import functional as F

FLOAT = torch.float32


class Cfg(dict):
    __getattr__ = dict.get


# ---- norms


class RmsNorm(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.code = code

    def forward(self, x):
        return getattr(self, self.code)(x)

    def llama(self, x):
        dtype = x.dtype
        x = x.to(FLOAT)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype)

    def olmo2(self, x):
        dtype = x.dtype
        x = x.to(FLOAT)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return (self.weight * x).to(dtype)

    @staticmethod
    def scaled(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def gemma(self, x):
        y = self.scaled(x.float())
        y = y * (1.0 + self.weight.float())
        return y.type_as(x)

    def t5(self, x):
        variance = x.to(FLOAT).pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        if self.weight.dtype in (torch.float16, torch.bfloat16):
            x = x.to(self.weight.dtype)
        return self.weight * x


def gelu_new(x):
    inner = 0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))
    return 0.5 * x * (1.0 + torch.tanh(inner))


ACTIVATIONS = {
    "silu": F.silu,
    "gelu": F.gelu,
    "relu": F.relu,
    "gelu_new": gelu_new,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


# ---- rotary


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2:]
    return torch.cat((-x2, x1), dim=-1)


def rotate(q, k, cos, sin):
    cos, sin = cos[None, None], sin[None, None]
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


def rotate_some(q, k, cos, sin):
    """The first channels of each head (GPT-NeoX)."""
    dim = cos.shape[-1]
    q_rot, q_pass = q[..., :dim], q[..., dim:]
    k_rot, k_pass = k[..., :dim], k[..., dim:]
    q_embed, k_embed = rotate(q_rot, k_rot, cos, sin)
    q_embed = torch.cat([q_embed, q_pass], dim=-1)
    k_embed = torch.cat([k_embed, k_pass], dim=-1)
    return q_embed, k_embed


def repeat_kv(x, n):
    batch, heads, length, dim = x.shape
    if n == 1:
        return x
    x = x[:, :, None, :, :].expand(batch, heads, n, length, dim)
    return x.reshape(batch, heads * n, length, dim)


# ---- attention


def eager(q, k, v, mask, cfg, sinks=None):
    n = q.shape[1] // k.shape[1]
    k, v = repeat_kv(k, n), repeat_kv(v, n)
    weights = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    if cfg.attn_logit_softcapping is not None:
        weights = weights / cfg.attn_logit_softcapping
        weights = torch.tanh(weights)
        weights = weights * cfg.attn_logit_softcapping
    weights = weights + mask
    if sinks is not None:
        return with_sinks(weights, sinks, q, v)
    weights = F.softmax(weights, dim=-1, dtype=FLOAT).to(q.dtype)
    weights = F.dropout(weights, p=cfg.attention_dropout or 0.0)
    out = torch.matmul(weights, v)
    return out.transpose(1, 2).contiguous()


def with_sinks(weights, sinks, q, v):
    sinks = sinks.reshape(1, -1, 1, 1)
    sinks = sinks.expand(q.shape[0], -1, q.shape[-2], -1)
    both = torch.cat([weights, sinks], dim=-1)
    both = both - both.max(dim=-1, keepdim=True).values
    probs = F.softmax(both, dim=-1, dtype=both.dtype)
    scores = probs[..., :-1]
    weights = F.dropout(scores, p=0.0)
    out = torch.matmul(weights, v)
    return out.transpose(1, 2).contiguous()


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.dim = cfg.head_dim or cfg.hidden_size // cfg.heads
        bias = bool(cfg.attention_bias)
        qkv = cfg.qkv_bias if cfg.qkv_bias is not None else bias
        out = cfg.out_bias if cfg.out_bias is not None else bias
        wide = cfg.hidden_size
        self.q = nn.Linear(wide, cfg.heads * self.dim, bias=qkv)
        self.k = nn.Linear(wide, cfg.kv * self.dim, bias=qkv)
        self.v = nn.Linear(wide, cfg.kv * self.dim, bias=qkv)
        self.o = nn.Linear(cfg.heads * self.dim, wide, bias=out)
        if cfg.qk_norm == "head":
            self.q_norm = RmsNorm(self.dim, cfg.norm)
            self.k_norm = RmsNorm(self.dim, cfg.norm)
        elif cfg.qk_norm == "width":
            self.q_norm = RmsNorm(cfg.heads * self.dim, cfg.norm)
            self.k_norm = RmsNorm(cfg.kv * self.dim, cfg.norm)
        if cfg.sinks:
            self.sinks = nn.Parameter(torch.zeros(cfg.heads))

    def project(self, x):
        shape = (*x.shape[:-1], -1, self.dim)
        if self.cfg.qk_norm == "head":
            q = self.q_norm(self.q(x).view(shape)).transpose(1, 2)
            k = self.k_norm(self.k(x).view(shape)).transpose(1, 2)
            return q, k, self.v(x).view(shape).transpose(1, 2)
        if self.cfg.qk_norm == "width":
            q, k = self.q_norm(self.q(x)), self.k_norm(self.k(x))
            v = self.v(x)
            return [t.view(shape).transpose(1, 2) for t in (q, k, v)]
        q = self.q(x).view(shape).transpose(1, 2)
        k = self.k(x).view(shape).transpose(1, 2)
        v = self.v(x).view(shape).transpose(1, 2)
        return q, k, v

    def forward(self, x, tables):
        cos, sin, mask = tables
        q, k, v = self.project(x)
        if self.cfg.sinks:
            q = rotate_halves(q, cos, sin)
            k = rotate_halves(k, cos, sin)
        else:
            q, k = rotate(q, k, cos, sin)
        out = eager(q, k, v, mask, self.cfg, getattr(self, "sinks", None))
        out = out.reshape(*x.shape[:-1], -1).contiguous()
        return self.o(out)


# ---- the rest of a decoder's block


class Mlp(nn.Module):
    def __init__(self, cfg, inner):
        super().__init__()
        bias = bool(cfg.mlp_bias)
        self.gate = nn.Linear(cfg.hidden_size, inner, bias=bias)
        self.up = nn.Linear(cfg.hidden_size, inner, bias=bias)
        self.down = nn.Linear(inner, cfg.hidden_size, bias=bias)
        self.act = ACTIVATIONS[cfg.act]

    def forward(self, x):
        return self.down(self.act(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Mixtral's loop over experts; each token's choice is fixed, so that the
    experts have as many rows each."""

    def __init__(self, cfg):
        super().__init__()
        self.n, self.k = cfg.num_local_experts, cfg.num_experts_per_tok
        self.gate = nn.Linear(cfg.hidden_size, self.n, bias=False)
        self.experts = nn.ModuleList(
            Expert(cfg, cfg.intermediate_size) for _ in range(self.n))

    def forward(self, states):
        shape = states.shape
        states = states.view(-1, shape[-1])
        logits = self.gate(states)
        weights = F.softmax(logits, dim=1, dtype=torch.float)
        weights, selected = torch.topk(weights, self.k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        weights = weights.to(states.dtype)
        final = torch.zeros_like(states)
        mask = F.one_hot(selected, num_classes=self.n).permute(2, 1, 0)
        for index in range(self.n):
            expert = self.experts[index]
            idx, top_x = torch.where(mask[index])
            current = states[None, top_x].reshape(-1, shape[-1])
            out = expert(current) * weights[top_x, idx, None]
            final.index_add_(0, top_x, out.to(states.dtype))
        return final.reshape(shape)


class Expert(nn.Module):
    def __init__(self, cfg, inner):
        super().__init__()
        self.w1 = nn.Linear(cfg.hidden_size, inner, bias=False)
        self.w2 = nn.Linear(inner, cfg.hidden_size, bias=False)
        self.w3 = nn.Linear(cfg.hidden_size, inner, bias=False)

    def forward(self, states):
        current = F.silu(self.w1(states)) * self.w3(states)
        current = self.w2(current)
        return current


class OssExperts(nn.Module):
    """One tensor holds all experts' weights; gate and way up are clamped."""

    def __init__(self, cfg):
        super().__init__()
        self.n, self.k = cfg.num_local_experts, cfg.num_experts_per_tok
        wide, inner = cfg.hidden_size, cfg.intermediate_size
        self.gate = nn.Linear(wide, self.n)
        self.up = nn.Parameter(torch.zeros(self.n, wide, 2 * inner))
        self.up_bias = nn.Parameter(torch.zeros(self.n, 2 * inner))
        self.down = nn.Parameter(torch.zeros(self.n, inner, wide))
        self.down_bias = nn.Parameter(torch.zeros(self.n, wide))

    def route(self, states):
        logits = F.linear(states, self.gate.weight, self.gate.bias)
        top, indices = torch.topk(logits, self.k, dim=-1)
        top = F.softmax(top, dim=1, dtype=top.dtype)
        return torch.zeros_like(logits).scatter_(1, indices, top), indices

    def forward(self, x):
        states = x.reshape(-1, x.shape[-1])
        weights, indices = self.route(states)
        out = self.experts(x, weights, indices)
        return out

    def experts(self, x, weights, indices):
        states = x.reshape(-1, x.shape[-1])
        total = torch.zeros_like(states)
        with torch.no_grad():
            mask = F.one_hot(indices, num_classes=self.n).permute(2, 1, 0)
        for e in range(self.n):
            with torch.no_grad():
                _, token = torch.where(mask[e])
            current = states[token]
            both = current @ self.up[e] + self.up_bias[e]
            gate, up = both[..., ::2], both[..., 1::2]
            gate = gate.clamp(min=None, max=7.0)
            up = up.clamp(min=-7.0, max=7.0)
            glu = gate * torch.sigmoid(gate * 1.702)
            gated = (up + 1) * glu
            out = gated @ self.down[e] + self.down_bias[e]
            weighted = out * weights[token, e, None]
            total.index_add_(0, token, weighted.to(states.dtype))
        return total.view(x.shape)


def rotate_halves(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    turned_first = first * cos - second * sin
    turned_second = second * cos + first * sin
    return torch.cat((turned_first, turned_second), dim=-1)


class LatentAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg, wide, heads = cfg, cfg.hidden_size, cfg.heads
        self.plain, self.turn = cfg.qk_nope_head_dim, cfg.qk_rope_head_dim
        self.value, self.rank = cfg.v_head_dim, cfg.kv_lora_rank
        self.q_a = nn.Linear(wide, cfg.q_lora_rank, bias=False)
        self.q_norm = RmsNorm(cfg.q_lora_rank, "llama")
        self.q_b = nn.Linear(cfg.q_lora_rank,
                             heads * (self.plain + self.turn), bias=False)
        self.kv_a = nn.Linear(wide, self.rank + self.turn, bias=False)
        self.kv_norm = RmsNorm(self.rank, "llama")
        self.kv_b = nn.Linear(self.rank, heads * (self.plain + self.value),
                              bias=False)
        self.o = nn.Linear(heads * self.value, wide, bias=False)

    def queries(self, x):
        b, s, _ = x.shape
        q = self.q_b(self.q_norm(self.q_a(x)))
        q = q.view(b, s, -1, self.plain + self.turn).transpose(1, 2)
        return torch.split(q, [self.plain, self.turn], dim=-1)

    def keys(self, x):
        b, s, _ = x.shape
        both = self.kv_a(x)
        k, k_rot = torch.split(both, [self.rank, self.turn], dim=-1)
        k = self.kv_b(self.kv_norm(k))
        k = k.view(b, s, -1, self.plain + self.value).transpose(1, 2)
        k, v = torch.split(k, [self.plain, self.value], dim=-1)
        return k, k_rot.view(b, 1, s, self.turn), v

    def forward(self, x, tables):
        cos, sin, mask = tables
        q, q_rot = self.queries(x)
        k, k_rot, v = self.keys(x)
        q_rot, k_rot = rotate_pairs(q_rot, k_rot, cos, sin)
        k_rot = k_rot.expand(*k.shape[:-1], -1)
        query = torch.cat((q, q_rot), dim=-1)
        key = torch.cat((k, k_rot), dim=-1)
        out = eager(query, key, v, mask, self.cfg)
        out = out.reshape(*x.shape[:-1], -1).contiguous()
        return self.o(out)


def in_pairs(x):
    b, h, s, d = x.shape
    return x.view(b, h, s, d // 2, 2).transpose(4, 3).reshape(b, h, s, d)


def rotate_pairs(q, k, cos, sin):
    q = in_pairs(q)
    k = in_pairs(k)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


class DeepseekExperts(nn.Module):
    """Sigmoid scores in fp32, a bias that only chooses, a shared expert."""

    def __init__(self, cfg):
        super().__init__()
        self.n, self.k = cfg.n_routed_experts, cfg.num_experts_per_tok
        inner = cfg.moe_intermediate_size
        self.gate = nn.Linear(cfg.hidden_size, self.n, bias=False)
        self.register_buffer("bias", torch.zeros(self.n))
        self.experts = nn.ModuleList(Mlp(cfg, inner) for _ in range(self.n))
        self.shared = Mlp(cfg, inner * cfg.n_shared_experts)

    def route(self, states):
        states = states.view(-1, states.shape[-1])
        logits = F.linear(states.type(FLOAT), self.gate.weight.type(FLOAT))
        scores = logits.sigmoid()
        with torch.no_grad():
            indices = torch.topk(scores + self.bias, self.k, dim=-1)[1]
        weights = scores.gather(1, indices)
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        weights = weights * 2.5
        return indices, weights

    def run(self, states, indices, weights):
        total = torch.zeros_like(states, dtype=weights.dtype)
        mask = F.one_hot(indices, num_classes=self.n)
        mask = mask.permute(2, 0, 1)
        for index in range(self.n):
            expert = self.experts[index]
            token, which = torch.where(mask[index])
            expert_weights = weights[token, which]
            chosen = states[token]
            out = expert(chosen)
            weighted = out * expert_weights.unsqueeze(-1)
            total.index_add_(0, token, weighted)
        return total.type(states.dtype)

    def forward(self, states):
        residuals = states
        shape = states.shape
        indices, weights = self.route(states)
        states = states.view(-1, shape[-1])
        states = self.run(states, indices, weights).view(*shape)
        return states + self.shared(residuals)


class Block(nn.Module):
    """norms: before, after, or both."""

    def __init__(self, cfg):
        super().__init__()
        self.attention = (LatentAttention(cfg) if cfg.kv_lora_rank
                          else Attention(cfg))
        self.mlp = (OssExperts(cfg) if cfg.sinks
                    else Experts(cfg) if cfg.num_local_experts
                    else DeepseekExperts(cfg) if cfg.n_routed_experts
                    else Mlp(cfg, cfg.intermediate_size))
        self.cfg = cfg
        n = 4 if cfg.norms == "both" else 2
        self.norms = nn.ModuleList(
            RmsNorm(cfg.hidden_size, cfg.norm) for _ in range(n))

    def forward(self, x, tables):
        return getattr(self, self.cfg.norms or "before")(x, tables)

    def before(self, x, tables):
        residual = x
        x = self.norms[0](x)
        x = self.attention(x, tables)
        x = residual + x
        residual = x
        x = self.norms[1](x)
        x = self.mlp(x)
        return residual + x

    def after(self, x, tables):
        residual = x
        x = self.attention(x, tables)
        x = self.norms[0](x)
        x = residual + x
        residual = x
        x = self.mlp(x)
        x = self.norms[1](x)
        return residual + x

    def both(self, x, tables):
        residual = x
        x = self.norms[0](x)
        x = self.attention(x, tables)
        x = self.norms[1](x)
        x = residual + x
        residual = x
        x = self.norms[2](x)
        x = self.mlp(x)
        x = self.norms[3](x)
        return residual + x


class Decoder(nn.Module):
    def __init__(self, cfg, sequence, block=Block):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab_size, cfg.hidden_size)
        self.blocks = nn.ModuleList(
            block(cfg) for _ in range(cfg.num_hidden_layers))
        self.norm = self.last_norm()
        if cfg.alibi and not cfg.barely:
            self.first_norm = self.last_norm()
        self.head = nn.Linear(cfg.hidden_size, cfg.vocab_size, bias=False)
        dim = cfg.turning or cfg.head_dim or cfg.hidden_size // cfg.heads
        if not cfg.alibi:
            self.register_buffer("cos", torch.zeros(sequence, dim))
            self.register_buffer("sin", torch.zeros(sequence, dim))
        self.register_buffer("mask", torch.zeros(1, 1, sequence, sequence))
        if cfg.slides:
            self.register_buffer("sliding", self.mask.clone())
        if cfg.alibi:
            self.register_buffer("alibi", torch.zeros(cfg.heads, sequence))

    def last_norm(self):
        if self.cfg.barely:
            return BarelyNorm(self.cfg.hidden_size)
        if self.cfg.norm == "layer":
            return nn.LayerNorm(self.cfg.hidden_size)
        return RmsNorm(self.cfg.hidden_size, self.cfg.norm)

    def forward(self, ids):
        x = self.embed(ids)
        if self.cfg.scale:
            x = x * self.cfg.scale
        if hasattr(self, "first_norm"):
            x = self.first_norm(x)
        tables = ((self.alibi, self.mask) if self.cfg.alibi
                  else (self.cos, self.sin, self.mask))
        for i, block in enumerate(self.blocks):
            slides = self.cfg.slides and i % 2 == 0
            x = block(x, (*tables[:-1], self.sliding) if slides else tables)
        x = self.norm(x)
        logits = self.head(x)
        if self.cfg.final_logit_softcapping is not None:
            logits = logits / self.cfg.final_logit_softcapping
            logits = torch.tanh(logits)
            logits = logits * self.cfg.final_logit_softcapping
        return logits


def causal_loss(logits, labels):
    """ForCausalLMLoss: the labels are moved, not the logits."""
    logits = logits.float()
    labels = F.pad(labels, (0, 1), value=-100)
    labels = labels[..., 1:].contiguous()
    logits = logits.view(-1, logits.shape[-1])
    labels = labels.view(-1)
    return F.cross_entropy(logits, labels, ignore_index=-100)


# ---- with layer norms


class NeoxBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        wide = cfg.hidden_size
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.qkv = nn.Linear(wide, 3 * wide)
        self.dense = nn.Linear(wide, wide)
        self.up = nn.Linear(wide, cfg.intermediate_size)
        self.down = nn.Linear(cfg.intermediate_size, wide)

    def attend(self, x, tables):
        cos, sin, mask = tables
        dim = self.cfg.hidden_size // self.cfg.heads
        qkv = self.qkv(x).view((*x.shape[:-1], -1, 3 * dim)).transpose(1, 2)
        q, k, v = qkv.chunk(3, dim=-1)
        q, k = rotate_some(q, k, cos, sin)
        out = eager(q, k, v, mask, self.cfg)
        out = out.reshape(*x.shape[:-1], -1).contiguous()
        return self.dense(out)

    def feed(self, x):
        x = self.up(x)
        x = F.gelu(x)
        return self.down(x)

    def forward(self, x, tables):
        attended = self.attend(self.norm1(x), tables)
        attended = F.dropout(attended, 0.0)
        fed = self.feed(self.norm2(x))
        fed = F.dropout(fed, 0.0)
        return fed + attended + x


class BloomBlock(NeoxBlock):
    def attend(self, x, tables):
        alibi, mask = tables
        b, s, _ = x.shape
        h, d = self.cfg.heads, self.cfg.hidden_size // self.cfg.heads
        fused = self.qkv(x).view(b, s, h, 3, d)
        q = fused[..., 0, :].transpose(1, 2)
        k = fused[..., 1, :].transpose(1, 2)
        v = fused[..., 2, :].transpose(1, 2)
        q = q.reshape(b * h, -1, d)
        k = k.reshape(b * h, -1, d).transpose(-1, -2)
        v = v.reshape(b * h, -1, d)
        bias = alibi[:, None].expand(h, 1, s)
        bias = bias[None].expand(b, h, 1, s).reshape(b * h, 1, s)
        scores = bias.baddbmm(batch1=q, batch2=k, beta=1.0, alpha=d ** -0.5)
        weights = scores.view(b, h, s, -1)
        weights = weights + mask
        probs = F.softmax(weights, dim=-1, dtype=FLOAT).to(q.dtype)
        probs = F.dropout(probs, 0.0)
        probs = probs.view(b * h, s, -1)
        out = torch.bmm(probs, v)
        out = out.view(b, h, s, d).permute(0, 2, 1, 3).reshape(b, s, h * d)
        return self.dense(out)

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))

    def forward(self, x, tables):
        attended = self.attend(self.norm1(x), tables)
        x = x + attended
        return x + self.feed(self.norm2(x))


def split_heads(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def join_heads(x):
    x = x.transpose(1, 2).contiguous()
    return x.reshape(x.shape[0], x.shape[1], -1)


class MptBlock(NeoxBlock):
    """No bias anywhere; its own loop over nothing but matmuls."""

    def __init__(self, cfg):
        super().__init__(cfg)
        wide = cfg.hidden_size
        self.norm1 = BarelyNorm(wide)
        self.norm2 = BarelyNorm(wide)
        self.qkv = nn.Linear(wide, 3 * wide, bias=False)
        self.dense = nn.Linear(wide, wide, bias=False)
        self.up = nn.Linear(wide, cfg.intermediate_size, bias=False)
        self.down = nn.Linear(cfg.intermediate_size, wide, bias=False)

    def attend(self, x, tables):
        alibi, mask = tables
        heads = self.cfg.heads
        q, k, v = self.qkv(x).chunk(3, dim=2)
        q = q.reshape(*x.shape[:2], heads, -1).transpose(1, 2)
        k = k.reshape(*x.shape[:2], heads, -1).transpose(1, 2)
        v = v.reshape(*x.shape[:2], heads, -1).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-1, -2)) * 0.25
        scores = scores + alibi[None, :, None]
        scores = scores.masked_fill(mask, torch.finfo(q.dtype).min)
        weights = F.softmax(scores.float(), dim=-1).to(v.dtype)
        weights = F.dropout(weights, 0.0)
        states = torch.matmul(weights, v)
        states = states.permute(0, 2, 1, 3).contiguous()
        states = states.view(*x.shape[:2], -1)
        return self.dense(states)

    def feed(self, x):
        x = F.gelu(self.up(x))
        return self.down(x)

    def forward(self, x, tables):
        normed = self.norm1(x)
        residual = x
        attended = self.attend(normed, tables)
        x = attended + residual
        normed = self.norm2(x)
        residual = x
        return self.feed(normed) + residual


class BarelyNorm(nn.Module):
    """A layer norm without its bias."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight)


class FalconBlock(NeoxBlock):
    """One norm; attention and MLP side by side, keys and values of one
    head."""

    def __init__(self, cfg):
        super().__init__(cfg)
        wide = cfg.hidden_size
        dim = wide // cfg.heads
        self.norm2 = None
        self.qkv = nn.Linear(wide, wide + 2 * dim, bias=False)
        self.dense = nn.Linear(wide, wide, bias=False)
        self.up = nn.Linear(wide, cfg.intermediate_size, bias=False)
        self.down = nn.Linear(cfg.intermediate_size, wide, bias=False)

    def attend(self, x, tables):
        cos, sin, mask = tables
        heads = self.cfg.heads
        b, s, wide = x.shape
        dim = wide // heads
        fused = self.qkv(x).view(b, s, heads + 2, dim)
        q, k, v = fused[..., :-2, :], fused[..., [-2], :], fused[..., [-1], :]
        q = q.transpose(1, 2).reshape(b, heads, s, dim)
        k = k.transpose(1, 2).reshape(b, 1, s, dim)
        v = v.transpose(1, 2).reshape(b, 1, s, dim)
        q, k = rotate(q, k, cos, sin)
        scores = q @ k.transpose(-1, -2)
        scores /= 4.0
        scores = F.softmax(scores + mask, dim=-1, dtype=x.dtype)
        out = scores @ v
        out = out.view(b, heads, s, dim).permute(0, 2, 1, 3)
        return self.dense(out.reshape(b, s, wide))

    def feed(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x, tables):
        normed = self.norm1(x)
        residual = x
        attended = self.attend(normed, tables)
        fed = self.feed(normed)
        fed += attended
        return residual + fed


class Conv1d(nn.Module):
    def __init__(self, outside, inside):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inside, outside))
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, x):
        shape = (*x.shape[:-1], self.weight.shape[1])
        x = torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        return x.view(shape)


class Gpt2Block(nn.Module):
    def __init__(self, cfg, sequence):
        super().__init__()
        wide = cfg.n_embd
        self.heads = cfg.n_head
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.attn, self.proj = Conv1d(3 * wide, wide), Conv1d(wide, wide)
        self.up, self.down = Conv1d(4 * wide, wide), Conv1d(wide, 4 * wide)
        mask = torch.ones(sequence, sequence, dtype=torch.bool).tril()
        self.register_buffer("mask", mask[None, None])

    def weights(self, q, k, v):
        weights = torch.matmul(q, k.transpose(-1, -2))
        weights = weights / torch.full([], v.size(-1) ** 0.5,
                                       dtype=weights.dtype)
        lowest = torch.finfo(weights.dtype).min
        lowest = torch.full([], lowest, dtype=weights.dtype)
        weights = torch.where(self.mask, weights.to(q.dtype), lowest)
        weights = F.softmax(weights, dim=-1)
        weights = weights.type(v.dtype)
        return F.dropout(weights, 0.1)

    def attend(self, x):
        q, k, v = self.attn(x).split(x.shape[-1], dim=2)
        k, v = split_heads(k, self.heads), split_heads(v, self.heads)
        q = split_heads(q, self.heads)
        out = torch.matmul(self.weights(q, k, v), v)
        out = out.transpose(1, 2)
        out = out.reshape(*out.shape[:-2], -1).contiguous()
        return F.dropout(self.proj(out), 0.1)

    def feed(self, x):
        x = self.up(x)
        x = gelu_new(x)
        x = self.down(x)
        return F.dropout(x, 0.1)

    def forward(self, x):
        residual = x
        x = self.norm1(x)
        x = self.attend(x) + residual
        residual = x
        x = self.norm2(x)
        return residual + self.feed(x)


class Gpt2(nn.Module):
    def __init__(self, cfg, sequence):
        super().__init__()
        wide = cfg.n_embd
        self.tokens = nn.Embedding(cfg.vocab_size, wide)
        self.positions = nn.Embedding(sequence, wide)
        self.blocks = nn.ModuleList(
            Gpt2Block(cfg, sequence) for _ in range(cfg.n_layer))
        self.norm = nn.LayerNorm(wide)
        self.head = nn.Linear(wide, cfg.vocab_size, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        at = torch.arange(ids.shape[1])[None]
        x = self.tokens(ids) + self.positions(at)
        x = F.dropout(x, 0.1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class BertBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        wide, inner = cfg.hidden_size, cfg.intermediate_size
        self.heads = cfg.heads
        self.q, self.k = nn.Linear(wide, wide), nn.Linear(wide, wide)
        self.v, self.dense = nn.Linear(wide, wide), nn.Linear(wide, wide)
        self.up, self.down = nn.Linear(wide, inner), nn.Linear(inner, wide)
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)

    def attend(self, x, mask):
        q = split_heads(self.q(x), self.heads)
        k = split_heads(self.k(x), self.heads)
        v = split_heads(self.v(x), self.heads)
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / q.shape[-1] ** 0.5
        scores = scores + mask
        probs = F.softmax(scores, dim=-1)
        probs = F.dropout(probs, 0.1)
        context = torch.matmul(probs, v)
        context = context.permute(0, 2, 1, 3).contiguous()
        return context.view(x.shape)

    def forward(self, x, mask):
        y = F.dropout(self.dense(self.attend(x, mask)), 0.1)
        x = self.norm1(y + x)
        y = self.up(x)
        y = F.gelu(y)
        y = F.dropout(self.down(y), 0.1)
        return self.norm2(y + x)


class Bert(nn.Module):
    def __init__(self, cfg, sequence):
        super().__init__()
        wide = cfg.hidden_size
        self.tokens = nn.Embedding(cfg.vocab_size, wide)
        self.positions = nn.Embedding(cfg.max_position_embeddings, wide)
        self.types = nn.Embedding(2, wide)
        self.norm = nn.LayerNorm(wide)
        self.blocks = nn.ModuleList(
            BertBlock(cfg) for _ in range(cfg.num_hidden_layers))
        self.transform = nn.Linear(wide, wide)
        self.norm2 = nn.LayerNorm(wide)
        self.head = nn.Linear(wide, cfg.vocab_size)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.zeros(2, 1, 1, sequence))
        self.register_buffer("at", torch.arange(sequence)[None])

    def forward(self, ids):
        types = torch.zeros(1, ids.shape[1], dtype=torch.int64)
        x = self.tokens(ids) + self.types(types)
        x += self.positions(self.at)
        x = F.dropout(self.norm(x), 0.1)
        for block in self.blocks:
            x = block(x, self.mask)
        x = self.transform(x)
        x = F.gelu(x)
        return self.head(self.norm2(x))


def words_loss(logits, labels):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class T5Attention(nn.Module):
    """No scale; the bias by distance comes from the stack's first layer."""

    def __init__(self, cfg):
        super().__init__()
        wide, inner = cfg.d_model, cfg.num_heads * cfg.d_kv
        self.heads = cfg.num_heads
        self.q = nn.Linear(wide, inner, bias=False)
        self.k = nn.Linear(wide, inner, bias=False)
        self.v = nn.Linear(wide, inner, bias=False)
        self.o = nn.Linear(inner, wide, bias=False)

    def forward(self, x, bias, memory=None):
        memory = x if memory is None else memory
        q = split_heads(self.q(x), self.heads)
        k = split_heads(self.k(memory), self.heads)
        v = split_heads(self.v(memory), self.heads)
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        weights = F.dropout(weights, 0.1)
        out = torch.matmul(weights, v)
        out = out.transpose(1, 2).contiguous()
        out = out.view(x.shape[0], -1, self.o.in_features)
        return self.o(out)


class T5Block(nn.Module):
    def __init__(self, cfg, crossed):
        super().__init__()
        wide = cfg.d_model
        self.attention, self.norm1 = T5Attention(cfg), RmsNorm(wide, "t5")
        self.crossed = crossed
        if crossed:
            self.cross, self.norm2 = T5Attention(cfg), RmsNorm(wide, "t5")
        self.norm3 = RmsNorm(wide, "t5")
        self.gated = cfg.feed_forward_proj == "gated-gelu"
        if self.gated:
            self.gate = nn.Linear(wide, cfg.d_ff, bias=False)
        self.up = nn.Linear(wide, cfg.d_ff, bias=False)
        self.down = nn.Linear(cfg.d_ff, wide, bias=False)

    def feed(self, x):
        if self.gated:
            gate = gelu_new(self.gate(x))
            up = self.up(x)
            x = gate * up
        else:
            x = self.up(x)
            x = F.relu(x)
        x = F.dropout(x, 0.1)
        return self.down(x)

    def forward(self, x, bias, cross_bias=None, memory=None):
        y = self.attention(self.norm1(x), bias)
        x = x + F.dropout(y, 0.1)
        if self.crossed:
            y = self.cross(self.norm2(x), cross_bias, memory)
            x = x + F.dropout(y, 0.1)
        y = self.feed(self.norm3(x))
        return x + F.dropout(y, 0.1)


class T5Stack(nn.Module):
    def __init__(self, cfg, crossed, tokens):
        super().__init__()
        self.tokens = tokens
        self.relative = nn.Embedding(32, cfg.num_heads)
        self.blocks = nn.ModuleList(
            T5Block(cfg, crossed) for _ in range(cfg.num_layers))
        self.norm = RmsNorm(cfg.d_model, "t5")
        self.heads = cfg.num_heads

    def bias(self, ids):
        n = ids.shape[1]
        buckets = torch.zeros(n, n, dtype=torch.int64)
        values = self.relative(buckets).permute(2, 0, 1).unsqueeze(0)
        mask = torch.zeros(ids.shape[0], 1, n, n, dtype=values.dtype)
        return values + mask

    def zeros(self, ids, dtype):
        n = ids.shape[1]
        values = torch.zeros(1, self.heads, n, n, dtype=dtype)
        return values + torch.zeros(ids.shape[0], 1, n, n, dtype=dtype)

    def forward(self, ids, memory=None):
        bias, cross = self.bias(ids), None
        if memory is not None:
            cross = self.zeros(ids, memory.dtype)
        x = F.dropout(self.tokens(ids), 0.1)
        for block in self.blocks:
            x = block(x, bias, cross, memory)
        return F.dropout(self.norm(x), 0.1)


class T5(nn.Module):
    def __init__(self, cfg, sequence):
        super().__init__()
        self.cfg = cfg
        tokens = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.encoder = T5Stack(cfg, False, tokens)
        self.decoder = T5Stack(cfg, True, tokens)
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size, bias=False)
        if not cfg.gated:
            self.head.weight = tokens.weight

    def forward(self, ids):
        memory = self.encoder(ids)
        x = self.decoder(ids, memory)
        if not self.cfg.gated:
            x = x * (self.cfg.d_model ** -0.5)
        return self.head(x)


# ---- the cases

SMALL = {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 2,
         "num_attention_heads": 8, "intermediate_size": 704,
         "max_position_embeddings": 512}


def keys(model_type, **more):
    return {"model_type": model_type, **SMALL, **more}


CASES = {
    "llama": (keys("llama", num_key_value_heads=2),
              {"norm": "llama", "act": "silu"}),
    "qwen2": (keys("qwen2", num_key_value_heads=2),
              {"norm": "llama", "act": "silu", "qkv_bias": True,
               "out_bias": False}),
    "qwen3": (keys("qwen3", num_key_value_heads=2, head_dim=64),
              {"norm": "llama", "act": "silu", "qk_norm": "head"}),
    "gemma": (keys("gemma", num_key_value_heads=1, head_dim=64,
                   tie_word_embeddings=False),
              {"norm": "gemma", "act": "gelu_pytorch_tanh", "scale": 16.0}),
    "gemma2": (keys("gemma2", num_key_value_heads=4, head_dim=64,
                    tie_word_embeddings=False),
               {"norm": "gemma", "act": "gelu_pytorch_tanh", "scale": 16.0,
                "norms": "both", "slides": True,
                "attn_logit_softcapping": 50.0,
                "final_logit_softcapping": 30.0}),
    "olmo2": (keys("olmo2", num_key_value_heads=8),
              {"norm": "olmo2", "act": "silu", "norms": "after",
               "qk_norm": "width"}),
    "mixtral": (keys("mixtral", num_key_value_heads=2, num_local_experts=4,
                     num_experts_per_tok=2),
                {"norm": "llama", "act": "silu"}),
    "gpt_neox": (keys("gpt_neox", rotary_pct=0.25),
                 {"norm": "layer", "block": NeoxBlock, "turning": 8}),
    "bloom": ({"model_type": "bloom", "vocab_size": 1000, "hidden_size": 256,
               "n_layer": 2, "n_head": 8, "tie_word_embeddings": False},
              {"norm": "layer", "block": BloomBlock, "alibi": True,
               "num_hidden_layers": 2, "num_attention_heads": 8,
               "intermediate_size": 1024}),
}

CASES["mpt"] = (
    {"model_type": "mpt", "vocab_size": 1000, "d_model": 256, "n_layers": 2,
     "n_heads": 8, "max_seq_len": 512, "tie_word_embeddings": False},
    {"norm": "layer", "block": MptBlock, "alibi": True, "bytes": True,
     "barely": True, "hidden_size": 256, "num_hidden_layers": 2,
     "num_attention_heads": 8, "intermediate_size": 1024})
CASES["falcon"] = (
    {"model_type": "falcon", "vocab_size": 1000, "hidden_size": 256,
     "num_hidden_layers": 2, "num_attention_heads": 8,
     "tie_word_embeddings": False, "max_position_embeddings": 512},
    {"norm": "layer", "block": FalconBlock, "intermediate_size": 1024})
CASES["gpt2"] = (
    {"model_type": "gpt2", "vocab_size": 1000, "n_embd": 256, "n_layer": 2,
     "n_head": 8, "n_positions": 64}, {"whole": Gpt2})
CASES["bert"] = ({**keys("bert"), "architectures": ["BertForMaskedLM"]},
                 {"whole": Bert, "loss": words_loss})


CASES["gpt_oss"] = (
    keys("gpt_oss", num_key_value_heads=2, num_local_experts=4,
         num_experts_per_tok=2, head_dim=32),
    {"norm": "olmo2", "act": "silu", "sinks": True, "slides": True,
     "attention_bias": True,
     "turning": 16})
CASES["deepseek_v3"] = (
    keys("deepseek_v3", q_lora_rank=96, kv_lora_rank=64, qk_nope_head_dim=32,
         qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=4,
         n_group=1, topk_group=1,
         num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=0,
         moe_intermediate_size=128, num_key_value_heads=8),
    {"norm": "llama", "act": "silu", "turning": 16})


T5_SMALL = {"model_type": "t5", "vocab_size": 1000, "d_model": 256,
            "d_kv": 32, "d_ff": 704, "num_layers": 2, "num_heads": 8}
CASES["t5"] = (T5_SMALL, {"whole": T5, "loss": words_loss})
CASES["t5-v1.1"] = (
    {**T5_SMALL, "feed_forward_proj": "gated-gelu",
     "tie_word_embeddings": False},
    {"whole": T5, "loss": words_loss, "gated": True})


def build(case, dtype, batch, sequence):
    """model, ids, loss, labels"""
    config, more = CASES[case]
    cfg = Cfg({**config, **more})
    cfg["heads"] = cfg.num_attention_heads
    cfg["kv"] = cfg.num_key_value_heads or cfg.heads
    model = (cfg.whole(cfg, sequence) if cfg.whole
             else Decoder(cfg, sequence, cfg.block or Block)).to(dtype)
    if cfg.bytes:
        model.mask = torch.zeros(sequence, sequence, dtype=torch.bool)
    if cfg.num_local_experts or cfg.n_routed_experts:
        steer(model, cfg)
    ids = torch.arange(batch * sequence).view(batch, sequence)
    loss = cfg.loss or causal_loss
    return model, ids % cfg.vocab_size, loss, (ids + 1) % cfg.vocab_size


def steer(model, cfg):
    """Token t goes to experts t and t + 1: the residual stream is its
    embedding, and the gate reads its first channels."""
    n = cfg.num_local_experts or cfg.n_routed_experts
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.mul_(1e-3)
            if name.endswith("mlp.gate.weight") and p.shape[0] == n:
                p.zero_()
                p[:, :n] = torch.eye(n)
        for t in range(cfg.vocab_size):
            model.embed.weight[t, :n] = 0
            model.embed.weight[t, t % n] = 2
            model.embed.weight[t, (t + 1) % n] = 1


def text(case):
    return json.dumps(CASES[case][0])
