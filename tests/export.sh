#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs tools/export_torch.py under Debian's torch 1.13:
#
#   tests/export.sh [MEMSIM]       default: build/debug/memsim
#
# The graphs and measured experiments of tests/truth come out byte for byte;
# models whose graphs were measured give memsim the same numbers; what cannot
# be traced is refused with its reason; memsim.profile() has every batch.
# 77: python3-torch is not installed.
set -eu
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
memsim=${1-$here/../build/debug/memsim}
truth=${MEMSIM_TRUTH-$here/../../shared/truth}
python=/usr/bin/python3
export_torch=$here/../tools/export_torch.py

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "export.sh: skipped, python3-torch is not installed" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "export.sh: $*" >&2
    failed=1
}

# ---- the same graphs ----

for model in basics kait; do
    "$python" "$export_torch" "$here/truth/models_torch.py:$model" \
        -o "$folder/x.json" 2>/dev/null
    cmp "$folder/x.json" "$here/truth/graphs/$model.graph.json" ||
        fail "$model: another graph than tests/truth/graphs has"
done
"$python" "$here/truth/rules_torch.py" >"$folder/rules.jsonl" 2>/dev/null ||
    fail "the experiments are not exported"
cmp "$folder/rules.jsonl" "$here/truth/rules.jsonl" ||
    fail "other graphs than tests/truth/rules.jsonl has"
if "$python" -c 'import torchvision' 2>/dev/null; then
    for part in "graphs nets.jsonl" "measure nets.tsv"; do
        "$python" "$here/truth/nets_torch.py" "${part% *}" \
            >"$folder/${part#* }" 2>/dev/null ||
            fail "the networks do not run"
        cmp "$folder/${part#* }" "$here/truth/${part#* }" ||
            fail "other networks than tests/truth/${part#* } has"
    done
else
    echo "export.sh: no python3-torchvision: networks skipped" >&2
fi
if [ -r "$truth/torch/rules.json" ]; then
    "$python" "$here/truth/rules_torch.py" "$truth/torch/rules.json" \
        >"$folder/rules.tsv" 2>/dev/null || fail "the experiments do not run"
    cmp "$folder/rules.tsv" "$here/truth/rules.tsv" ||
        fail "other measurements than tests/truth/rules.tsv has"
fi

# ---- the same bytes, FLOPs and times ----

cat >"$folder/cases.py" <<'END'
import sys, types
from torch import nn, randint, randn
from torch.nn import functional as F

def mlp8x1024_b64_drop():
    layers, width = [], 784
    for _ in range(8):
        layers += [nn.Linear(width, 1024), nn.ReLU(), nn.Dropout(0.1)]
        width = 1024
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    return model, randn(64, 784), F.cross_entropy, randint(0, 10, (64,))

def models():
    vision = types.ModuleType("torchvision")
    vision.models = None
    sys.modules.setdefault("torchvision", vision)
    import models
    return models

def words(b, s, n):
    return randint(0, n, (b, s))

def unet32_b1():
    return (models().UNet(), randn(1, 3, 128, 128), F.cross_entropy,
            randint(0, 4, (1, 128, 128)))

def llama8_b1s128():
    return (models().Llama(), words(1, 128, 32000), models().lm_loss,
            words(1, 128, 32000))

def bert12_b2s128_d01():
    return (models().BertLike(), words(2, 128, 30522), F.cross_entropy,
            randint(0, 2, (2,)))

def gpt2s_b1s128_d01():
    return (models().GPT(), words(1, 128, 50257), models().lm_loss,
            words(1, 128, 50257))
END

numbers() { # bytes, FLOPs and times of a step, a line each
    "$memsim" run "$1" --framework torch-1.13 --optimizer sgd --json \
        --set training.device=cpu |
        "$python" -c 'import json, sys
run = json.load(sys.stdin)
for key in sys.argv[1:]:
    print(key, json.dumps(run[key], indent=1))' levels phase_peaks \
            phase_peaks_with_workspace saved_for_backward_bytes peak flops
}

