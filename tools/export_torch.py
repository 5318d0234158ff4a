#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the op graph of a PyTorch model for memsim.

    python3 tools/export_torch.py MODULE:FUNCTION [-o x.graph.json] [--batch N]
    memsim run x.graph.json --set training.device=cuda

FUNCTION takes nothing and returns (module, inputs) or (module, inputs, loss)
or (module, inputs, loss, target): a torch.nn.Module; a tensor, a tuple of
arguments or a dict of keyword arguments; loss(output) or loss(output, target).
Without a loss the module's own (an output called "loss", a scalar output, or a
scalar among its outputs) counts, else the mean of its first output.  MODULE is
a module's name or the path of a .py file.

From Python, in one line:

    export_torch.export(model, x, loss=F.cross_entropy, target=y,
                        path="x.graph.json")

One forward and its loss run on the machine at hand, no GPU is needed; each
aten op below autograd becomes a node.  Python's variables count: the file says
when a tensor lost its last name.  Export in fp32: memsim runs the graph under
autocast too (--precision autocast-bf16).  Control flow that depends on data is
recorded as it went this once.  Sizes are what count: random weights and inputs
do, and those on torch.device("meta") need no memory.  Parameters with
requires_grad=False become buffers; what runs under no_grad reads detached
tensors.

Not traced, and refused with a reason: sparse, nested, quantized and complex
tensors, more than one device, compiled or scripted modules, custom autograd
functions (reentrant checkpoints are one: take checkpointing out and give it to
memsim as a policy), tensors of more than six dimensions.

--batch N repeats or leaves out rows of the inputs (and of the target): the
first size of the first input is the batch, and every tensor that begins with
that size grows with it.  memsim.profile() of the Python package exports once
and has every batch.

What could not be seen is told when it is done: tensors of classes that wrap
others, ops of other libraries, kernels that the CPU alone has, parameters that
nothing read, what a module in evaluation mode leaves out.

