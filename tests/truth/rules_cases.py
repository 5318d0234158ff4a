# SPDX-License-Identifier: GPL-3.0-or-later
"""The per-op experiments of rules_torch.py: each is a few lines of PyTorch on
parameters (what wants a gradient) and inputs (what does not)."""

import torch
from torch import nn
from torch.nn import functional as F

BTC = (8, 64, 128)  # batch, positions, channels
IMAGE = (4, 16, 32, 32)
VOLUME = (2, 4, 6, 8, 8)
SIGNAL = (4, 8, 64)


class Experiment(nn.Module):
    """body(*parameters, *inputs), with own parameters if it is a module;
    with copies, of copies: what is saved of them is an op's result."""

    def __init__(self, body, shapes, copies=False):
        super().__init__()
        self.body, self.copies = body, copies
        self.given = nn.ParameterList(
            nn.Parameter(torch.rand(shape)) for shape in shapes)

    def forward(self, *inputs):
        given = self.given
        if self.copies:
            given = [parameter.clone() for parameter in given]
        return self.body(*given, *inputs)


def mask(*shape):
    return torch.arange(torch.Size(shape).numel()).view(shape) % 2 == 0


def numbers(high, *shape):
    return torch.arange(torch.Size(shape).numel()).view(shape) % high


def fanout(x):
    return x.sin() + x.cos() + x.exp()


class SelfAttention(nn.Module):
    def __init__(self, core, weights):
        super().__init__()
        self.core, self.weights = core, weights

    def forward(self, x):
        outputs = self.core(x, x, x, need_weights=self.weights)
        return outputs if self.weights else outputs[0]


class Recurrent(nn.Module):
    """What comes out at every position."""

    def __init__(self, core):
        super().__init__()
        self.core = core

    def forward(self, x):
        return self.core(x)[0]


def perceptron():
    """Modules with one number in front are one block to checkpoint."""
    return nn.Sequential(nn.Sequential(
        nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128)))


def write_slice(x, y):
    z = x.clone()
    z[:, :32] = y
    return z


def write_product(x, y):
    x[:, :32].mul_(y)
    return x.sin()


def write_zeros(x):
    x[2:4].zero_()
    return x.sin()


def write_column(x, y):
    z = x * 2.0
    z[:, 3] = y
    return z.relu()


def causal(q, k, v):
    scores = q @ k.transpose(-2, -1) / 32 ** 0.5
    future = torch.ones(64, 64, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1) @ v


def routing(x, gate, experts):
    """Each token through its two experts; a loop over the experts."""
    weights, chosen = (x @ gate).softmax(-1).topk(2)
    weights = weights / weights.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for expert in range(experts.shape[0]):
        rows, place = torch.where(chosen == expert)
        done = x[rows] @ experts[expert] * weights[rows, place, None]
        y = y.index_add(0, rows, done)
    return y


