# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole networks, small, for tests/truth/nets_torch.py: each row of NETS makes
(module, inputs, loss, target).  They are chosen for what their graphs do:
concatenations, ops in place on views, layouts, gates, two heads, frozen
weights, recurrent cells."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torchvision import models
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig

CLASSES = 64


# ---- inputs and losses


def images(batch, size=64):
    return torch.randn(batch, 3, size, size)


def labels(*shape):
    return torch.randint(0, CLASSES, shape)


def picture(model, batch=2, size=64):
    return model, images(batch, size), F.cross_entropy, labels(batch)


def by_token(logits, target):
    return F.cross_entropy(logits.view(-1, logits.size(-1)), target.view(-1))


def two_heads(outputs, target):
    return (F.cross_entropy(outputs[0], target)
            + 0.4 * F.cross_entropy(outputs[1], target))


# ---- torchvision's families, with few blocks


def densenet(batch):
    return picture(models.DenseNet(16, (2, 2), 32, num_classes=CLASSES), batch)


def mobilenet_v2():
    rows = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]]
    return picture(models.MobileNetV2(
        CLASSES, inverted_residual_setting=rows))


def mobilenet_v3():
    rows = [InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
            InvertedResidualConfig(16, 3, 64, 24, False, "RE", 2, 1, 1.0),
            InvertedResidualConfig(24, 5, 96, 40, True, "HS", 2, 1, 1.0)]
    return picture(models.MobileNetV3(rows, 128, num_classes=CLASSES))


def vit(batch):
    return picture(models.VisionTransformer(32, 8, 2, 4, 64, 128,
                                            num_classes=CLASSES), batch, 32)


def swin():
    return picture(models.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4],
                                          num_classes=CLASSES))


def convnext(batch):
    rows = [CNBlockConfig(32, 64, 1), CNBlockConfig(64, None, 1)]
    return picture(models.ConvNeXt(rows, 0.2, num_classes=CLASSES), batch)


def shufflenet():
    return picture(models.ShuffleNetV2([2, 2, 2], [8, 32, 64, 128, 256],
                                       CLASSES))


def resnet(**options):
    block = models.resnet.BasicBlock
    return models.ResNet(block, [1, 1, 1, 1], CLASSES, **options)


def channels_last():
    model, x, loss, target = picture(resnet())
    last = torch.channels_last
    return model.to(memory_format=last), x.to(memory_format=last), loss, target


def frozen_stage():
    model = resnet()
    model.layer2.requires_grad_(False)
    return picture(model)


# ---- written here


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2)
        self.early = nn.Linear(32, CLASSES)
        self.body = nn.Conv2d(32, 64, 3, 2)
        self.late = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = F.relu(self.stem(x), inplace=True)
        early = self.early(x.mean((2, 3)))
        x = F.relu(self.body(x), inplace=True)
        return self.late(x.mean((2, 3))), early


class LowRank(nn.Module):
    """A frozen linear layer with a trained update of low rank."""

    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * 2.0


def low_rank():
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), LowRank(64, 8),
                          nn.Tanh(), LowRank(64, 8), nn.GELU(),
                          nn.Linear(64, CLASSES))
    return model, torch.randn(4, 32, 64), by_token, labels(4, 32)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, 64)
        self.rnn = kind(64, 96, 2, batch_first=True, **options)
        width = 192 if options.get("bidirectional") else 96
        self.head = nn.Linear(width, CLASSES)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


def recurrent(kind, **options):
    return Recurrent(kind, **options), labels(4, 4), by_token, labels(4, 4)


def pair(inside, outside, norm):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1),
                         norm(outside), nn.SiLU())


class SmallUNet(nn.Module):
    def __init__(self, norm, width=16):
        super().__init__()
        self.high = pair(3, width, norm)
        self.low = pair(width, 2 * width, norm)
        self.deep = pair(2 * width, 4 * width, norm)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear",
                              align_corners=True)
        self.merge = pair(6 * width, 2 * width, norm)
        self.wide = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = pair(2 * width, width, norm)
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        high = self.high(x)
        low = self.low(F.max_pool2d(high, 2))
        x = self.up(self.deep(F.avg_pool2d(low, 2)))
        x = self.wide(self.merge(torch.cat([low, x], 1)))
        return self.head(self.last(torch.cat([high, x], 1)))