Tested with torch 1.13 (Debian's python3-torch).  For torch 2 it calls what is
documented there, but it is untested.  There tensors on torch.device("meta")
have no documented identity: that another one was used is told, and where there
is none they are refused.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import sys
import weakref

FORMAT = (
    "storages: [sid, bytes, kind, name]; tensors: [tid, sid, shape, dtype, "
    "strides, offset]; nodes in forward order (aten ops below autograd): "
    "in/out = tensor ids, prod = producer node ids, args: T marks a tensor; "
    "ends = tensors whose last name went after the node; autocast.* = notes "
    "of what autocast would cast; loss_start = node index where the loss "
    "begins"
)
DTYPES = {
    "float32", "float16", "bfloat16", "float64", "int64", "int32", "bool",
    "uint8",
}
MOST_DIMS = 6
MATRIX = {"mm", "addmm", "bmm", "baddbmm", "convolution"}
# FLOPs of an op per element of its output; other ops count one.
PER_ELEMENT = {
    "_softmax": 5, "_log_softmax": 5, "native_layer_norm": 8,
    "native_batch_norm": 8, "native_group_norm": 8,
}
FREE = {"arange", "embedding", "empty", "lift_fresh"}


class ExportError(Exception):
    """What cannot be traced, and what to do about it."""


def check_version(torch):
    """Refuses releases without the dispatch mode; True: a tested one."""
    words = torch.__version__.split("+")[0].split(".")
    version = (int(words[0]), int(words[1]))
    if version < (1, 13):
        raise ExportError(
            f"torch {torch.__version__} is too old; 1.13 is the first that "
            "can be traced"
        )
    return version == (1, 13)


def storage_of(tensor):
    """The identity and bytes of what a tensor looks at.  torch 2 documents
    addresses, which tensors without memory do not have."""
    if not hasattr(tensor, "untyped_storage"):
        storage = tensor.storage()._storage # torch 1.13
        return storage._cdata, storage.nbytes()
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    address = 0 if tensor.is_meta else storage.data_ptr()
    if address == 0 and size > 0:
        address = getattr(storage, "_cdata", 0)
    if address == 0 and size > 0:
        raise ExportError(f"tensors on {tensor.device} cannot be told apart "
                          "in this PyTorch: export on the CPU")
    return address or ("empty", id(tensor)), size


def op_of(func):
    """Name and overload of an op: aten.add and Tensor."""
    name, _, overload = str(func).rpartition(".")
    return name, overload


def plain(value):
    """A value as JSON; a number beyond JSON as its name."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value)


class Recorder:
    """The tables of the file as they grow."""

    def __init__(self, torch, device):
        self.torch = torch
        self.device = device
        self.storages, self.tensors, self.nodes = [], [], []
        self.seen = {}  # id of a tensor -> (weak reference, tensor id)
        self.pending = {}  # id of a detached tensor -> (reference, source)
        self.leaves = {}  # identity of a storage -> (kind, name)
        self.leaf_ids = {}  # identity of a storage -> sid
        self.kept = []  # so that no leaf's identity is used again
        self.producer = {}  # tensor id -> node id
        self.path = [""]  # modules under way
        self.in_linear = 0
        self.in_cells = 0  # recurrent layers under way
        self.note = None  # what the next view is instead
        self.recording = True
        self.constants = 0
        self.unseen = []  # what could not be seen, a sentence each

    # ---- storages and tensors

    def add_leaf(self, tensor, kind, name):
        """Makes a parameter, buffer or input known before it is seen."""
        key, _ = storage_of(tensor)
        self.leaves.setdefault(key, (kind, name))
        self.kept.append(tensor)

    def leaf_storage(self, tensor):
        """The storage of a tensor that no op made."""
        key, size = storage_of(tensor)
        if key not in self.leaf_ids:
            if key not in self.leaves:
                name = f"constant{self.constants}"
                self.constants += 1
                self.add_leaf(tensor, "buffer", name)
            kind, name = self.leaves[key]
            self.leaf_ids[key] = self.new_storage(size, kind, name)
        return self.leaf_ids[key]

    def new_storage(self, size, kind, name):
        self.storages.append([len(self.storages), size, kind, name])
        return len(self.storages) - 1

    def new_tensor(self, tensor, sid):
        """A new id for the tensor, which may have had another before."""
        self.check(tensor)
        tid = len(self.tensors)
        self.tensors.append([
            tid, sid, list(tensor.shape), str(tensor.dtype).split(".")[1],
            list(tensor.stride()), tensor.storage_offset(),
        ])
        self.seen[id(tensor)] = (weakref.ref(tensor, self.ender(tid)), tid)
        return tid

    def ender(self, tid):
        """What notes after which node the last name of a tensor went."""
        def ends(_reference):
            if self.recording and tid in self.producer:
                self.nodes[-1].setdefault("ends", []).append(tid)
        return ends

    def known(self, tensor):
        reference, tid = self.seen.get(id(tensor), (None, None))
        return tid if reference and reference() is tensor else None

    def input_id(self, tensor):
        tid = self.known(tensor)
        reference, source = self.pending.get(id(tensor), (None, None))
        if reference and reference() is tensor:
            del self.pending[id(tensor)]
            tid = self.new_tensor(tensor, self.tensors[source][1])
            self.append("aten.detach", "default", [source], [tid], ["T"], 0)
        if tid is None:
            tid = self.new_tensor(tensor, self.leaf_storage(tensor))
        return tid

    def check(self, tensor):
        where = f'in module "{self.path[-1]}"' if self.path[-1] else ""
        if tensor.layout != self.torch.strided or getattr(
            tensor, "is_nested", False
        ):
            raise ExportError(
                f"a tensor of layout {tensor.layout} {where}: only dense "
                "tensors can be traced; convert it with to_dense()"
            )
        if tensor.is_quantized:
            raise ExportError(
                f"a quantized tensor {where}: export the float model"
            )
        if tensor.device != self.device:
            raise ExportError(
                f"tensors on {self.device} and on {tensor.device} {where}: "
                "move module and inputs to one device"
            )
        if str(tensor.dtype).split(".")[1] not in DTYPES:
            raise ExportError(f"a tensor of {tensor.dtype} {where}: the "
                              f"file knows {', '.join(sorted(DTYPES))}")
        if type(tensor) not in (self.torch.Tensor, self.torch.nn.Parameter):
            self.miss(f"what a {type(tensor).__name__} wraps {where}".strip())
        if tensor.dim() > MOST_DIMS:
            raise ExportError(f"a tensor of {tensor.dim()} dimensions "
                              f"{where}: memsim reads up to {MOST_DIMS}")

    def miss(self, what):
        """Notes once that something cannot be seen."""
        if what not in self.unseen:
            self.unseen.append(what)

    def miss_op(self, name):
        library, _, op = name.partition(".")
        if library != "aten":
            self.miss(f"what the op {name} saves: it is not PyTorch's own")
        elif op.endswith("_for_cpu"):
            self.miss(f"the kernel of a GPU for {name}, which the CPU alone "
                      "has: write attention with the sdpa backend \"math\"")

    # ---- nodes

    def noted(self, tensor, note):
        """The tensor once more, under a name that says what autocast would
        do to it here."""
        if not (type(tensor) in (self.torch.Tensor, self.torch.nn.Parameter)
                and tensor.dtype == self.torch.float32):
            return tensor
        self.note = note
        try:
            return tensor.view_as(tensor)
        finally:
            self.note = None

    def encode(self, value, found):
        """An argument as the file shows it; tensors go to found."""
        if isinstance(value, self.torch.Tensor):
            found.append(value)
            return "T"
        if isinstance(value, (list, tuple)):
            return [self.encode(item, found) for item in value]
        return plain(value)

    def detached(self, tensor, tid):
        """What no_grad hides from autograd is a detached alias."""
        if self.torch.is_grad_enabled() or not tensor.requires_grad:
            return tid
        row = list(self.tensors[tid])
        row[0] = len(self.tensors)
        self.tensors.append(row)
        self.append("aten.detach", "default", [tid], [row[0]], ["T"], 0)
        return row[0]

    def append(self, op, overload, ins, outs, args, flops):
        node = {
            "id": len(self.nodes), "op": op, "overload": overload,
            "mod": self.path[-1], "in": ins, "out": outs, "args": args,
            "flops": flops,
            "prod": sorted({self.producer[t] for t in ins
                            if t in self.producer}),
        }
        self.nodes.append(node)
        for tid in outs:
            self.producer[tid] = node["id"]
        return node

    def record(self, func, args, kwargs, result):
        name, overload = op_of(func)
        if name.startswith("quantized."):
            raise ExportError(f"the op {name}: export the float model")
        self.miss_op(name)
        tensors, outs = [], []
        shown = [self.encode(arg, tensors) for arg in args]
        for value in kwargs.values():
            self.encode(value, tensors)
        self.encode(result if isinstance(result, (list, tuple))
                    else [result], outs)
        if not outs:
            return  # .item() and the like: nothing that memory sees
        for tensor in tensors + outs:
            self.check(tensor)
        if name == "aten.lift_fresh":
            tensors, shown = [], []
        if name == "aten.detach":
            # Autograd detaches the tensors that it saves; only reads of them count.
            self.pending[id(outs[0])] = (weakref.ref(outs[0]),
                                         self.input_id(tensors[0]))
            return
        in_place = name.endswith("_")
        if self.note:
            name = self.note
        ins = [self.input_id(tensor) for tensor in tensors]
        by_storage = {storage_of(tensor)[0]: self.tensors[tid][1]
                      for tensor, tid in zip(tensors, ins)}
        if not in_place:
            ins = [self.detached(t, tid) for t, tid in zip(tensors, ins)]
        out_ids = []
        for tensor in outs:
            key, size = storage_of(tensor)
            if key not in by_storage:
                by_storage[key] = self.new_storage(size, "act", "")
            out_ids.append(self.new_tensor(tensor, by_storage[key]))
        if self.note:
            self.append(name, "default", ins, out_ids, ["T"], 0)
            return
        op = name.split(".", 1)[1]
        aliases = all(self.shares(tid, ins) for tid in out_ids)
        flops = 0
        if in_place or not aliases:
            flops = self.flops(op, args, tensors, outs)
        node = self.append(name, overload, ins, out_ids, shown, flops)
        # linear adds its bias in place, except where a mode looks on.
        if op == "add" and (self.in_linear or self.in_cell_linear(ins)):
            node["real_op"] = "aten.add_"

    def in_cell_linear(self, ins):
        """The C++ of recurrent layers calls linear too: a product, seen in
        three dimensions, and its bias."""
        made = [self.nodes[self.producer[t]] for t in ins[:1]
                if t in self.producer]
        return (self.in_cells and made and made[0] is self.nodes[-1]
                and made[0]["op"] == "aten._unsafe_view")

    def shares(self, tid, ins):
        return any(self.tensors[tid][1] == self.tensors[i][1] for i in ins)

    def flops(self, op, args, ins, outs):
        n = outs[0].numel()
        if op in FREE or not ins:
            return 0
        if op in ("mm", "bmm"):
            return 2 * n * ins[0].shape[-1]
        if op in ("addmm", "baddbmm"):
            return n * (2 * ins[1].shape[-1] + 1)
        if op == "convolution":
            weight = ins[1]
            places = ins[0].numel() if args[6] else n
            return 2 * places * weight.numel() // max(weight.shape[0], 1)
        if op.startswith("nll_loss"):
            return n
        return PER_ELEMENT.get(op, 1) * max(n, ins[0].numel())


def name_leaves(recorder, module, inputs, target):
    for name, tensor in module.named_parameters():
        kind = "param" if tensor.requires_grad else "buffer"
        recorder.add_leaf(tensor, kind, name)
    for name, tensor in module.named_buffers():
        recorder.add_leaf(tensor, "buffer", name)
    found = []
    recorder.encode(list(inputs), found)
    recorder.encode([target], found)
    for i, tensor in enumerate(found):
        recorder.add_leaf(tensor, "input", f"input{i}")


def add_unread(recorder):
    """Leaves that no op read take memory all the same."""
    for tensor in recorder.kept:
        key, _ = storage_of(tensor)
        kind, name = recorder.leaves.get(key, ("", ""))
        if kind == "param" and key not in recorder.leaf_ids:
            recorder.miss(f"a use of the parameter {name}: it gets no "
                          "gradient")
        recorder.leaf_storage(tensor)


def forget_pinned(nodes):
    """A note of x.to(dtype) looks at x and keeps it alive.  Where the two end
    together nothing is known of x itself."""
    end = {tid: node["id"] for node in nodes for tid in node.get("ends", ())}
    for node in nodes:
        if node["op"] != "autocast.to":
            continue
        source, note = node["in"][0], node["out"][0]
        if source in end and end[source] == end.get(note):
            nodes[end.pop(source)]["ends"].remove(source)


def hook_modules(torch, recorder, module):
    handles = []
    for name, child in module.named_modules():
        cells = isinstance(child, torch.nn.RNNBase)

        def enter(_module, _args, name=name, cells=cells):
            recorder.path.append(name)
            recorder.in_cells += cells

        def leave(_module, _args, _output, cells=cells):
            recorder.path.pop()
            recorder.in_cells -= cells

        handles.append(child.register_forward_pre_hook(enter))
        handles.append(child.register_forward_hook(leave))
    return handles


def check_module(torch, module):
    if not isinstance(module, torch.nn.Module):
        raise ExportError(
            f"a torch.nn.Module is needed, not {type(module).__name__}"
        )
    if hasattr(module, "_orig_mod"):
        raise ExportError("a module under torch.compile: export the module "
                          "that was compiled (module._orig_mod)")
    for name, child in module.named_modules():
        if isinstance(child, torch.jit.ScriptModule):
            raise ExportError(f'the scripted module "{name}": export the '
                              "eager one")


def device_of(torch, module, inputs):
    for tensor in list(module.parameters()) + list(inputs):
        if isinstance(tensor, torch.Tensor):
            return tensor.device
    return torch.device("cpu")


def scalars(torch, output):
    """The tensors of one float in an output, by name where there is one."""
    if isinstance(output, torch.Tensor):
        found = [("", output)]
    elif isinstance(output, dict):
        found = list(output.items())
    elif isinstance(output, (list, tuple)):
        found = [("", item) for item in output]
    else:
        found = []
    return [(name, tensor) for name, tensor in found
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1
            and tensor.requires_grad]


def first_tensor(torch, output):
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        for item in output:
            found = first_tensor(torch, item)
            if found is not None:
                return found
    return None


def take_loss(torch, output, loss, target):
    """The loss; True with it: the module computed it itself."""
    if loss is not None:
        value = loss(output) if target is None else loss(output, target)
        return value, False
    own = scalars(torch, output)
    own = [pair for pair in own if pair[0] == "loss"] or own
    if own:
        return own[0][1], True
    first = first_tensor(torch, output)
    if first is None:
        raise ExportError("the module returned no tensor; give a loss that "
                          "takes its output")
    return first.mean(), False


def check_loss(torch, recorder, value):
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise ExportError("the loss must be a tensor of one element")
    if value.grad_fn is None:
        raise ExportError("the loss does not depend on any parameter that "
                          "requires a gradient")
    custom = getattr(torch.autograd.function, "BackwardCFunction", ())
    if not custom:
        recorder.miss("custom autograd functions, whose backward cannot be "
                      "read off")
    todo, seen = [value.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, custom):
            raise ExportError(
                f"the custom autograd function {type(node).__name__}: its "
                "backward cannot be read off; write it in aten ops for the "
                "export, or take checkpointing out"
            )
        todo.extend(parent for parent, _ in node.next_functions)


def own_loss_start(nodes):
    """Where a module that returns its loss begins to compute it: behind the
    last matrix product and the module which that is in."""
    start = 0
    for node in nodes:
        if node["op"].split(".")[1] in MATRIX:
            start = node["id"]
    inside = nodes[start]["mod"]
    while start < len(nodes) - 1 and nodes[start]["mod"] == inside:
        start += 1
    return start


# Functions of several ops whose arguments autocast casts.
LOWERED = {
    "": ("einsum", "matmul"),
    "nn.functional": ("linear", "scaled_dot_product_attention"),
    "Tensor": ("matmul", "__matmul__", "__rmatmul__"),
}
CASTS = ("to", "float", "type", "type_as")


def watch(torch, recorder):
    """Replaces the functions that leave a note; what to put back."""
    originals = []

    def lowered(function):
        def call(*args, **kwargs):
            recorder.in_linear += function.__name__ == "linear"
            args = [recorder.noted(arg, "autocast.lower") for arg in args]
            kwargs = {key: recorder.noted(value, "autocast.lower")
                      for key, value in kwargs.items()}
            try:
                return function(*args, **kwargs)
            finally:
                recorder.in_linear -= function.__name__ == "linear"
        return call

    def cast(function):
        def call(self, *args, **kwargs):
            result = function(self, *args, **kwargs)
            typed = function.__name__ == "float" or any(
                isinstance(arg, (torch.dtype, torch.Tensor))
                for arg in (*args, *kwargs.values()))
            same = result is self and typed
            return recorder.noted(result, "autocast.to") if same else result
        return call

    def replace(owner, name, wrapper):
        function = getattr(owner, name, None)
        if function:
            originals.append((owner, name, function))
            setattr(owner, name, wrapper(function))

    for path, names in LOWERED.items():
        owner = torch
        for part in filter(None, path.split(".")):
            owner = getattr(owner, part)
        for name in names:
            replace(owner, name, lowered)
    for name in CASTS:
        replace(torch.Tensor, name, cast)
    return originals


def nothing_saved(torch):
    """Autograd saves no tensors, which then live as long as their names."""
    return torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: None, lambda nothing: nothing)


def trace(torch, recorder, module, inputs, keywords, loss, target):
    """Runs forward and loss once; the node where the loss begins."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            recorder.record(func, args, kwargs or {}, result)
            return result

    handles = hook_modules(torch, recorder, module)
    originals = watch(torch, recorder)
    try:
        with torch.enable_grad(), Mode(), nothing_saved(torch):
            output = module(*inputs, **keywords)
            start = len(recorder.nodes)
            value, own = take_loss(torch, output, loss, target)
            recorder.recording = False
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)
        for handle in handles:
            handle.remove()
    check_loss(torch, recorder, value)
    last = recorder.nodes[-1]["out"]
    if recorder.known(value) not in last[:1]:
        raise ExportError("the loss is not what the last op made: return it "
                          "last, compute nothing after it")
    return own_loss_start(recorder.nodes) if own else start