# The variable h of UNet.forward makes the peak of its forward, which is as
# measured (truth/torch/unet32_b1.json); the measured graph does not know it.
variables() {
    [ "$1" = unet32_b1 ] || return 0
    grep -q '"forward_bytes": 76319648' "$folder/have" ||
        fail "$1: another peak of the forward than measured"
    for numbers in want have; do
        grep -v forward_bytes "$folder/$numbers" >"$folder/rest"
        mv "$folder/rest" "$folder/$numbers"
    done
}

same_numbers() { # case, measured graph
    PYTHONPATH=$truth/torch "$python" "$export_torch" \
        "$folder/cases.py:$1" -o "$folder/$1.graph.json" 2>/dev/null ||
        fail "$1: not exported"
    numbers "$2" >"$folder/want"
    numbers "$folder/$1.graph.json" >"$folder/have"
    [ -s "$folder/want" ] || fail "$1: no numbers"
    variables "$1"
    diff "$folder/want" "$folder/have" ||
        fail "$1: other numbers than the measured graph's"
}

same_numbers mlp8x1024_b64_drop \
    "$here/truth/graphs/mlp8x1024_b64_drop.graph.json"
if [ -r "$truth/torch/models.py" ]; then
    for case in unet32_b1 llama8_b1s128 bert12_b2s128_d01 gpt2s_b1s128_d01; do
        same_numbers "$case" "$truth/torch/$case.graph.json"
    done
fi

# ---- refusals ----

cat >"$folder/bad.py" <<'END'
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

x = torch.ones(2, 4)

class Do(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.fc = body, nn.Linear(4, 4)

    def forward(self, x):
        return self.body(self.fc, x)

def sparse():
    return Do(lambda fc, x: torch.sparse.mm(x.to_sparse(), fc.weight)), x

def devices():
    return Do(lambda fc, x: fc(x) + torch.ones(4, device="meta").sum()), x

def scripted():
    return nn.Sequential(torch.jit.script(nn.Linear(4, 4))), x

def compiled():
    model = nn.Linear(4, 4)
    model._orig_mod = None
    return model, x

def quantized():
    return Do(lambda fc, x: fc(torch.quantize_per_tensor(
        x, 0.1, 0, torch.qint8).dequantize())), x

def custom():
    return Do(lambda fc, x: checkpoint(fc, x)), x.clone().requires_grad_()

def complex_numbers():
    return Do(lambda fc, x: torch.fft.fft(fc(x)).abs()), x

def seven():
    return Do(lambda fc, x: fc(x).view(1, 1, 1, 1, 1, 2, 4)), x

def vector():
    return nn.Linear(4, 4), x, lambda out: out

def constant():
    return nn.Linear(4, 4), x, lambda out: torch.zeros(())

def nothing():
    return Do(lambda fc, x: None), x

def no_module():
    return (lambda x: x), x

def one():
    return nn.Linear(4, 4)

def frozen():
    model = Do(lambda fc, x: fc(x) + fc.weight.detach().sum())
    model.fc.bias.requires_grad_(False)
    return model, x
END

refused() { # function, words of the reason
    status=0
    "$python" "$export_torch" "$folder/bad.py:$1" -o "$folder/bad.json" \
        2>"$folder/reason" || status=$?
    [ "$status" = 3 ] || fail "$1: exit $status instead of 3"
    grep -q "$2" "$folder/reason" || fail "$1: $(cat "$folder/reason")"
}

refused sparse 'layout torch.sparse_coo'
refused devices 'on cpu and on meta'
refused scripted 'scripted module "0"'
refused compiled 'torch.compile'
refused quantized 'quantized'
refused custom 'custom autograd function CheckpointFunctionBackward'
refused complex_numbers 'complex64'
refused seven '7 dimensions'
refused vector 'one element'
refused constant 'does not depend'
refused nothing 'returned no tensor'
refused no_module 'not function'
refused one 'must return (module, inputs'
refused absent 'has no function "absent"'

"$python" "$export_torch" "$folder/bad.py:frozen" -o "$folder/frozen.json" \
    2>/dev/null || fail "frozen: not exported"
"$memsim" run "$folder/frozen.json" --json >/dev/null ||
    fail "frozen: memsim cannot run it"

# ---- memsim.profile()

PYTHONPATH=$(cd "$(dirname "$memsim")" && pwd)/python "$python" \
    "$here/python/profile_torch.py" || fail "profiles with other batches"
exit $failed