def unet(norm):
    return (SmallUNet(norm), images(2, 32), F.cross_entropy,
            labels(2, 32, 32))


def autoencoder():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 7, 2),
        nn.ReLU(), nn.Conv2d(32, 64, 5), nn.ConvTranspose2d(64, 32, 5),
        nn.ReLU(), nn.ConvTranspose2d(32, 16, 7, 2), nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, 2, 2), nn.Tanh())
    return model, images(8, 29), F.mse_loss, images(8, 28)


def perceptron():
    model = nn.Sequential(
        nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(128, 128), nn.BatchNorm1d(128),
        nn.LeakyReLU(0.1, inplace=True), nn.Linear(128, CLASSES))
    return model, torch.randn(32, 64), F.cross_entropy, labels(32)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Transformer(64, 4, 1, 1, 128, 0.1, batch_first=True)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, source, target):
        mask = self.body.generate_square_subsequent_mask(target.shape[1])
        return self.head(self.body(source, target, tgt_mask=mask))


def translator():
    inputs = torch.randn(3, 12, 64), torch.randn(3, 14, 64)
    return Translator(), inputs, by_token, labels(3, 14)


# ---- checkpoints


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return F.relu6(x + self.drop(self.norm(self.conv(x))), inplace=True)


class Segments(nn.Module):
    """how: nothing, "reentrant", "nonreentrant" or so many segments."""

    def __init__(self, how=None):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.blocks = nn.Sequential(*(Residual(64) for _ in range(5)))
        self.head = nn.Linear(64, CLASSES)
        self.how = how

    def run(self, x):
        if self.how is None:
            return self.blocks(x)
        if isinstance(self.how, int):
            return checkpoint_sequential(self.blocks, self.how, x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.how == "reentrant")
        return x

    def forward(self, x):
        x = self.run(F.relu(self.stem(x), inplace=True))
        return self.head(x.mean((2, 3)))


def segments(how=None):
    return Segments(how), images(4, 16), F.cross_entropy, labels(4)


# ---- as measured (truth/torch/summary.csv)


class Bert(nn.Module):
    def __init__(self, layers, **options):
        super().__init__()
        width = 768
        self.word = nn.Embedding(30522, width)
        self.position = nn.Embedding(512, width)
        self.kind = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.drop = nn.Dropout(options["dropout"])
        layer = nn.TransformerEncoderLayer(width, 12, 3072, batch_first=True,
                                           **options)
        last = nn.LayerNorm(width) if options["norm_first"] else None
        self.encoder = nn.TransformerEncoder(layer, layers, last)
        self.pool = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)
        self.register_buffer("positions", torch.arange(512)[None])
        self.register_buffer("kinds", torch.zeros(1, 512, dtype=torch.long))

    def forward(self, ids):
        n = ids.shape[1]
        x = (self.word(ids) + self.position(self.positions[:, :n])
             + self.kind(self.kinds[:, :n]))
        x = self.encoder(self.drop(self.norm(x)))
        return self.head(torch.tanh(self.pool(x[:, 0])))


def bert(layers, batch, sequence, dropout=0.1, norm_first=False,
         activation="gelu"):
    model = Bert(layers, dropout=dropout, norm_first=norm_first,
                 activation=activation)
    return (model, torch.randint(0, 30522, (batch, sequence)),
            F.cross_entropy, torch.randint(0, 2, (batch,)))


def alexnet(batch):
    return (models.AlexNet(), images(batch, 224), F.cross_entropy,
            torch.randint(0, 1000, (batch,)))


