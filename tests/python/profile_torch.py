#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""memsim.profile() under PyTorch: what a formula says of a batch is what the
exporter records with it; what cannot grow is refused; run by tests/export.sh.

    PYTHONPATH=build/debug/python /usr/bin/python3 tests/python/profile_torch.py
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import memsim
from memsim import export_torch, profiles, program


class Words(nn.Module):
    """Positions that do not grow with the batch, a loss of its own."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.places = nn.Embedding(12, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.head = nn.Linear(16, 50)

    def forward(self, ids, labels):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.block(self.words(ids) + self.places(places))
        logits = self.head(x)
        return {"loss": F.cross_entropy(logits.flatten(0, 1),
                                        labels.flatten())}


class Do(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.fc = body, nn.Linear(8, 16)

    def forward(self, x):
        return self.body(self.fc(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x):
        return self.cells(x)[0].mean()


def contrast(z):
    """Squares of the batch; a scale that is no whole number."""
    return (torch.logsumexp(z @ z.t(), 1) * (1 / z.shape[0])).sum()


def depends(z):
    """Needs data, which the device meta does not have."""
    return z.relu().mean() if z.sum().item() > -1e9 else z.mean()


def net():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8 * 7 * 7, 10))


def words(batch):
    return {"ids": torch.randint(0, 50, (batch, 12)),
            "labels": torch.randint(0, 50, (batch, 12))}


CASES = { # module, inputs, loss, target
    "net": lambda: (net(), torch.randn(4, 3, 16, 16), F.cross_entropy,
                    torch.randint(0, 10, (4,))),
    "mlp": lambda: (nn.Sequential(nn.Linear(8, 32), nn.ReLU(),
                                  nn.Dropout(0.1), nn.Linear(32, 4)),
                    torch.randn(2, 8), None, None),
    "words": lambda: (Words(), words(3), None, None),
    "recurrent": lambda: (Recurrent(), torch.randn(6, 5, 8), None, None),
    "contrast": lambda: (Do(contrast), torch.randn(4, 8), None, None),
    "depends": lambda: (Do(depends), torch.randn(4, 8), None, None),
}


class Batches(unittest.TestCase):
    def test_every_batch(self):
        for name, make in CASES.items():
            module, inputs, loss, target = make()
            profile = memsim.profile(module, inputs, loss, target)
            self.assertEqual(profile.unseen, [], name)
            for batch in 1, 4, 9, 16:
                with self.subTest(name=name, batch=batch):
                    now, aim = export_torch.of_batch(inputs, target, batch)
                    seen = export_torch.export(module, now, loss, aim)
                    profiles.compare(profile.document(batch), seen, "")

    def test_run(self):
        profile = pickle.loads(pickle.dumps(memsim.profile(
            *CASES["net"](), case="net")))
        with tempfile.TemporaryDirectory() as folder:
            path = profile.save(os.path.join(folder, "net.graph.json"), 32)
            for words_, settings in (
                    ([], {}), (["-p", "checkpoint:sqrt"],
                               {"policy": "checkpoint:sqrt"})):
                want = subprocess.run(
                    [program.path(), "run", path, *words_, "--json"],
                    check=True, capture_output=True, text=True).stdout
                result = profile.run(batch=32, **settings)
                self.assertEqual(result.json + "\n", want)
                self.assertEqual(len(result.timeline), result["events"])
            self.assertEqual(memsim.run(path).json, profile.run(
                batch=32).json)
        parts = profile.run(batch=32, policy="microbatch:4")
        self.assertEqual(parts["settings"]["training.batch"], 32)
        self.assertEqual(parts["model"], "net.graph")
        self.assertLess(parts["saved_for_backward_bytes"],
                        profile.run(batch=32)["saved_for_backward_bytes"])
        rows = memsim.sweep(profile, {"batch": [2, 4], "policy": [
            "none", "checkpoint:full"]})
        self.assertEqual([(row["point"], row["training.batch"])
                          for row in rows], [(1, 2), (2, 2), (3, 4), (4, 4)])
        for row in rows:
            self.assertEqual(row["peak_allocated_bytes"], profile.run(
                batch=row["training.batch"], policy=row["policy"],
                allocator="exact").peak)
        self.assertEqual(
            [row["peak_allocated_bytes"] for row in memsim.sweep(
                profile, {"policy": ["none", "microbatch:2"]}, batch=8)],
            [profile.run(batch=8, policy=policy, allocator="exact").peak
             for policy in ("none", "microbatch:2")])
        self.assertEqual(profile.run(batch=8).command,
                         "memsim run net.graph.json")
        both = memsim.compare(profile, batch=8, policy=["none",
                                                        "checkpoint:full"])
        self.assertEqual(both.results["none"].peak, profile.run(batch=8).peak)
        self.assertTrue(memsim.fit(profile, batch=8, policy="none").fits)
        with self.assertRaisesRegex(memsim.UsageError, "one command for each"):
            memsim.compare(profile, batch=8, policy=["none", "microbatch:2"])
        with self.assertRaisesRegex(memsim.UsageError, "beside other models"):
            memsim.compare(profile, "gpt2")
        with self.assertRaisesRegex(memsim.UsageError, "equal micro-batches"):
            profile.run(batch=30, policy="microbatch:4")
        for bad in 0, -1, "x", True, 2.5:
            with self.assertRaisesRegex(memsim.UsageError, "no number"):
                profile.run(batch=bad)

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "net.py"), "w",
                      encoding="utf-8") as file:
                file.write("import torch\n\ndef make():\n    return "
                           "torch.nn.Linear(8, 8), torch.randn(2, 8)\n")
            subprocess.run(
                [sys.executable, export_torch.__file__, "net.py:make",
                 "--batch", "5"], cwd=folder, check=True, capture_output=True)
            with open(os.path.join(folder, "make.graph.json"),
                      encoding="utf-8") as file:
                made = json.load(file)
        self.assertEqual(made, memsim.profile(
            nn.Linear(8, 8), torch.randn(2, 8), case="make").document(5))

    def test_refused(self):
        fixed = Do(lambda z: (z + z.new_zeros(4, 16)).mean())
        with self.assertRaisesRegex(memsim.InputError, "another batch") as it:
            memsim.profile(fixed, torch.randn(4, 8))
        self.assertIn("batch=False", it.exception.hint)
        norm = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
        with self.assertRaisesRegex(memsim.UsageError, "one sample: Exp"):
            memsim.profile(norm, torch.randn(4, 8)).run(batch=1)
        kept = memsim.profile(fixed, torch.randn(4, 8), batch=False)
        self.assertIn("peak", kept.run().data)
        with self.assertRaisesRegex(memsim.UsageError, "batch=False"):
            kept.run(batch=8)
        ways = Do(lambda z: (z.relu() if len(z) % 2 else z.tanh()).mean())
        with self.assertRaisesRegex(memsim.InputError, "does not grow"):
            memsim.profile(ways, torch.randn(4, 8))
        with self.assertRaisesRegex(memsim.InputError, "torch.nn.Module"):
            memsim.profile(len, torch.randn(4, 8))

    def test_unseen(self):
        part = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).eval()
        self.assertIn("evaluation mode",
                      " ".join(memsim.profile(part, torch.ones(4, 8)).unseen))
        less = Do(lambda z: z.mean())
        less.more = nn.Linear(3, 3)
        self.assertIn("the parameter more.weight", " ".join(
            memsim.profile(less, torch.ones(4, 8)).unseen))

        class Mine(torch.Tensor):
            pass
        recorder = export_torch.Recorder(torch, torch.device("cpu"))
        recorder.check(torch.ones(4, 8).as_subclass(Mine))
        recorder.miss_op("mine.product")
        recorder.miss_op("aten._attention_for_cpu")
        recorder.miss_op("aten.add")
        said = " ".join(recorder.unseen)
        for words_ in "a Mine wraps", "mine.product saves", "the CPU alone":
            self.assertIn(words_, said)
        self.assertEqual(len(recorder.unseen), 3)

    def test_large(self):
        try:
            from torchvision.models import resnet50
        except ImportError:
            self.skipTest("there is no torchvision")
        module = resnet50()
        begin = time.process_time()
        memsim.profile(module, torch.randn(2, 3, 224, 224))
        self.assertLess(time.process_time() - begin, 10)


if __name__ == "__main__":
    unittest.main()