# name: (body, shapes of its parameters, inputs...)
CASES = {
    # element by element
    "relu": (F.relu, [BTC]),
    "sigmoid": (torch.sigmoid, [BTC]),
    "tanh": (torch.tanh, [BTC]),
    "gelu": (F.gelu, [BTC]),
    "silu": (F.silu, [BTC]),
    "mish": (F.mish, [BTC]),
    "elu": (F.elu, [BTC]),
    "leaky_relu": (F.leaky_relu, [BTC]),
    "softplus": (F.softplus, [BTC]),
    "hardswish": (F.hardswish, [BTC]),
    "hardsigmoid": (F.hardsigmoid, [BTC]),
    "relu6": (F.relu6, [BTC]),
    "selu": (F.selu, [BTC]),
    "celu": (F.celu, [BTC]),
    "logsigmoid": (F.logsigmoid, [BTC]),
    "softsign": (F.softsign, [BTC]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [BTC]),
    "glu": (F.glu, [BTC]),
    "relu_ (in-place)": (lambda x: x.clone().relu_(), [BTC]),
    "relu6_ (in-place)": (lambda x: F.relu6(x.clone(), inplace=True), [BTC]),
    "silu_ (in-place)": (lambda x: F.silu(x.clone(), inplace=True), [BTC]),
    "leaky_relu_ (in-place)": (
        lambda x: F.leaky_relu(x.clone(), inplace=True), [BTC]),
    "prelu": (F.prelu, [IMAGE, (16,)]),
    "add": (torch.add, [BTC, BTC]),
    "add scalar": (lambda x: x + 1.0, [BTC]),
    "add bcast": (torch.add, [BTC, (128,)]),
    "add_ (in-place)": (lambda x, y: x.clone().add_(y), [BTC, BTC]),
    "sub": (torch.sub, [BTC, BTC]),
    "neg": (torch.neg, [BTC]),
    "mul": (torch.mul, [BTC, BTC]),
    "mul self": (lambda x: x * x, [BTC]),
    "mul scalar": (lambda x: x * 2.0, [BTC]),
    "mul bcast": (torch.mul, [BTC, (128,)]),
    "mul const": (torch.mul, [BTC], torch.ones(128)),
    "div": (torch.div, [BTC, BTC]),
    "div scalar": (lambda x: x / 8.0, [BTC]),
    "pow 2": (lambda x: x ** 2, [BTC]),
    "pow 3": (lambda x: x ** 3, [BTC]),
    "sqrt": (torch.sqrt, [BTC]),
    "rsqrt": (torch.rsqrt, [BTC]),
    "exp": (torch.exp, [BTC]),
    "log": (torch.log, [BTC]),
    "abs": (torch.abs, [BTC]),
    "sin": (torch.sin, [BTC]),
    "cos": (torch.cos, [BTC]),
    "reciprocal": (torch.reciprocal, [BTC]),
    "square": (torch.square, [BTC]),
    "clamp": (lambda x: x.clamp(0.25, 0.75), [BTC]),
    "maximum": (torch.maximum, [BTC, BTC]),
    "where": (lambda x, y, m: torch.where(m, x, y), [BTC, BTC], mask(*BTC)),
    "masked_fill": (lambda x, m: x.masked_fill(m, 0.0), [BTC], mask(*BTC)),
    "lerp": (lambda x, y: x.lerp(y, 0.25), [BTC, BTC]),
    "addcmul": (torch.addcmul, [BTC, BTC, BTC]),
    # reductions and norms
    "sum": (torch.sum, [BTC]),
    "sum dim": (lambda x: x.sum(-1), [BTC]),
    "mean": (torch.mean, [BTC]),
    "mean dim": (lambda x: x.mean(-1), [BTC]),
    "max dim": (lambda x: x.max(-1)[0], [BTC]),
    "amax": (lambda x: x.amax(-1), [BTC]),
    "var dim": (lambda x: x.var(-1), [BTC]),
    "norm": (torch.norm, [BTC]),
    "logsumexp": (lambda x: x.logsumexp(-1), [BTC]),
    "cumsum": (lambda x: x.cumsum(-1), [BTC]),
    "softmax": (lambda x: x.softmax(-1), [BTC]),
    "log_softmax": (lambda x: x.log_softmax(-1), [BTC]),
    "layer_norm": (nn.LayerNorm(128), [BTC]),
    "layer_norm no affine": (
        nn.LayerNorm(128, elementwise_affine=False), [BTC]),
    "batch_norm train": (nn.BatchNorm2d(16), [IMAGE]),
    "batch_norm eval": (nn.BatchNorm2d(16).eval(), [IMAGE]),
    "group_norm": (nn.GroupNorm(4, 16), [IMAGE]),
    "instance_norm": (nn.InstanceNorm2d(16, affine=True), [IMAGE]),
    "local_response_norm": (nn.LocalResponseNorm(5), [IMAGE]),
    # noise
    "dropout p=0.1": (nn.Dropout(0.1), [BTC]),
    "dropout p=0.0": (nn.Dropout(0.0), [BTC]),
    "dropout p=1.0": (nn.Dropout(1.0), [BTC]),
    "dropout eval": (nn.Dropout(0.1).eval(), [BTC]),
    "dropout_ (in-place)": (
        lambda x: F.dropout(x.clone(), 0.1, inplace=True), [BTC]),
    "dropout2d": (nn.Dropout2d(0.1), [IMAGE]),
    "alpha_dropout": (nn.AlphaDropout(0.1), [BTC]),
    # products
    "linear 2D": (nn.Linear(128, 256), [(64, 128)]),
    "linear 2D nobias": (nn.Linear(128, 256, bias=False), [(64, 128)]),
    "linear 3D": (nn.Linear(128, 256), [BTC]),
    "linear 3D nobias": (nn.Linear(128, 256, bias=False), [BTC]),
    "linear 3D noncontig in": (
        nn.Sequential(Experiment(lambda x: x.transpose(0, 1), []),
                      nn.Linear(128, 256)), [BTC]),
    "matmul 2D": (torch.matmul, [(64, 128), (128, 32)]),
    "bmm": (torch.bmm, [(8, 64, 32), (8, 32, 64)]),
    "matmul 4D contig": (torch.matmul, [(2, 4, 64, 32), (2, 4, 32, 64)]),
    "matmul q@k^T (B,T,h,d) views": (
        lambda q, k: q.transpose(1, 2) @ k.transpose(1, 2).transpose(2, 3),
        [(2, 64, 4, 32), (2, 64, 4, 32)]),
    "baddbmm": (torch.baddbmm, [(8, 64, 64), (8, 64, 32), (8, 32, 64)]),
    "addmm": (torch.addmm, [(64,), (32, 128), (128, 64)]),
    "einsum bhid,bhjd": (
        lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k),
        [(2, 4, 64, 32), (2, 4, 64, 32)]),
    # convolution and pooling
    "conv2d 3x3": (nn.Conv2d(16, 32, 3, padding=1), [IMAGE]),
    "conv2d 3x3 nobias": (
        nn.Conv2d(16, 32, 3, padding=1, bias=False), [IMAGE]),
    "conv2d 1x1 s2": (nn.Conv2d(16, 32, 1, stride=2, bias=False), [IMAGE]),
    "conv2d depthwise": (
        nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), [IMAGE]),
    "conv_transpose2d": (nn.ConvTranspose2d(16, 8, 2, stride=2), [IMAGE]),
    "conv1d": (nn.Conv1d(64, 32, 3, padding=1), [BTC]),
    "max_pool2d": (nn.MaxPool2d(2), [IMAGE]),
    "avg_pool2d": (nn.AvgPool2d(2), [IMAGE]),
    "adaptive_avg_pool2d 1": (nn.AdaptiveAvgPool2d(1), [IMAGE]),
    "adaptive_avg_pool2d 7": (nn.AdaptiveAvgPool2d(7), [IMAGE]),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d(4), [IMAGE]),
    # look-ups and losses
    "embedding": (nn.Embedding(100, 128), [], numbers(100, 8, 64)),
    "cross_entropy": (F.cross_entropy, [(64, 128)], numbers(128, 64)),
    "cross_entropy seg": (F.cross_entropy, [IMAGE], numbers(16, 4, 32, 32)),
    "cross_entropy label_smoothing": (
        nn.CrossEntropyLoss(label_smoothing=0.1), [(64, 128)],
        numbers(128, 64)),
    "mse_loss": (F.mse_loss, [BTC], torch.ones(BTC)),
    "l1_loss": (F.l1_loss, [BTC], torch.ones(BTC)),
    "smooth_l1": (F.smooth_l1_loss, [BTC], torch.ones(BTC)),
    "bce_with_logits": (
        F.binary_cross_entropy_with_logits, [BTC], torch.ones(BTC)),
    "bce": (F.binary_cross_entropy, [BTC], torch.ones(BTC)),
    "kl_div": (lambda x, p: F.kl_div(x, p, reduction="batchmean"), [BTC],
               torch.ones(BTC)),
    # views and copies
    "view": (lambda x: x.view(512, 128), [BTC]),
    "transpose": (lambda x: x.transpose(1, 2), [BTC]),
    "permute+contiguous": (
        lambda x: x.permute(2, 0, 1).contiguous(), [BTC]),
    "reshape noncontig": (
        lambda x: x.transpose(0, 1).reshape(512, 128), [BTC]),
    "slice": (lambda x: x[:, :32], [BTC]),
    "select": (lambda x: x[:, 0], [BTC]),
    "unsqueeze": (lambda x: x.unsqueeze(1), [BTC]),
    "expand": (lambda x: x[:, :, None].expand(8, 64, 4, 128), [BTC]),
    "expand+reshape": (
        lambda x: x[:, :, None].expand(8, 64, 4, 128).reshape(8, 256, 128),
        [BTC]),
    "cat": (lambda x, y: torch.cat([x, y]), [BTC, BTC]),
    "stack": (lambda x, y: torch.stack([x, y]), [BTC, BTC]),
    "split": (lambda x: x.split(64, -1), [BTC]),
    "chunk 2 use both": (lambda x: x.chunk(2, -1), [BTC]),
    "unbind": (torch.unbind, [BTC]),
    "repeat": (lambda x: x.repeat(2, 1, 1), [BTC]),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, dim=1), [BTC]),
    "pad": (lambda x: F.pad(x, (1, 1)), [BTC]),
    "roll": (lambda x: x.roll(1, 1), [BTC]),
    "flip": (lambda x: x.flip(1), [BTC]),
    "gather": (lambda x, i: x.gather(1, i), [BTC], numbers(64, 8, 4, 128)),
    "index_select": (lambda x, i: x.index_select(1, i), [BTC], numbers(64, 4)),
    "index x[i]": (lambda x, i: x[:, i], [BTC], numbers(64, 4)),
    "tril": (torch.tril, [BTC]),
    "topk": (lambda x: x.topk(4), [BTC]),
    "sort": (lambda x: x.sort(), [BTC]),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=2),
                            [IMAGE]),
    "interpolate bilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [IMAGE]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [IMAGE]),
    "to bf16": (lambda x: x.to(torch.bfloat16), [BTC]),
    "to f64": (lambda x: x.to(torch.float64), [BTC]),
    "clone": (torch.clone, [BTC]),
    "detach+mul": (lambda x: x.detach() * x, [BTC]),
    "contiguous noop": (lambda x: x.contiguous(), [BTC]),
    # modules and fan-out
    "MultiheadAttention d=.1": (
        SelfAttention(nn.MultiheadAttention(128, 4, dropout=0.1,
                                            batch_first=True), False), [BTC]),
    "LSTMCell": (nn.LSTMCell(128, 64), [(64, 128)]),
    "GRUCell": (nn.GRUCell(128, 64), [(64, 128)]),
    "checkpoint(mlp)": (perceptron(), [BTC]),
    "residual x+f(x)": (lambda x: x + F.relu(x * 2.0), [BTC]),
    "fanout 3 uses": (fanout, [BTC]),
}