NETS = {
    "densenet_b1": partial(densenet, 1),
    "densenet_b2": partial(densenet, 2),
    "mobilenet_v2_b2": mobilenet_v2,
    "mobilenet_v3_b2": mobilenet_v3,
    "vit_b1": partial(vit, 1),
    "vit_b2": partial(vit, 2),
    "swin_b2": swin,
    "convnext_b1": partial(convnext, 1),
    "convnext_b2": partial(convnext, 2),
    "shufflenet_b2": shufflenet,
    "resnet_channels_last": channels_last,
    "resnet_frozen_stage": frozen_stage,
    "two_heads": lambda: (TwoHeads(), images(2, 32), two_heads, labels(2)),
    "low_rank": low_rank,
    "lstm": partial(recurrent, nn.LSTM),
    "lstm_bidirectional": partial(recurrent, nn.LSTM, bidirectional=True),
    "gru_dropout": partial(recurrent, nn.GRU, dropout=0.2),
    "rnn": partial(recurrent, nn.RNN),
    "unet_group_norm": partial(unet, partial(nn.GroupNorm, 8)),
    "unet_instance_norm": partial(
        unet, partial(nn.InstanceNorm2d, affine=True)),
    "autoencoder": autoencoder,
    "perceptron": perceptron,
    "translator": translator,
    "segments": segments,
}
# This network is only measured: its graph is that of "segments".
CHECKPOINTED = {
    "segments_reentrant": partial(segments, "reentrant"),
    "segments_nonreentrant": partial(segments, "nonreentrant"),
    "segments_sequential_2": partial(segments, 2),
    "segments_sequential_3": partial(segments, 3),
}
MEASURED = {
    "alexnet_b8": partial(alexnet, 8),
    "alexnet_b16": partial(alexnet, 16),
    "alexnet_b32": partial(alexnet, 32),
    "bert12_b2s128_d00": partial(bert, 12, 2, 128, 0.0),
    "bert12_b2s128_d00_pre": partial(bert, 12, 2, 128, 0.0, True),
    "bert12_b2s128_d01": partial(bert, 12, 2, 128),
    "bert12_b2s128_d01_pre": partial(bert, 12, 2, 128, norm_first=True),
    "bert12_b2s128_d01_relu": partial(bert, 12, 2, 128, activation="relu"),
    "bert12_b2s256_d01": partial(bert, 12, 2, 256),
    "bert12_b2s512_d01": partial(bert, 12, 2, 512),
    "bert4_b4s256_d01": partial(bert, 4, 4, 256),
}


# ---- built-in models of memsim, whole (vision.tsv); NAME_bBATCH


def builtin(make, batch):
    return (make(), images(batch, 224), F.cross_entropy,
            torch.randint(0, 1000, (batch,)))


class LanguageModel(nn.Module):
    def __init__(self, vocab=10000, width=650):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.drop = nn.Dropout(0.5)
        self.rnn = nn.LSTM(width, width, 2, batch_first=True, dropout=0.5)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        x = self.drop(self.embedding(ids))
        x, _ = self.rnn(x)
        return self.head(self.drop(x))


def language_model(batch, sequence):
    return (LanguageModel(), torch.randint(0, 10000, (batch, sequence)),
            by_token, torch.randint(0, 10000, (batch, sequence)))


# Stable Diffusion's U-Net after CompVis/latent-diffusion, of any width, with
# PyTorch 2's attention by ops; images are made contiguous, as its later
# versions do.