def write(document, file):
    rows = []
    for key, value in document.items():
        if key == "nodes":
            lines = ",\n".join(dump(node) for node in value)
            rows.append(f'"nodes":[\n{lines}\n]')
        else:
            rows.append(f"{dump(key)}:{dump(value)}")
    file.write("{\n" + ",\n".join(rows) + "\n}\n")


def dump(value):
    return json.dumps(value, separators=(",", ":"))


def of_batch(inputs, target, batch):
    """Inputs and target with another batch: rows of tensors whose first size
    is the batch are repeated or left out."""
    import torch

    whole = [inputs] if isinstance(inputs, torch.Tensor) else inputs
    given = batch_of(torch, list(whole.values()) if isinstance(whole, dict)
                     else list(whole))

    def resized(value):
        if isinstance(value, (list, tuple)):
            return type(value)(resized(item) for item in value)
        if isinstance(value, dict):
            return {key: resized(item) for key, item in value.items()}
        if (not isinstance(value, torch.Tensor) or value.dim() == 0
                or value.shape[0] != given):
            return value
        rows = torch.arange(batch, device=value.device) % max(given, 1)
        new = value.detach().index_select(0, rows)
        return new.requires_grad_(value.requires_grad)

    return resized(inputs), resized(target)


def export(module, inputs, loss=None, target=None, path=None, case=None,
           unseen=None):
    """Traces module(inputs) and loss(output, target); returns the document
    and writes it to path, where given.  What it could not see is appended to
    the list unseen, a sentence each."""
    import torch

    if not check_version(torch) and unseen is not None:
        unseen.append(f"whether torch {torch.__version__} does as 1.13 does, "
                      "with which this exporter is tested")
    check_module(torch, module)
    keywords = {}
    if isinstance(inputs, dict):
        inputs, keywords = (), inputs
    elif not isinstance(inputs, (list, tuple)):
        inputs = (inputs,)
    given = list(inputs) + list(keywords.values())
    recorder = Recorder(torch, device_of(torch, module, given))
    if recorder.device.type == "meta" and hasattr(torch.Tensor,
                                                  "untyped_storage"):
        recorder.miss("by documented calls, which tensors on meta share their "
                      "memory: UntypedStorage._cdata said so")
    name_leaves(recorder, module, given, target)
    start = trace(torch, recorder, module, inputs, keywords, loss, target)
    add_unread(recorder)
    forget_pinned(recorder.nodes)
    if not module.training:
        recorder.miss("dropout and other parts of training: the module is in "
                      "evaluation mode")
    if unseen is not None:
        unseen.extend(recorder.unseen)
    document = {
        "format": FORMAT,
        "case": case or type(module).__name__,
        "meta": {"batch": batch_of(torch, given), "torch": torch.__version__},
        "loss_start": start,
        "storages": recorder.storages,
        "tensors": recorder.tensors,
        "nodes": recorder.nodes,
    }
    if path:
        with open(path, "w", encoding="utf-8") as file:
            write(document, file)
    return document


