# SPDX-License-Identifier: GPL-3.0-or-later
"""Layer types one by one, as PyTorch 1.13 runs them on a CPU.

    /usr/bin/python3 tests/layers.py          prints tests/truth/layers.tsv

One layer stands between an op that keeps nothing and a loss that does not
either.  saved_bytes: the storages that autograd saved, but for parameters,
buffers and inputs; backward_bytes: what the layer's own nodes allocate in
backward, in order: blocks of 65 bytes or more, what dies inside the op that
made it (library scratch) and AccumulateGrad left out.  Runs of equal sizes
are written once with their number, "3*1024"."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

WORTH_A_LOOK = 65
BATCH, IMAGES = 8, 4
HEADER = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# One layer between an op that keeps nothing and a loss, as PyTorch 1.13 ran
# it on a CPU: what autograd saved and what the layer's own nodes allocated in
# backward, in order.  Written by tests/layers.py, which says what counts;
# tests/layers.sh runs it again.  Batch 8, and 4 of images and volumes.
case\tsample\tlayer\tends\tsaved_bytes\tbackward_bytes"""


class Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


class End(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return torch.ones(ctx.shape)


OUTSIDE = ("StartBackward", "EndBackward", "torch::autograd::AccumulateGrad")


def own_allocations(events):
    """Sizes that backward allocates for the layer, in order."""
    sizes, scopes, top = [], [], None
    node = "autograd::engine::evaluate_function: "
    for event in events:
        kind, name = event.kind(), event.name()
        if kind == "push":
            # The outermost op of a node's formula, or the node itself.
            inside = bool(scopes) and scopes[-1][1]
            scopes.append(([], inside or name.startswith("aten::"), inside))
            if name.startswith(node):
                top = name[len(node):]
        elif kind == "pop":
            made, _, inside = scopes.pop()
            if inside:
                scopes[-1][0].extend(made)
        elif kind == "memory_alloc" and top not in OUTSIDE + (None,):
            n = event.cpu_memory_usage()
            if n > 0:
                sizes.append(n)
                if scopes and scopes[-1][1]:
                    scopes[-1][0].append(len(sizes) - 1)
            elif scopes: # of two alike the older: scratch comes first
                for i in scopes[-1][0]:
                    if sizes[i] == -n:
                        sizes[i] = 0
                        scopes[-1][0].remove(i)
                        break
    return [n for n in sizes if n >= WORTH_A_LOOK]


def traced_backward(loss):
    config = torch.autograd.ProfilerConfig(
        torch.autograd.ProfilerState.CPU, False, True, False, False, False,
        torch.profiler._ExperimentalConfig())
    torch.autograd._enable_profiler_legacy(config)
    loss.backward()
    threads = torch.autograd._disable_profiler_legacy()
    return own_allocations([e for thread in threads for e in thread])


def storages(tensors):
    return {t.storage().data_ptr() for t in tensors}


def saved_bytes(leaves, forward):
    known, saved = storages(leaves), {}

    def pack(tensor):
        storage = tensor.storage()
        if storage.data_ptr() not in known:
            saved[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        forward()
    return sum(n for n, _ in saved.values())


def measure(sample, make):
    torch.manual_seed(0)
    batch = IMAGES if len(sample) >= 3 else BATCH
    leaves = [torch.rand(batch, *sample, requires_grad=True)
              for _ in range(3)]
    run = make()
    targets = getattr(run, "targets", [])
    parameters = [p for m in getattr(run, "modules_", [run])
                  if isinstance(m, nn.Module)
                  for p in list(m.parameters()) + list(m.buffers())]
    ends = []

    def forward():
        inputs = [Start.apply(leaf) for leaf in leaves]
        y = run(*inputs[:run.n] if hasattr(run, "n") else inputs[:1])
        ends.append(y.dim() > 0)
        return End.apply(y) if y.dim() > 0 else y

    kept = saved_bytes(leaves + targets + parameters, forward)
    for tensor in leaves + parameters:
        tensor.grad = None
    return ends[0], kept, traced_backward(forward())


class Of(nn.Module):
    """A function of n inputs; what it reads beside them are inputs too."""

    def __init__(self, n, function, *targets, modules=()):
        super().__init__()
        self.n, self.function, self.targets = n, function, list(targets)
        self.inner = nn.ModuleList(modules)

    def forward(self, *x):
        return self.function(*x, *self.targets)


def unary(function):
    return lambda: Of(1, function)


def joined(n, function):
    return lambda: Of(n, function)


def target(function, *shape, classes=0):
    return lambda: Of(1, function, torch.randint(0, classes, shape) if classes
                      else torch.rand(*shape))


# Layers whose Python code is more than one call.

def softsign(x):
    return F.softsign(x)


def with_parameter(function, *shape):
    def make():
        layer = Of(1, None)
        layer.weight = nn.Parameter(torch.rand(*shape))
        layer.function = lambda x: function(x, layer.weight)
        return layer
    return make


def first(module):
    """A recurrent layer's sequence of outputs."""
    def make():
        inner = module()
        return Of(1, lambda x: inner(x)[0], modules=[inner])
    return make


def assigned(x, z):
    x.narrow(2, 0, 128).copy_(z)
    return x


def tokens(*shape, most):
    return torch.randint(0, most, shape)


def of_tokens(function, *shape, most):
    return lambda: Of(1, function, tokens(*shape, most=most))


ROW, STEPS, IMAGE = [64, 128], [5, 64], [16, 32, 32]
VOLUME, SQUARE, HEADS = [4, 8, 8, 8], [64, 64], [4, 64, 32]

CASES = [
    # (case, sample, layer, torch module)
    ("relu", ROW, '"type": "relu"', nn.ReLU),
    ("sigmoid", ROW, '"type": "sigmoid"', nn.Sigmoid),
    ("tanh", ROW, '"type": "tanh"', nn.Tanh),
    ("gelu", ROW, '"type": "gelu"', nn.GELU),
    ("gelu_tanh", ROW, '"type": "gelu_tanh"',
     lambda: nn.GELU(approximate="tanh")),
    ("silu", ROW, '"type": "silu"', nn.SiLU),
    ("mish", ROW, '"type": "mish"', nn.Mish),
    ("elu", ROW, '"type": "elu"', nn.ELU),
    ("selu", ROW, '"type": "selu"', nn.SELU),
    ("celu", ROW, '"type": "celu"', nn.CELU),
    ("leaky_relu", ROW, '"type": "leaky_relu"', nn.LeakyReLU),
    ("softplus", ROW, '"type": "softplus"', nn.Softplus),
    ("hardswish", ROW, '"type": "hardswish"', nn.Hardswish),
    ("hardsigmoid", ROW, '"type": "hardsigmoid"', nn.Hardsigmoid),
    ("hardtanh", ROW, '"type": "hardtanh"', nn.Hardtanh),
    ("relu6", ROW, '"type": "relu6"', nn.ReLU6),
    ("logsigmoid", ROW, '"type": "logsigmoid"', nn.LogSigmoid),
    ("softsign", ROW, '"type": "softsign"', nn.Softsign),
    ("glu", ROW, '"type": "glu", "dim": 1', nn.GLU),
    ("prelu", ROW, '"type": "prelu"', nn.PReLU),
    ("prelu channels", IMAGE, '"type": "prelu", "parameters": 16',
     lambda: nn.PReLU(16)),
    ("relu_", ROW, '"type": "relu", "inplace": true', lambda: nn.ReLU(True)),
    ("relu6_", ROW, '"type": "relu6", "inplace": true',
     lambda: nn.ReLU6(True)),
    ("silu_", ROW, '"type": "silu", "inplace": true', lambda: nn.SiLU(True)),
    ("leaky_relu_", ROW, '"type": "leaky_relu", "inplace": true',
     lambda: nn.LeakyReLU(inplace=True)),
    ("abs", ROW, '"type": "abs"', unary(torch.abs)),
    ("neg", ROW, '"type": "neg"', unary(torch.neg)),
    ("exp", ROW, '"type": "exp"', unary(torch.exp)),
    ("log", ROW, '"type": "log"', unary(torch.log)),
    ("sqrt", ROW, '"type": "sqrt"', unary(torch.sqrt)),
    ("rsqrt", ROW, '"type": "rsqrt"', unary(torch.rsqrt)),
    ("reciprocal", ROW, '"type": "reciprocal"', unary(torch.reciprocal)),
    ("square", ROW, '"type": "pow"', unary(torch.square)),
    ("pow 3", ROW, '"type": "pow", "exponent": 3', unary(lambda x: x ** 3)),
    ("pow 1.5", ROW, '"type": "pow", "exponent": 1.5',
     unary(lambda x: x ** 1.5)),
    ("sin", ROW, '"type": "sin"', unary(torch.sin)),
    ("cos", ROW, '"type": "cos"', unary(torch.cos)),
    ("clamp", ROW, '"type": "clamp"', unary(lambda x: x.clamp(0, 1))),
    ("add_scalar", ROW, '"type": "add_scalar"', unary(lambda x: x + 2.0)),
    ("mul_scalar", ROW, '"type": "mul_scalar"', unary(lambda x: x * 2.0)),
    ("div_scalar", ROW, '"type": "div_scalar"', unary(lambda x: x / 2.0)),
    ("add", ROW, '"type": "add", "inputs": ["x", "z"]',
     joined(2, lambda x, z: x + z)),
    ("add_", ROW, '"type": "add", "inplace": true, "inputs": ["x", "z"]',
     joined(2, lambda x, z: x.add_(z))),
    ("sub", ROW, '"type": "sub", "inputs": ["x", "z"]',
     joined(2, lambda x, z: x - z)),
    ("mul", ROW, '"type": "mul", "inputs": ["x", "z"]',
     joined(2, lambda x, z: x * z)),
    ("div", ROW, '"type": "div", "inputs": ["x", "z"]',
     joined(2, lambda x, z: x / z)),
    ("maximum", ROW, '"type": "maximum", "inputs": ["x", "z"]',
     joined(2, torch.maximum)),
    ("minimum", ROW, '"type": "minimum", "inputs": ["x", "z"]',
     joined(2, torch.minimum)),
    ("lerp", ROW, '"type": "lerp", "inputs": ["x", "z"]',
     joined(2, lambda x, z: torch.lerp(x, z, 0.5))),
    ("addcmul", ROW, '"type": "addcmul", "inputs": ["x", "z", "w"]',
     joined(3, torch.addcmul)),
    ("swiglu", ROW, '"type": "swiglu", "inputs": ["x", "z"]',
     joined(2, lambda x, z: F.silu(x) * z)),
    ("geglu", ROW, '"type": "geglu", "inputs": ["x", "z"]',
     joined(2, lambda x, z: F.gelu(x) * z)),
    # reductions
    ("sum dim", ROW, '"type": "sum", "dims": [1]',
     unary(lambda x: x.sum(2))),
    ("sum keepdim", ROW, '"type": "sum", "dims": [0, 1], "keepdim": true',
     unary(lambda x: x.sum((1, 2), keepdim=True))),
    ("mean dim", ROW, '"type": "mean", "dims": [1]',
     unary(lambda x: x.mean(2))),
    ("mean dims", ROW, '"type": "mean", "dims": [0, 1]',
     unary(lambda x: x.mean((1, 2)))),
    ("mean", ROW, '"type": "mean"', unary(torch.mean)),
    ("max dim", ROW, '"type": "max", "dims": [1]',
     unary(lambda x: x.max(2)[0])),
    ("min dim", ROW, '"type": "min", "dims": [1]',
     unary(lambda x: x.min(2)[0])),
    ("amax", ROW, '"type": "amax", "dims": [1]',
     unary(lambda x: x.amax(2))),
    ("amin", ROW, '"type": "amin", "dims": [1]',
     unary(lambda x: x.amin(2))),
    ("var dim", ROW, '"type": "var", "dims": [1]',
     unary(lambda x: x.var(2))),
    ("norm", ROW, '"type": "norm", "dims": [1]',
     unary(lambda x: x.norm(dim=2))),
    ("logsumexp", ROW, '"type": "logsumexp", "dims": [1]',
     unary(lambda x: x.logsumexp(2))),
    ("cumsum", ROW, '"type": "cumsum", "dim": 1',
     unary(lambda x: x.cumsum(2))),
    ("softmax", ROW, '"type": "softmax"', lambda: nn.Softmax(-1)),
    ("log_softmax", ROW, '"type": "log_softmax"', lambda: nn.LogSoftmax(-1)),
    # norms
    ("dropout p=0.1", ROW, '"type": "dropout", "p": 0.1',
     lambda: nn.Dropout(0.1)),
    ("dropout2d", IMAGE, '"type": "dropout2d", "p": 0.1',
     lambda: nn.Dropout2d(0.1)),
    ("layer_norm", ROW, '"type": "layer_norm"', lambda: nn.LayerNorm(128)),
    ("layer_norm no affine", ROW, '"type": "layer_norm", "affine": false',
     lambda: nn.LayerNorm(128, elementwise_affine=False)),
    ("batch_norm train", IMAGE, '"type": "batch_norm"',
     lambda: nn.BatchNorm2d(16)),
    ("group_norm", IMAGE, '"type": "group_norm", "groups": 4',
     lambda: nn.GroupNorm(4, 16)),
    ("instance_norm", IMAGE, '"type": "instance_norm"',
     lambda: nn.InstanceNorm2d(16)),
    ("instance_norm affine", IMAGE, '"type": "instance_norm", "affine": true',
     lambda: nn.InstanceNorm2d(16, affine=True)),
    # products
    ("linear 3D", ROW, '"type": "linear", "out": 256',
     lambda: nn.Linear(128, 256)),
    ("linear 3D nobias", ROW, '"type": "linear", "out": 256, "bias": false',
     lambda: nn.Linear(128, 256, bias=False)),
    ("matmul", SQUARE, '"type": "matmul", "inputs": ["x", "z"]',
     joined(2, torch.matmul)),
    ("matmul heads", [4, 32, 32], '"type": "matmul", "inputs": ["x", "z"]',
     joined(2, torch.matmul)),
    ("baddbmm", SQUARE, '"type": "baddbmm", "inputs": ["w", "x", "z"]',
     lambda: Of(3, lambda x, z, w: torch.baddbmm(w, x, z))),
    ("einsum", HEADS, '"type": "einsum", "equation": "bhid,bhjd->bhij", '
     '"inputs": ["x", "z"]',
     joined(2, lambda x, z: torch.einsum("bhid,bhjd->bhij", x, z))),
    ("einsum turned", HEADS, '"type": "einsum", "equation": '
     '"bhid,bhjd->bijh", "inputs": ["x", "z"]',
     joined(2, lambda x, z: torch.einsum("bhid,bhjd->bijh", x, z))),
    ("conv1d", ROW, '"type": "conv1d", "out": 32, "kernel": 3, "padding": 1',
     lambda: nn.Conv1d(64, 32, 3, padding=1)),
    ("conv2d 3x3", IMAGE,
     '"type": "conv2d", "out": 32, "kernel": 3, "padding": 1',
     lambda: nn.Conv2d(16, 32, 3, padding=1)),
    ("conv2d 3x3 nobias", IMAGE, '"type": "conv2d", "out": 32, "kernel": 3, '
     '"padding": 1, "bias": false',
     lambda: nn.Conv2d(16, 32, 3, padding=1, bias=False)),
    ("conv2d 1x1 s2", IMAGE, '"type": "conv2d", "out": 32, "kernel": 1, '
     '"stride": 2, "bias": false',
     lambda: nn.Conv2d(16, 32, 1, stride=2, bias=False)),
    ("conv2d depthwise", IMAGE, '"type": "conv2d", "out": 16, "kernel": 3, '
     '"padding": 1, "groups": 16, "bias": false',
     lambda: nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)),
    ("conv2d dilated", IMAGE, '"type": "conv2d", "out": 32, "kernel": 3, '
     '"padding": 2, "dilation": 2, "groups": 4',
     lambda: nn.Conv2d(16, 32, 3, padding=2, dilation=2, groups=4)),
    ("conv2d 1x7", IMAGE, '"type": "conv2d", "out": 32, "kernel": 1, '
     '"kernel_width": 7, "padding_width": 3, "bias": false',
     lambda: nn.Conv2d(16, 32, (1, 7), padding=(0, 3), bias=False)),
    ("conv2d 7x1", IMAGE, '"type": "conv2d", "out": 32, "kernel": 7, '
     '"kernel_width": 1, "padding": 3, "padding_width": 0',
     lambda: nn.Conv2d(16, 32, (7, 1), padding=(3, 0))),
    ("conv_transpose2d 3x1", IMAGE, '"type": "conv_transpose2d", "out": 8, '
     '"kernel": 3, "kernel_width": 1, "stride": 2, "padding": 1, '
     '"padding_width": 0',
     lambda: nn.ConvTranspose2d(16, 8, (3, 1), 2, (1, 0))),
    ("conv3d", VOLUME, '"type": "conv3d", "out": 8, "kernel": 3, '
     '"padding": 1', lambda: nn.Conv3d(4, 8, 3, padding=1)),
    ("conv_transpose1d", ROW, '"type": "conv_transpose1d", "out": 32, '
     '"kernel": 2, "stride": 2', lambda: nn.ConvTranspose1d(64, 32, 2, 2)),
    ("conv_transpose2d", IMAGE, '"type": "conv_transpose2d", "out": 8, '
     '"kernel": 2, "stride": 2, "bias": false',
     lambda: nn.ConvTranspose2d(16, 8, 2, stride=2, bias=False)),
    ("conv_transpose2d bias", IMAGE, '"type": "conv_transpose2d", "out": 8, '
     '"kernel": 2, "stride": 2', lambda: nn.ConvTranspose2d(16, 8, 2, 2)),
    ("conv_transpose3d", VOLUME, '"type": "conv_transpose3d", "out": 8, '
     '"kernel": 2, "stride": 2', lambda: nn.ConvTranspose3d(4, 8, 2, 2)),
    # pooling, resampling
    ("max_pool1d", ROW, '"type": "max_pool1d", "kernel": 2',
     lambda: nn.MaxPool1d(2)),
    ("max_pool2d", IMAGE, '"type": "max_pool2d", "kernel": 2',
     lambda: nn.MaxPool2d(2)),
    ("max_pool2d ceil", IMAGE, '"type": "max_pool2d", "kernel": 3, '
     '"stride": 2, "ceil": true',
     lambda: nn.MaxPool2d(3, 2, ceil_mode=True)),
    ("max_pool2d ceil padded", IMAGE, '"type": "max_pool2d", "kernel": 2, '
     '"stride": 3, "padding": 1, "ceil": true',
     lambda: nn.MaxPool2d(2, 3, 1, ceil_mode=True)),
    ("max_pool3d", VOLUME, '"type": "max_pool3d", "kernel": 2',
     lambda: nn.MaxPool3d(2)),
    ("avg_pool1d", ROW, '"type": "avg_pool1d", "kernel": 2',
     lambda: nn.AvgPool1d(2)),
    ("avg_pool2d", IMAGE, '"type": "avg_pool2d", "kernel": 2',
     lambda: nn.AvgPool2d(2)),
    ("avg_pool2d ceil", IMAGE, '"type": "avg_pool2d", "kernel": 5, '
     '"stride": 3, "ceil": true',
     lambda: nn.AvgPool2d(5, 3, ceil_mode=True)),
    ("avg_pool3d", VOLUME, '"type": "avg_pool3d", "kernel": 2',
     lambda: nn.AvgPool3d(2)),
    ("adaptive_avg_pool1d", ROW, '"type": "adaptive_avg_pool1d", "size": 7',
     lambda: nn.AdaptiveAvgPool1d(7)),
    ("adaptive_avg_pool2d 1", IMAGE, '"type": "adaptive_avg_pool2d"',
     lambda: nn.AdaptiveAvgPool2d(1)),
    ("adaptive_avg_pool2d 7", IMAGE,
     '"type": "adaptive_avg_pool2d", "size": 7',
     lambda: nn.AdaptiveAvgPool2d(7)),
    ("adaptive_avg_pool3d", VOLUME,
     '"type": "adaptive_avg_pool3d", "size": 3',
     lambda: nn.AdaptiveAvgPool3d(3)),
    ("adaptive_max_pool1d", ROW, '"type": "adaptive_max_pool1d", "size": 4',
     lambda: nn.AdaptiveMaxPool1d(4)),
    ("adaptive_max_pool2d", IMAGE, '"type": "adaptive_max_pool2d", "size": 4',
     lambda: nn.AdaptiveMaxPool2d(4)),
    ("adaptive_max_pool3d", VOLUME,
     '"type": "adaptive_max_pool3d", "size": 2',
     lambda: nn.AdaptiveMaxPool3d(2)),
    ("upsample nearest1d", ROW, '"type": "upsample"',
     lambda: nn.Upsample(scale_factor=2)),
    ("upsample linear", ROW, '"type": "upsample", "mode": "linear"',
     lambda: nn.Upsample(scale_factor=2, mode="linear")),
    ("upsample nearest2d", IMAGE, '"type": "upsample"',
     lambda: nn.Upsample(scale_factor=2)),
    ("upsample bilinear", IMAGE, '"type": "upsample", "mode": "bilinear"',
     lambda: nn.Upsample(scale_factor=2, mode="bilinear")),
    ("upsample bicubic", IMAGE, '"type": "upsample", "mode": "bicubic"',
     lambda: nn.Upsample(scale_factor=2, mode="bicubic")),
    ("upsample nearest3d", VOLUME, '"type": "upsample"',
     lambda: nn.Upsample(scale_factor=2)),
    ("upsample trilinear", VOLUME, '"type": "upsample", "mode": "trilinear"',
     lambda: nn.Upsample(scale_factor=2, mode="trilinear")),
    ("pixel_shuffle", IMAGE, '"type": "pixel_shuffle", "factor": 2',
     lambda: nn.PixelShuffle(2)),
    ("pixel_unshuffle", IMAGE, '"type": "pixel_unshuffle", "factor": 2',
     lambda: nn.PixelUnshuffle(2)),
    # arrangement
    ("cat", ROW, '"type": "cat", "inputs": ["x", "z"]',
     joined(2, lambda x, z: torch.cat((x, z), 1))),
    ("cat 3", ROW, '"type": "cat", "dim": 1, "inputs": ["x", "z", "w"]',
     joined(3, lambda x, z, w: torch.cat((x, z, w), 2))),
    ("stack", ROW, '"type": "stack", "inputs": ["x", "z"]',
     joined(2, lambda x, z: torch.stack((x, z), 1))),
    ("split", ROW, '"type": "split", "sizes": [32, 96], "dim": 1, '
     '"piece": 1', unary(lambda x: x.split((32, 96), 2)[1])),
    ("chunk", ROW, '"type": "split", "sizes": [32, 32], "dim": 0',
     unary(lambda x: x.chunk(2, 1)[0])),
    ("slice", ROW, '"type": "slice", "length": 32',
     unary(lambda x: x.narrow(1, 0, 32))),
    ("select", ROW, '"type": "select"', unary(lambda x: x[:, 0])),
    ("select dim", ROW, '"type": "select", "dim": 1, "index": 3',
     unary(lambda x: x[:, :, 3])),
    ("flatten", ROW, '"type": "flatten"', nn.Flatten),
    ("permute", ROW, '"type": "permute", "order": [1, 0]',
     unary(lambda x: x.permute(0, 2, 1))),
    ("contiguous", ROW, '"type": "contiguous"',
     unary(lambda x: x.contiguous())),
    ("repeat", ROW, '"type": "repeat", "times": 2, "dim": 0',
     unary(lambda x: x.repeat(1, 2, 1))),
    ("repeat_interleave", ROW,
     '"type": "repeat_interleave", "times": 2, "dim": 0',
     unary(lambda x: x.repeat_interleave(2, 1))),
    ("pad", ROW, '"type": "pad", "sizes": [1, 1]',
     unary(lambda x: F.pad(x, (1, 1)))),
    ("pad 2", IMAGE, '"type": "pad", "sizes": [1, 1, 2, 2]',
     unary(lambda x: F.pad(x, (1, 1, 2, 2)))),
    ("roll", ROW, '"type": "roll", "dim": 0', unary(lambda x: x.roll(3, 1))),
    ("flip", ROW, '"type": "flip", "dim": 0', unary(lambda x: x.flip(1))),
    ("tril", ROW, '"type": "tril"', unary(torch.tril)),
    ("clone", ROW, '"type": "clone"', unary(torch.clone)),
    ("assign", ROW, '"type": "assign", "dim": 1, "length": 128, '
     '"inputs": ["x", "z"]', joined(2, assigned)),
    ("index", ROW, '"type": "index", "count": 4, "dim": 0',
     of_tokens(lambda x, i: x[:, i], 4, most=64)),
    ("index_select", ROW, '"type": "index_select", "count": 4, "dim": 0',
     of_tokens(lambda x, i: x.index_select(1, i), 4, most=64)),
    ("gather", ROW, '"type": "gather", "count": 4, "dim": 0',
     of_tokens(lambda x, i: x.gather(1, i), 8, 4, 128, most=64)),
    ("topk", ROW, '"type": "topk", "k": 4',
     unary(lambda x: x.topk(4)[0])),
    ("sort", ROW, '"type": "sort"', unary(lambda x: x.sort()[0])),
    ("masked_fill", ROW, '"type": "masked_fill"',
     lambda: Of(1, lambda x, m: x.masked_fill(m, 0.0),
                torch.rand(8, 64, 128) > 0.5)),
    ("where", ROW, '"type": "where", "inputs": ["x", "z"]',
     lambda: Of(2, lambda x, z, m: torch.where(m, x, z),
                torch.rand(8, 64, 128) > 0.5)),
    # losses
    ("cross_entropy", [128], '"type": "cross_entropy"',
     target(F.cross_entropy, 8, classes=128)),
    ("cross_entropy image", IMAGE, '"type": "cross_entropy"',
     target(F.cross_entropy, 4, 32, 32, classes=16)),
    ("cross_entropy smooth", [1024],
     '"type": "cross_entropy", "label_smoothing": 0.1',
     target(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), 8,
            classes=1024)),
    ("nll_loss", [128], '"type": "nll_loss"',
     target(F.nll_loss, 8, classes=128)),
    ("mse_loss", ROW, '"type": "mse_loss"', target(F.mse_loss, 8, 64, 128)),
    ("l1_loss", ROW, '"type": "l1_loss"', target(F.l1_loss, 8, 64, 128)),
    ("smooth_l1_loss", ROW, '"type": "smooth_l1_loss"',
     target(F.smooth_l1_loss, 8, 64, 128)),
    ("huber_loss", ROW, '"type": "huber_loss"',
     target(F.huber_loss, 8, 64, 128)),
    ("bce_loss", ROW, '"type": "bce_loss"',
     target(F.binary_cross_entropy, 8, 64, 128)),
    ("bce_with_logits_loss", ROW, '"type": "bce_with_logits_loss"',
     target(F.binary_cross_entropy_with_logits, 8, 64, 128)),
    ("kl_div_loss", ROW, '"type": "kl_div_loss"',
     target(lambda x, t: F.kl_div(x, t, reduction="batchmean"), 8, 64, 128)),
    # recurrent
    ("lstm", STEPS, '"type": "lstm", "hidden": 32',
     first(lambda: nn.LSTM(64, 32, batch_first=True))),
    ("lstm 2", STEPS, '"type": "lstm", "hidden": 32, "num_layers": 2',
     first(lambda: nn.LSTM(64, 32, 2, batch_first=True))),
    ("lstm bidirectional", STEPS,
     '"type": "lstm", "hidden": 32, "bidirectional": true',
     first(lambda: nn.LSTM(64, 32, batch_first=True, bidirectional=True))),
    ("lstm nobias", STEPS, '"type": "lstm", "hidden": 32, "bias": false',
     first(lambda: nn.LSTM(64, 32, batch_first=True, bias=False))),
    ("lstm dropout", STEPS, '"type": "lstm", "hidden": 32, "num_layers": 2, '
     '"dropout": 0.5',
     first(lambda: nn.LSTM(64, 32, 2, batch_first=True, dropout=0.5))),
    ("gru", STEPS, '"type": "gru", "hidden": 32',
     first(lambda: nn.GRU(64, 32, batch_first=True))),
    ("gru 2 bidirectional", STEPS, '"type": "gru", "hidden": 32, '
     '"num_layers": 2, "bidirectional": true',
     first(lambda: nn.GRU(64, 32, 2, batch_first=True,
                          bidirectional=True))),
]


def runs(sizes):
    """[8, 8, 8, 4] as "3*8 4"."""
    words, i = [], 0
    while i < len(sizes):
        n = 1
        while i + n < len(sizes) and sizes[i + n] == sizes[i]:
            n += 1
        words.append(f"{n}*{sizes[i]}" if n > 1 else str(sizes[i]))
        i += n
    return " ".join(words) or "-"


def main():
    torch.set_num_threads(1)
    only = sys.argv[1:]
    print(HEADER)
    for case, sample, layer, make in CASES:
        if only and case not in only:
            continue
        goes_on, kept, sizes = measure(sample, make)
        ends = "mean" if goes_on else "-"
        print(case, sample, layer, ends, kept, runs(sizes), sep="\t")


if __name__ == "__main__":
    main()