class DiffusionResnet(nn.Module):
    def __init__(self, inside, outside, time):
        super().__init__()
        self.norm1 = nn.GroupNorm(32, inside)
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.time = nn.Linear(time, outside)
        self.norm2 = nn.GroupNorm(32, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
        self.shortcut = (nn.Identity() if inside == outside
                         else nn.Conv2d(inside, outside, 1))

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[..., None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return self.shortcut(x) + h


class DiffusionAttention(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(context, width, bias=False)
        self.v = nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x, context):
        q, k, v = self.q(x), self.k(context), self.v(context)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scale = q.shape[-1] ** -0.25
        scaled = q * scale
        shares = torch.softmax(scaled @ (k.transpose(-2, -1) * scale), -1)
        y = shares @ v
        y = y.permute(0, 2, 1, 3).reshape(x.shape)
        return self.out(y)


class DiffusionMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.both = nn.Linear(width, 8 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        value, gate = self.both(x).chunk(2, dim=-1)
        return self.down(F.gelu(gate) * value)


class DiffusionTransformer(nn.Module):
    def __init__(self, width, context, heads):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.proj_in = nn.Conv2d(width, width, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width)
                                              for _ in range(3))
        self.self = DiffusionAttention(width, width, heads)
        self.cross = DiffusionAttention(width, context, heads)
        self.mlp = DiffusionMlp(width)
        self.proj_out = nn.Conv2d(width, width, 1)

    def forward(self, image, context):
        x = self.proj_in(self.norm(image))
        shape = x.shape
        x = x.flatten(2).permute(0, 2, 1)
        own = self.norm1(x)
        x = self.self(own, own) + x
        x = self.cross(self.norm2(x), context) + x
        x = self.mlp(self.norm3(x)) + x
        x = x.permute(0, 2, 1).reshape(shape).contiguous()
        return self.proj_out(x) + image


class DiffusionBlock(nn.Module):
    def __init__(self, inside, outside, time, context, heads):
        super().__init__()
        self.resnet = DiffusionResnet(inside, outside, time)
        self.transformer = (DiffusionTransformer(outside, context, heads)
                            if heads else None)

    def forward(self, x, time, context, skip=None):
        if skip is not None:
            x = torch.cat([x, skip], 1)
        x = self.resnet(x, time)
        return x if self.transformer is None else self.transformer(x, context)


class DiffusionUNet(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        time = 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(),
                                  nn.Linear(time, time))
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        now, skips = width, [width]
        for level, factor in enumerate((1, 2, 4, 4)):
            for _ in range(2):
                self.down.append(DiffusionBlock(
                    now, factor * width, time, context,
                    heads if level < 3 else 0))
                now = factor * width
                skips.append(now)
            if level < 3:
                self.down.append(nn.Conv2d(now, now, 3, 2, 1))
                skips.append(now)
        self.middle1 = DiffusionBlock(now, now, time, context, heads)
        self.middle2 = DiffusionResnet(now, now, time)
        for level, factor in enumerate((4, 4, 2, 1)):
            for _ in range(3):
                self.up.append(DiffusionBlock(
                    now + skips.pop(), factor * width, time, context,
                    heads if level > 0 else 0))
                now = factor * width
            if level < 3:
                self.up.append(nn.Sequential(
                    nn.Upsample(scale_factor=2.0),
                    nn.Conv2d(now, now, 3, padding=1)))
        self.norm = nn.GroupNorm(32, now)
        self.last = nn.Conv2d(now, 4, 3, padding=1)

    def forward(self, x, timestep, context):
        time = self.time(timestep)
        x = self.first(x)
        skips = [x]
        for part in self.down:
            x = (part(x, time, context) if isinstance(part, DiffusionBlock)
                 else part(x))
            skips.append(x)
        x = self.middle2(self.middle1(x, time, context), time)
        for part in self.up:
            x = (part(x, time, context, skips.pop())
                 if isinstance(part, DiffusionBlock) else part(x))
        return self.last(F.silu(self.norm(x)))


def diffusion(batch, width, latent):
    inputs = (torch.randn(batch, 4, latent, latent),
              torch.randn(batch, width), torch.randn(batch, 77, 768))
    return (DiffusionUNet(width, 8, 768), inputs, F.mse_loss,
            torch.randn(batch, 4, latent, latent))


BUILTINS = {
    "vgg11_b1": partial(builtin, models.vgg11, 1),
    "resnet34_b2": partial(builtin, models.resnet34, 2),
    "resnext50-32x4d_b2": partial(builtin, models.resnext50_32x4d, 2),
    "mobilenet-v2_b2": partial(builtin, models.mobilenet_v2, 2),
    "densenet121_b2": partial(builtin, models.densenet121, 2),
    "efficientnet-b0_b2": partial(builtin, models.efficientnet_b0, 2),
    "vit-b16_b2": partial(builtin, models.vit_b_16, 2),
    "swin-t_b2": partial(builtin, models.swin_t, 2),
    "convnext-t_b2": partial(builtin, models.convnext_tiny, 2),
    "vit-b16_b1": partial(builtin, models.vit_b_16, 1),
    "swin-t_b1": partial(builtin, models.swin_t, 1),
    "convnext-t_b1": partial(builtin, models.convnext_tiny, 1),
    "densenet121_b1": partial(builtin, models.densenet121, 1),
    "lstm-lm_b4s35": partial(language_model, 4, 35),
    "sd-1.5-unet_b2w32l16": partial(diffusion, 2, 32, 16),
}