# The same, measured here with Debian's torch 1.13.
MORE = {
    # element by element
    "hardtanh": (F.hardtanh, [BTC]),
    "threshold": (lambda x: F.threshold(x, 0.5, 0.0), [BTC]),
    "hardshrink": (F.hardshrink, [BTC]),
    "softshrink": (F.softshrink, [BTC]),
    "rrelu": (lambda x: F.rrelu(x, training=True), [BTC]),
    "logit": (lambda x: x.logit(0.01), [BTC]),
    "log1p": (torch.log1p, [BTC]),
    "log2": (torch.log2, [BTC]),
    "exp2": (torch.exp2, [BTC]),
    "expm1": (torch.expm1, [BTC]),
    "erf": (torch.erf, [BTC]),
    "sinh": (torch.sinh, [BTC]),
    "cosh": (torch.cosh, [BTC]),
    "atan": (torch.atan, [BTC]),
    "floor": (torch.floor, [BTC]),
    "ceil": (torch.ceil, [BTC]),
    "round": (torch.round, [BTC]),
    "sign": (torch.sign, [BTC]),
    "trunc": (torch.trunc, [BTC]),
    "frac": (torch.frac, [BTC]),
    "positive": (lambda x: +x, [BTC]),
    "pow tensor": (torch.pow, [BTC, BTC]),
    "pow of a number": (lambda x: 2.0 ** x, [BTC]),
    "pow 1/2": (lambda x: x ** 0.5, [BTC]),
    "rsub": (lambda x: 1.0 - x, [BTC]),
    "rsub tensor": (torch.rsub, [BTC, BTC]),
    "rdiv": (lambda x: 1.0 / x, [BTC]),
    "sub scalar": (lambda x: x - 1.0, [BTC]),
    "sub bcast": (torch.sub, [BTC, (128,)]),
    "div bcast": (torch.div, [BTC, (8, 64, 1)]),
    "div const": (torch.div, [BTC], torch.ones(BTC)),
    "minimum": (torch.minimum, [BTC, BTC]),
    "maximum const": (torch.maximum, [BTC], torch.ones(BTC)),
    "fmax": (torch.fmax, [BTC, BTC]),
    "logaddexp": (torch.logaddexp, [BTC, BTC]),
    "fmod": (lambda x: x.fmod(0.5), [BTC]),
    "fmod tensor": (torch.fmod, [BTC], torch.ones(BTC)),
    "remainder": (lambda x: x % 0.5, [BTC]),
    "div floor": (lambda x: torch.div(x, 0.5, rounding_mode="floor"), [BTC]),
    "clamp_min": (lambda x: x.clamp(min=0.5), [BTC]),
    "clamp_max": (lambda x: x.clamp(max=0.5), [BTC]),
    "clamp tensor": (torch.clamp, [BTC], torch.zeros(BTC), torch.ones(BTC)),
    "nan_to_num": (torch.nan_to_num, [BTC]),
    "xlogy": (torch.xlogy, [BTC, BTC]),
    "addcdiv": (torch.addcdiv, [BTC, BTC, BTC]),
    "lerp tensor": (torch.lerp, [BTC, BTC, BTC]),
    "where const": (
        lambda x, m: torch.where(m, x, 0.0), [BTC], mask(*BTC)),
    "where bcast": (
        lambda x, y, m: torch.where(m, x, y), [BTC, ()], mask(64, 128)),
    "masked_fill bcast": (
        lambda x, m: x.masked_fill(m, 0.0), [BTC], mask(64, 128)),
    "masked_fill tensor": (torch.masked_fill, [BTC], mask(*BTC),
                           torch.zeros(())),
    "prelu 1": (F.prelu, [IMAGE, (1,)]),
    # in place, on a copy
    "mul_": (lambda x, y: x.clone().mul_(y), [BTC, BTC]),
    "mul_ scalar": (lambda x: x.clone().mul_(2.0), [BTC]),
    "mul_ const": (lambda x, y: x.clone().mul_(y), [BTC], torch.ones(BTC)),
    "div_": (lambda x, y: x.clone().div_(y), [BTC, BTC]),
    "div_ scalar": (lambda x: x.clone().div_(2.0), [BTC]),
    "sub_": (lambda x, y: x.clone().sub_(y), [BTC, BTC]),
    "neg_": (lambda x: x.clone().neg_(), [BTC]),
    "exp_": (lambda x: x.clone().exp_(), [BTC]),
    "sqrt_": (lambda x: x.clone().sqrt_(), [BTC]),
    "pow_": (lambda x: x.clone().pow_(2), [BTC]),
    "abs_": (lambda x: x.clone().abs_(), [BTC]),
    "sigmoid_": (lambda x: x.clone().sigmoid_(), [BTC]),
    "tanh_": (lambda x: x.clone().tanh_(), [BTC]),
    "clamp_": (lambda x: x.clone().clamp_(0.25, 0.75), [BTC]),
    "clamp_min_": (lambda x: x.clone().clamp_min_(0.5), [BTC]),
    "elu_": (lambda x: F.elu(x.clone(), inplace=True), [BTC]),
    "selu_": (lambda x: F.selu(x.clone(), inplace=True), [BTC]),
    "celu_": (lambda x: F.celu(x.clone(), inplace=True), [BTC]),
    "mish_": (lambda x: F.mish(x.clone(), inplace=True), [BTC]),
    "hardswish_": (lambda x: F.hardswish(x.clone(), inplace=True), [BTC]),
    "hardsigmoid_": (lambda x: F.hardsigmoid(x.clone(), inplace=True), [BTC]),
    "threshold_": (lambda x: F.threshold_(x.clone(), 0.5, 0.0), [BTC]),
    "addcmul_": (lambda x, y, z: x.clone().addcmul_(y, z), [BTC, BTC, BTC]),
    "lerp_": (lambda x, y: x.clone().lerp_(y, 0.25), [BTC, BTC]),
    "masked_fill_": (lambda x, m: x.clone().masked_fill_(m, 0.0), [BTC],
                     mask(*BTC)),
    "zero_": (lambda x: x.clone().zero_() + x, [BTC]),
    "fill_": (lambda x: x.clone().fill_(1.0) + x, [BTC]),
    "tril_": (lambda x: x.clone().tril_(), [BTC]),
    "copy_": (lambda x, y: x.clone().copy_(y), [BTC, BTC]),
    # reductions
    "sum keepdim": (lambda x: x.sum(1, keepdim=True), [BTC]),
    "sum two dims": (lambda x: x.sum((0, 1)), [BTC]),
    "nansum": (torch.nansum, [BTC]),
    "mean keepdim": (lambda x: x.mean(1, keepdim=True), [BTC]),
    "var": (torch.var, [BTC]),
    "std": (torch.std, [BTC]),
    "std dim": (lambda x: x.std(-1), [BTC]),
    "var_mean": (lambda x: torch.var_mean(x, -1), [BTC]),
    "prod": (torch.prod, [BTC]),
    "prod dim": (lambda x: x.prod(-1), [BTC]),
    "norm dim": (lambda x: x.norm(dim=-1), [BTC]),
    "norm 1": (lambda x: x.norm(1), [BTC]),
    "norm 3": (lambda x: x.norm(3), [BTC]),
    "vector_norm": (torch.linalg.vector_norm, [BTC]),
    "vector_norm dim": (lambda x: torch.linalg.vector_norm(x, dim=-1), [BTC]),
    "normalize": (F.normalize, [BTC]),
    "amin": (lambda x: x.amin(-1), [BTC]),
    "max": (torch.max, [BTC]),
    "min": (torch.min, [BTC]),
    "min dim": (lambda x: x.min(-1)[0], [BTC]),
    "median": (torch.median, [BTC]),
    "median dim": (lambda x: x.median(-1)[0], [BTC]),
    "kthvalue": (lambda x: x.kthvalue(3)[0], [BTC]),
    "mode": (lambda x: x.mode()[0], [BTC]),
    "cummax": (lambda x: x.cummax(1)[0], [BTC]),
    "cumprod": (lambda x: x.cumprod(1), [BTC]),
    "logsumexp keepdim": (lambda x: x.logsumexp(1, keepdim=True), [BTC]),
    "softmin": (lambda x: F.softmin(x, -1), [BTC]),
    # products
    "mv": (torch.mv, [(64, 128), (128,)]),
    "dot": (torch.dot, [(512,), (512,)]),
    "outer": (torch.outer, [(64,), (128,)]),
    "addmv": (torch.addmv, [(64,), (64, 128), (128,)]),
    "addbmm": (torch.addbmm, [(64, 64), (8, 64, 32), (8, 32, 64)]),
    "addr": (torch.addr, [(64, 128), (64,), (128,)]),
    "matmul 3D 2D": (torch.matmul, [BTC, (128, 32)]),
    "matmul 3D 1D": (torch.matmul, [BTC, (128,)]),
    "trace": (torch.trace, [(64, 64)]),
    "cross": (lambda x, y: torch.linalg.cross(x, y), [(64, 3), (64, 3)]),
    # convolution and pooling
    "conv2d groups": (nn.Conv2d(16, 32, 3, groups=4), [IMAGE]),
    "conv3d": (nn.Conv3d(4, 8, 3), [VOLUME]),
    "conv_transpose1d": (nn.ConvTranspose1d(8, 4, 2, stride=2), [SIGNAL]),
    "conv_transpose3d": (nn.ConvTranspose3d(4, 8, 2, stride=2), [VOLUME]),
    "max_pool1d": (nn.MaxPool1d(2), [SIGNAL]),
    "max_pool2d s1 p1": (nn.MaxPool2d(3, 1, 1), [IMAGE]),
    "max_pool3d": (nn.MaxPool3d(2), [VOLUME]),
    "avg_pool3d": (nn.AvgPool3d(2), [VOLUME]),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d(4), [SIGNAL]),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d(2), [VOLUME]),
    "adaptive_max_pool1d": (nn.AdaptiveMaxPool1d(4), [SIGNAL]),
    "adaptive_max_pool3d": (nn.AdaptiveMaxPool3d(2), [VOLUME]),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        [IMAGE]),
    "unfold": (lambda x: F.unfold(x, 3), [IMAGE]),
    "fold": (lambda x: F.fold(x, (8, 8), 2, stride=2), [(2, 16, 16)]),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False),
                    [IMAGE, (4, 8, 8, 2)]),
    "grid_sample 3d": (lambda x, g: F.grid_sample(x, g, align_corners=False),
                       [VOLUME, (2, 4, 4, 4, 3)]),
    "affine_grid": (
        lambda t: F.affine_grid(t, (4, 3, 8, 8), align_corners=False),
        [(4, 2, 3)]),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), [IMAGE]),
    "interpolate size": (lambda x: F.interpolate(x, size=(64, 64)), [IMAGE]),
    "interpolate bicubic": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), [IMAGE]),
    "interpolate nearest-exact": (
        lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
        [IMAGE]),
    "interpolate 1d": (lambda x: F.interpolate(x, scale_factor=2), [SIGNAL]),
    "interpolate linear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="linear"), [SIGNAL]),
    "interpolate 3d": (lambda x: F.interpolate(x, scale_factor=2), [VOLUME]),
    "pad reflect": (lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), [IMAGE]),
    "pad reflect 1d": (lambda x: F.pad(x, (1, 1), "reflect"), [SIGNAL]),
    "pad replicate": (lambda x: F.pad(x, (1, 1, 1, 1), "replicate"), [IMAGE]),
    "pad replicate 3d": (
        lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), "replicate"), [VOLUME]),
    # norms
    "layer_norm two dims": (nn.LayerNorm((64, 128)), [BTC]),
    "batch_norm 1d": (nn.BatchNorm1d(128), [(64, 128)]),
    "batch_norm no affine": (nn.BatchNorm2d(16, affine=False), [IMAGE]),
    "batch_norm no statistics": (
        nn.BatchNorm2d(16, track_running_stats=False), [IMAGE]),
    "group_norm no affine": (nn.GroupNorm(4, 16, affine=False), [IMAGE]),
    "instance_norm no affine": (nn.InstanceNorm2d(16), [IMAGE]),
    "dropout3d": (nn.Dropout3d(0.1), [VOLUME]),
    "feature_alpha_dropout": (nn.FeatureAlphaDropout(0.1), [IMAGE]),
    # look-ups and losses
    "embedding padding": (nn.Embedding(100, 128, padding_idx=0), [],
                          numbers(100, 8, 64)),
    "embedding_bag": (nn.EmbeddingBag(100, 128), [], numbers(100, 8, 64)),
    "cross_entropy weights": (
        lambda x, y, w: F.cross_entropy(x, y, w), [(64, 128)],
        numbers(128, 64), torch.ones(128)),
    "cross_entropy probabilities": (F.cross_entropy, [(64, 128)],
                                    torch.ones(64, 128)),
    "cross_entropy none": (
        lambda x, y: F.cross_entropy(x, y, reduction="none"), [(64, 128)],
        numbers(128, 64)),
    "mse_loss both": (F.mse_loss, [BTC, BTC]),
    "mse_loss none": (lambda x, y: F.mse_loss(x, y, reduction="none"), [BTC],
                      torch.ones(BTC)),
    "l1_loss none": (lambda x, y: F.l1_loss(x, y, reduction="none"), [BTC],
                     torch.ones(BTC)),
    "smooth_l1 none": (lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
                       [BTC], torch.ones(BTC)),
    "huber_loss": (F.huber_loss, [BTC], torch.ones(BTC)),
    "bce none": (
        lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), [BTC],
        torch.ones(BTC)),
    "bce weights": (F.binary_cross_entropy, [BTC], torch.ones(BTC),
                    torch.ones(BTC)),
    "bce_with_logits none": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y,
                                                        reduction="none"),
        [BTC], torch.ones(BTC)),
    "bce_with_logits pos_weight": (
        lambda x, y, w: F.binary_cross_entropy_with_logits(x, y,
                                                           pos_weight=w),
        [BTC], torch.ones(BTC), torch.ones(128)),
    "kl_div log target": (
        lambda x, y: F.kl_div(x, y, log_target=True, reduction="sum"), [BTC],
        torch.ones(BTC)),
    "margin_ranking_loss": (F.margin_ranking_loss, [BTC, BTC],
                            torch.ones(BTC)),
    "multi_margin_loss": (F.multi_margin_loss, [(64, 128)],
                          numbers(128, 64)),
    "poisson_nll_loss": (F.poisson_nll_loss, [BTC], torch.ones(BTC)),
    "ctc_loss": (
        lambda x, t: F.ctc_loss(x, t, (64, 64), (8, 8)), [(64, 2, 16)],
        numbers(15, 2, 8) + 1),
    # views
    "squeeze": (torch.squeeze, [(8, 1, 64)]),
    "squeeze dim": (lambda x: x.squeeze(1), [(8, 1, 64)]),
    "flatten": (lambda x: x.flatten(1), [BTC]),
    "unflatten": (lambda x: x.unflatten(-1, (4, 32)), [BTC]),
    "movedim": (lambda x: x.movedim(0, 2), [BTC]),
    "narrow": (lambda x: x.narrow(1, 0, 32), [BTC]),
    "x[..., 0]": (lambda x: x[..., 0], [BTC]),
    "x[:, ::2]": (lambda x: x[:, ::2], [BTC]),
    "diagonal": (torch.diagonal, [(64, 64, 8)]),
    "diag_embed": (torch.diag_embed, [(64, 64)]),
    "as_strided": (lambda x: x.as_strided((8, 32), (8192, 1)), [BTC]),
    "unfold view": (lambda x: x.unfold(1, 4, 2), [BTC]),
    "expand_as": (lambda x, y: x.expand_as(y), [(8, 64, 1)],
                  torch.ones(BTC)),
    "split use one": (lambda x: x.split(64, -1)[0], [BTC]),
    "split_with_sizes": (lambda x: x.split([32, 96], -1), [BTC]),
    "split_with_sizes use one": (
        lambda x: x.split([32, 96], -1)[0], [BTC]),
    "chunk 8": (lambda x: x.chunk(8, 1), [BTC]),
    "unbind use one": (lambda x: x.unbind()[0], [BTC]),
    "channels_last": (
        lambda x: x.to(memory_format=torch.channels_last), [IMAGE]),
    # copies and choices
    "cat 8": (lambda *x: torch.cat(x, 1), [(8, 4, 128)] * 8),
    "stack 4": (lambda *x: torch.stack(x, 1), [(8, 128)] * 4),
    "tile": (lambda x: x.tile(2), [BTC]),
    "rot90": (torch.rot90, [BTC]),
    "triu": (torch.triu, [BTC]),
    "roll two dims": (lambda x: x.roll((1, 2), (0, 1)), [BTC]),
    "scatter": (lambda x, y, i: x.scatter(1, i, y), [BTC, (8, 4, 128)],
                numbers(64, 8, 4, 128)),
    "scatter value": (lambda x, i: x.scatter(1, i, 0.0), [BTC],
                      numbers(64, 8, 4, 128)),
    "scatter_add": (lambda x, y, i: x.scatter_add(1, i, y),
                    [BTC, (8, 4, 128)], numbers(64, 8, 4, 128)),
    "index_add": (lambda x, y, i: x.index_add(1, i, y), [BTC, (8, 4, 128)],
                  numbers(64, 4)),
    "index_copy": (lambda x, y, i: x.index_copy(1, i, y), [BTC, (8, 4, 128)],
                   numbers(64, 4)),
    "index_fill": (lambda x, i: x.index_fill(1, i, 0.0), [BTC],
                   numbers(64, 4)),
    "index_put": (lambda x, y, i: x.index_put((i,), y), [BTC, (4, 64, 128)],
                  numbers(8, 4)),
    "index_put accumulate": (
        lambda x, y, i: x.index_put((i,), y, accumulate=True),
        [BTC, (4, 64, 128)], numbers(8, 4)),
    "index two": (lambda x, i, j: x[i, j], [BTC], numbers(8, 32),
                  numbers(64, 32)),
    "index by mask": (lambda x, m: x[m], [BTC], mask(8, 64)),
    "masked_select": (torch.masked_select, [BTC], mask(*BTC)),
    "masked_scatter": (torch.masked_scatter, [BTC], mask(*BTC),
                       torch.ones(BTC)),
    "take": (torch.take, [BTC], numbers(8192, 512)),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i, 1), [BTC],
                       numbers(64, 8, 4, 128)),
    "repeat_interleave tensor": (
        lambda x, n: x.repeat_interleave(n, dim=0), [BTC], numbers(2, 8)),
    "sort descending": (lambda x: x.sort(1, descending=True), [BTC]),
    "relu_ on a view": (lambda x: x.view(512, 128).relu_(), [BTC]),
    "silu_ on a flat view": (
        lambda x: F.silu(x.transpose(1, 2).flatten(1), inplace=True), [BTC]),
    "mul_ on a part": (write_product, [BTC, (128,)]),
    "zero_ on a part": (write_zeros, [BTC]),
    "write a slice": (write_slice, [BTC, (8, 32, 128)]),
    "write a column": (write_column, [BTC, (8, 128)]),
    # modules
    "RNNCell": (nn.RNNCell(128, 64), [(64, 128)]),
    "LSTM": (Recurrent(nn.LSTM(32, 16)), [(2, 8, 32)]),
    "GRU": (Recurrent(nn.GRU(32, 16, bidirectional=True)), [(2, 8, 32)]),
    "TransformerEncoderLayer": (
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        [(4, 16, 64)]),
    "MultiheadAttention weights": (
        SelfAttention(nn.MultiheadAttention(64, 4), True), [(16, 4, 64)]),
    "causal attention": (causal, [(2, 4, 64, 32)] * 3),
    "top-2 routing": (routing, [(64, 32), (32, 4), (4, 32, 32)]),
}