def batch_of(torch, given):
    """The first size of the first input."""
    for value in given:
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            return value.shape[0]
    return 1


# ---- the command


def load(name):
    """The function that MODULE:FUNCTION names."""
    module_name, colon, function = name.rpartition(":")
    if not colon or not module_name or not function:
        raise ExportError(f'"{name}" is not MODULE:FUNCTION')
    sys.path.insert(0, os.getcwd())
    if module_name.endswith(".py"):
        folder, base = os.path.split(os.path.abspath(module_name))
        stem = os.path.splitext(base)[0]
        sys.path.insert(0, folder)
        spec = importlib.util.spec_from_file_location(stem, module_name)
        if not os.path.exists(module_name):
            raise ExportError(f'there is no file "{module_name}"')
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise ExportError(f"{error}; give a module that can be imported "
                              "or the path of a .py file") from error
    if not callable(getattr(module, function, None)):
        raise ExportError(f'"{module_name}" has no function "{function}"')
    return getattr(module, function)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="MODULE:FUNCTION")
    parser.add_argument("-o", metavar="FILE", dest="path",
                        help="default FUNCTION.graph.json; - is stdout")
    parser.add_argument("--batch", metavar="N", type=int,
                        help="export with another batch than the inputs'")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("export_torch: PyTorch is missing (Debian and Ubuntu: apt "
              "install python3-torch, then use /usr/bin/python3)",
              file=sys.stderr)
        return 5
    unseen = []
    try:
        case = arguments.what.rpartition(":")[2]
        made = load(arguments.what)()
        if not isinstance(made, (list, tuple)) or not 2 <= len(made) <= 4:
            raise ExportError(f"{arguments.what} must return (module, inputs"
                              "[, loss[, target]])")
        module, inputs, loss, target = (tuple(made) + (None, None))[:4]
        if arguments.batch is not None:
            if arguments.batch < 1:
                raise ExportError("--batch must be at least 1")
            inputs, target = of_batch(inputs, target, arguments.batch)
        document = export(module, inputs, loss, target, case=case,
                          unseen=unseen)
        path = arguments.path or f"{case}.graph.json"
        if path == "-":
            write(document, sys.stdout)
        else:
            with open(path, "w", encoding="utf-8") as file:
                write(document, file)
            print(f"{path}: {len(document['nodes'])} ops, "
                  f"{len(document['storages'])} storages", file=sys.stderr)
        for what in unseen:
            print(f"export_torch: not seen: {what}", file=sys.stderr)
    except ExportError as error:
        print(f"export_torch: {arguments.what}: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"export_torch: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
