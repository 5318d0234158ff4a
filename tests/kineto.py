#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a trace in the form of PyTorch's profiler (Kineto's Chrome traces), of
steps of a small transformer in bf16, with times that are so many times those
of a simple clock:

    kineto.py STEPS LAYERS FACTOR >trace.json

It stands in for a recorded one where there is no GPU: order, names, arguments
and units are those of torch 2.4 (pytorch/kineto libkineto/src/output_json.cpp;
torch/csrc/profiler/kineto_shim.cpp).  The same words give the same bytes."""
import json
import sys

STEPS, LAYERS, FACTOR = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
BF16, FP32 = "c10::BFloat16", "float"
TOKENS, HIDDEN, HEADS, SEQUENCE, VOCABULARY = 8192, 1024, 16, 1024, 32768
events, now, device, external, correlation = [], [1000.0], [2000.0], [0], [0]
out = sys.stdout


def put(event):
    out.write(",\n  " if put.some else "  ")
    out.write(json.dumps(event))
    put.some = True


put.some = False


def op(name, dims, types, kernels, thread=100, concrete=None):
    """An op of the host, its launches, and the kernels: (name, us)."""
    external[0] += 1
    start = now[0]
    args = {"External id": external[0], "Record function id": 0,
            "Concrete Inputs": concrete or [""] * len(dims),
            "Input type": types, "Input Dims": dims, "Ev Idx": external[0]}
    for kernel, us, more in kernels:
        correlation[0] += 1
        ids = {"External id": external[0], "correlation": correlation[0]}
        put({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
             "pid": 7, "tid": thread, "ts": round(now[0] + 1, 3), "dur": 4.0,
             "args": dict(ids, cbid=211)})
        us = round(us * FACTOR, 3)
        device[0] = max(device[0], now[0] + 6)
        put(dict({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0,
                  "tid": 7, "ts": round(device[0], 3), "dur": us},
                 args=dict(ids, device=0, context=1, stream=7,
                           grid=[64, 8, 1], block=[128, 1, 1]), **more))
        put({"ph": "s", "id": correlation[0], "pid": 7, "tid": thread,
             "ts": round(now[0] + 1, 3), "cat": "ac2g", "name": "ac2g"})
        device[0] += us + 1
        now[0] += 8
    put({"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": thread,
         "ts": round(start, 3), "dur": round(now[0] - start, 3), "args": args})
    now[0] += 3


def gemm(m, k, n, thread):
    us = 3 + 2 * m * n * k / 600e6 + 2 * (m * k + k * n + m * n) / 3e6
    op("aten::mm", [[m, k], [k, n]], [BF16, BF16],
       [("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", us, {})], thread)


def memory(name, dims, types, bytes_, kernel, thread):
    op(name, dims, types, [(kernel, 2 + bytes_ / 2e6, {})], thread)


def attention(backward, thread):
    shape = [TOKENS // SEQUENCE, SEQUENCE, HEADS, HIDDEN // HEADS]
    flops = 2 * TOKENS * SEQUENCE * HIDDEN * (2.5 if backward else 1)
    name = "aten::_flash_attention_" + ("backward" if backward else "forward")
    inputs = 6 if backward else 3
    concrete = [""] * (11 if backward else 8) + ["True"]
    op(name, [shape] * inputs, [BF16] * inputs,
       [("void pytorch_flash::flash_%s_kernel<...>"
         % ("bwd" if backward else "fwd"), 5 + flops / 250e6, {})],
       thread, concrete)


def layer(thread):
    hidden = [8, SEQUENCE, HIDDEN]
    memory("aten::native_layer_norm", [hidden, [], [HIDDEN], [HIDDEN], []],
           [BF16, "", BF16, BF16, ""], 4 * TOKENS * HIDDEN,
           "vectorized_layer_norm_kernel<c10::BFloat16, float>", thread)
    gemm(TOKENS, HIDDEN, 3 * HIDDEN, thread)
    attention(thread == 200, thread)
    gemm(TOKENS, HIDDEN, HIDDEN, thread)
    memory("aten::add", [hidden, hidden, []], [BF16, BF16, "Scalar"],
           6 * TOKENS * HIDDEN, "vectorized_elementwise_kernel<4, add>", thread)
    gemm(TOKENS, HIDDEN, 4 * HIDDEN, thread)
    wide = [8, SEQUENCE, 4 * HIDDEN]
    memory("aten::gelu", [wide, []], [BF16, ""], 16 * TOKENS * HIDDEN,
           "vectorized_elementwise_kernel<4, gelu>", thread)
    gemm(TOKENS, 4 * HIDDEN, HIDDEN, thread)


def spanned(cat, name, thread, body):
    start = now[0]
    body()
    args = {"External id": 0} if cat == "user_annotation" else {}
    put({"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": thread,
         "ts": round(start, 3), "dur": round(now[0] - start, 3), "args": args})
    now[0] += 1


def backward():
    for _ in range(LAYERS):
        spanned("cpu_op", "autograd::engine::evaluate_function: Layer", 200,
                lambda: layer(200))


def optimizer():
    lists = [[[HIDDEN, 4 * HIDDEN]] * 4, [[HIDDEN, 4 * HIDDEN]] * 4]
    op("aten::_foreach_add_", lists + [[]], ["TensorList", "TensorList", "Scalar"],
       [("multi_tensor_apply_kernel<TensorListMetadata<2>, float>",
         2 + 4 * 12 * HIDDEN * HIDDEN * 4 / 2e6, {})])
    op("mine::step", [[]], [""], [("triton_fused_step", 20, {})])


def step():
    external[0] += 1
    put({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)",
         "pid": 0, "tid": 7, "ts": round(device[0], 3),
         "dur": round(TOKENS * 8 / 2e4 * FACTOR, 3),
         "args": {"External id": external[0], "stream": 7, "bytes": TOKENS * 8}})
    for _ in range(LAYERS):
        layer(100)
    gemm(TOKENS, HIDDEN, VOCABULARY, 100)
    memory("aten::_log_softmax", [[TOKENS, VOCABULARY], [], []],
           [BF16, "Scalar", "Scalar"], 4 * TOKENS * VOCABULARY,
           "softmax_warp_forward<c10::BFloat16>", 100)
    backward()
    spanned("user_annotation", "Optimizer.step#AdamW.step", 100, optimizer)
    put({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
         "pid": 0, "tid": 20, "ts": round(device[0], 3),
         "dur": round(350 * FACTOR, 3),
         "args": {"stream": 20, "Collective name": "allreduce", "dtype": "BFloat16",
                  "In msg nelems": 12582912, "Out msg nelems": 12582912,
                  "Group size": 8}})
    device[0] += 400


print('{"schemaVersion": 1,\n "deviceProperties": [{"id": 0, "name": "made up", '
      '"totalGlobalMem": 85899345920}],\n "displayTimeUnit": "ms",\n "traceEvents": [')
for i in range(STEPS):
    spanned("user_annotation", "ProfilerStep#%d" % (i + 3), 100, step)
print('\n ],\n "traceName": "trace.json"}')
