#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python package says what the command line says, to the byte; its
failures are memsim's; it keeps no memory; threads may use it.

    PYTHONPATH=build/debug/python python3 tests/python/test_memsim.py
"""

import json
import os
import pickle
import subprocess
import tempfile
import threading
import unittest

import memsim
from memsim import program

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "../golden/files")

# A model, what a caller says, what a person types.
SAME = [
    ("gpt2", {}, ""),
    ("gpt2", {"batch": 8, "policy": "checkpoint:sqrt"},
     "--batch 8 -p checkpoint:sqrt"),
    ("gpt2", {"policy": ["checkpoint:full", "offload:optimizer"]},
     "-p checkpoint:full -p offload:optimizer"),
    ("gpt3", {"policy": "checkpoint:sqrt+zero:3", "gpus": 64},
     "-p checkpoint:sqrt+zero:3 --gpus 64"),
    ("llama-3-8b", {"policy": "fsdp", "gpus": 8, "precision": "bf16",
                    "set": {"lora.rank": 16, "lora.base": "nf4"}},
     "-p fsdp --gpus 8 --precision bf16 --set lora.rank=16 --set "
     "lora.base=nf4"),
    ("mixtral-8x7b", {"policy": "zero:3,dp=8+checkpoint:full"},
     "-p zero:3,dp=8+checkpoint:full"),
    ("gpt2-xl", {"policy": "pipeline:4+microbatch:8", "batch": 8},
     "-p pipeline:4+microbatch:8 --batch 8"),
    ("gpt2", {"policy": "swap:torchtune", "batch": 16, "book": "device"},
     "-p swap:torchtune --batch 16 --book device"),
    ("vgg16", {"policy": "swap:vdnn=all", "batch": 64, "memory": "5.5GiB",
               "wall": True},
     "-p swap:vdnn=all --batch 64 --memory 5.5GiB --wall"),
    ("resnet50", {"batch": 32, "device": "a100", "optimizer": "momentum",
                  "allocator": "exact"},
     "--batch 32 --device a100 --optimizer momentum --allocator exact"),
    ("bert-large", {"precision": "fp32", "kernels": "eager", "steps": 2,
                    "framework": "torch-1.13", "hold_output": "none"},
     "--precision fp32 --kernels eager --steps 2 --framework torch-1.13 "
     "--set hold_output=none"),
    ("gpt2", {"lengths": [512, 1024, 768], "allocator": "torch"},
     "--lengths 512,1024,768 --allocator torch"),
    ("gpt2", {"set": {"model.layers": 4}, "sequence": None},
     "--set model.layers=4"),
    (FILES + "/names.json", {}, ""),
]


def typed(*words, status=0):
    """What the program prints, as a person would call it."""
    done = subprocess.run([program.path(), *words], capture_output=True,
                          check=False)
    if done.returncode != status:
        raise AssertionError(f"{words}: {done.stderr.decode()}")
    return done.stdout.decode()


def said(*words):
    """Status and words of a failure, without the line that it cites."""
    done = subprocess.run([program.path(), *words], capture_output=True,
                          check=False)
    lines = done.stderr.decode().rstrip("\n").split("\n")
    text = [line for line in lines if not line.startswith("      |")]
    return done.returncode, "\n".join(text)[len("memsim: "):]


class Same(unittest.TestCase):
    """To the byte."""

    def test_run(self):
        for model, settings, words in SAME:
            with self.subTest(model=model, words=words):
                result = memsim.run(model, **settings)
                want = typed("run", model, *words.split(), "--json")
                self.assertEqual(result.json + "\n", want)
                self.assertEqual(result.data, json.loads(want))
                self.assertEqual(
                    subprocess.run(
                        f'memsim() {{ "{program.path()}" "$@"; }}\n'
                        f"{result.command} --json", shell=True, check=True,
                        capture_output=True, text=True).stdout, want)

    def test_job_after_others(self):
        with memsim.Job("gpt2") as job:
            for policy in "checkpoint:full", None, "zero:1,dp=4", None:
                for batch in 4, 1:
                    job.set("policy", policy)
                    job.set("batch", batch)
                    words = ["-p", policy] if policy else []
                    want = typed("run", "gpt2", "--batch", str(batch), *words,
                                 "--json")
                    self.assertEqual(job.run().decode() + "\n", want)
                    peak = json.loads(want)["peak"]
                    numbers = job.evaluate()
                    self.assertEqual(numbers["by_category"],
                                     peak["by_category"])
                    self.assertEqual(numbers["peak_allocated_bytes"],
                                     peak["allocated_bytes"])
                    other = job.copy()
                    self.assertEqual(other.peak(), job.peak())
                    other.close()

    def test_compare(self):
        both = memsim.compare("gpt2", policy=["none", "checkpoint:sqrt"],
                              batch=4)
        self.assertEqual(both.json + "\n", typed(
            "compare", "gpt2", "-p", "none", "-p", "checkpoint:sqrt",
            "--batch", "4", "--json"))
        self.assertEqual([row["policy"] for row in both.rows],
                         ["none", "checkpoint:sqrt"])
        self.assertEqual(both.results["none"].peak,
                         memsim.run("gpt2", batch=4).peak)
        named = memsim.compare("gpt2", variants={
            "full": "", "LoRA": {"lora.rank": 16}}, grid={"batch": [1, 2]})
        self.assertEqual(named.json + "\n", typed(
            "compare", "gpt2", "--variant", "full: ", "--variant",
            "LoRA: lora.rank=16", "--grid", "batch=1,2", "--json"))

    def test_sweep(self):
        rows = memsim.sweep("gpt2", {
            "policy": ["none", "zero:3,dp=8"], "batch": "1..4*2"}, jobs=1)
        want = typed("sweep", "gpt2", "--grid", "policy=none;zero:3,dp=8",
                     "--grid", "batch=1..4*2", "--json")
        self.assertEqual(rows, [json.loads(x) for x in want.splitlines()])
        self.assertEqual(len(rows), 6)

    def test_fit(self):
        found = memsim.fit("gpt2", policy="none", memory="4GiB")
        self.assertEqual(found.json + "\n", typed(
            "fit", "gpt2", "-p", "none", "--memory", "4GiB", "--json"))
        self.assertTrue(found.fits)
        self.assertIn("peak_allocated_bytes", found.best)
        none = memsim.fit("gpt2", policy="none", memory="501MiB")
        self.assertFalse(none.fits)
        self.assertIsNone(none.best)

    def test_lists(self):
        self.assertEqual(
            program.arguments("fit", ["gpt2"], gpus=[1, 4], policy=["a", "b"],
                              wall=True, batch=None),
            ["fit", "gpt2", "--gpus", "1,4", "--policy", "a", "--policy", "b",
             "--set", "wall=true"])

    def test_ask(self):
        self.assertEqual(memsim.ask("inspect", "gpt2").json + "\n",
                         typed("inspect", "gpt2", "--json"))

    def test_page_and_saved(self):
        result = memsim.run("gpt2", batch=2, policy="checkpoint:full")
        self.assertEqual(result.to_html(), typed(
            "report", "gpt2", "--batch", "2", "--policy", "checkpoint:full",
            "-o", "-"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.json")
            again = memsim.load(result.save(path))
            self.assertEqual(again.json, result.json)
            with open(path, "rb") as file:
                self.assertEqual(again.to_html(), subprocess.run(
                    [program.path(), "report", "-", "-o", "-"], stdin=file,
                    check=True, capture_output=True).stdout.decode())
            with self.assertRaises(memsim.UsageError):
                again.timeline
            page = os.path.join(folder, "page.html")
            self.assertEqual(result.to_html(page), page)
            self.assertGreater(os.path.getsize(page), 1000)


class Numbers(unittest.TestCase):
    """What a result offers."""

    def test_timeline(self):
        result = memsim.run("gpt2", allocator="exact")
        line = result.timeline
        view = memoryview(line.bytes)
        self.assertEqual((view.format, view.itemsize, view.contiguous),
                         ("Q", 8, True))
        self.assertEqual(max(line.bytes), result.peak)
        self.assertEqual(len(line), len(line.bytes))
        self.assertEqual(result["levels"]["end_bytes"], json.loads(typed(
            "run", "gpt2", "--allocator", "exact", "--json"))["levels"][
                "end_bytes"])
        at_peak = line.bytes.index(result.peak)
        self.assertEqual(line.t_ns[at_peak], result["peak"]["time_ns"])
        self.assertIn("activations", line.by_category)

    def test_ranks(self):
        result = memsim.run("gpt2-xl", policy="pipeline:4+microbatch:8",
                            batch=8)
        for rank in result["ranks"]:
            line = result.timeline_of(rank["rank"])
            self.assertEqual(max(line.bytes), rank["peak"]["allocated_bytes"])
        with self.assertRaisesRegex(memsim.UsageError, "no rank 9"):
            result.timeline_of(9)

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        line = memsim.run("gpt2").timeline
        levels = numpy.asarray(line.bytes)
        self.assertEqual(levels.dtype, numpy.uint64)
        self.assertEqual(int(levels.max()), max(line.bytes))
        self.assertTrue(numpy.shares_memory(levels, numpy.asarray(line.bytes)))

    def test_changed_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            text = typed("inspect", "gpt2", "--dump", "model")
            for layers in 12, 6:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                if layers == 12:
                    result = memsim.run(path)
                    text = text.replace('"layers": 12', '"layers": 6')
                    self.assertEqual(max(result.timeline.bytes), result.peak)
            with self.assertRaisesRegex(memsim.InputError, "has changed"):
                result.timeline

    def test_breakdown(self):
        result = memsim.run("gpt2", policy="checkpoint:full")
        self.assertEqual(sum(result.breakdown.values()), result.peak)
        self.assertIn("GiB", str(result))
        self.assertEqual(result.row["step_ns"], result.step_ns)

    def test_size(self):
        self.assertEqual(memsim.size("70GiB"), 70 << 30)
        self.assertEqual(memsim.size("80GB"), 80 * 10 ** 9)
        self.assertEqual(memsim.size(5), 5)


class Failures(unittest.TestCase):
    """Exceptions with memsim's words."""

    BAD = [
        (memsim.UsageError, {"policy": "checkpiont"}, "-p checkpiont"),
        (memsim.UsageError, {"memory": "80G"}, "--memory 80G"),
        (memsim.UsageError, {"device": "h1000"}, "--device h1000"),
        (memsim.UsageError, {"policy": "zero:3"}, "-p zero:3"),
        (memsim.UsageError, {"batch": 0}, "--batch 0"),
        (memsim.InfeasibleError,
         {"policy": "checkpoint:optimal,budget=1MiB"},
         "-p checkpoint:optimal,budget=1MiB"),
    ]

    def test_same_words(self):
        for kind, settings, words in self.BAD:
            with self.subTest(words=words):
                status, text = said("run", "gpt2", *words.split())
                with self.assertRaises(kind) as caught:
                    memsim.run("gpt2", **settings)
                self.assertEqual(caught.exception.status, status)
                self.assertIn(caught.exception.what, text)
                for line in caught.exception.hint.splitlines():
                    self.assertIn(line, text)
                with self.assertRaises(kind) as caught:
                    memsim.ask("run", "gpt2", **settings)
                self.assertEqual(caught.exception.status, status)

    def test_models(self):
        for call in (memsim.run, memsim.fit, memsim.compare,
                     lambda model: memsim.sweep(model, {"batch": [1]})):
            with self.assertRaises(memsim.InputError) as caught:
                call("nope")
            self.assertIn("neither a file here nor a built-in model",
                          str(caught.exception))
        with self.assertRaises(memsim.UsageError):
            memsim.run("-")
        with self.assertRaises(memsim.UsageError):
            memsim.run("a\0b")
        with self.assertRaises(TypeError):
            memsim.run(3)

    def test_keys(self):
        with self.assertRaisesRegex(memsim.UsageError, 'unknown key "bacth"'):
            memsim.run("gpt2", bacth=3)
        with self.assertRaises(memsim.UsageError):
            memsim.compare("gpt2", grid={"batc": [1]})

    def test_closed(self):
        job = memsim.Job("gpt2")
        job.close()
        job.close()
        for call in job.run, job.peak, job.evaluate, job.copy:
            with self.assertRaisesRegex(memsim.UsageError, "closed"):
                call()

    def test_pickled(self):
        with self.assertRaises(memsim.Error) as caught:
            memsim.run("gpt2", policy="checkpiont")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(str(again), str(caught.exception))
        self.assertEqual(type(again), memsim.UsageError)

    def test_no_gnuplot(self):
        result = memsim.run("gpt2")
        path = os.environ["PATH"]
        os.environ["PATH"] = "/nonexistent"
        try:
            with self.assertRaises(memsim.ProgramError) as caught:
                result.plot()
        finally:
            os.environ["PATH"] = path
        self.assertIn("gnuplot was not found", str(caught.exception))
        self.assertIn("memsim report", caught.exception.hint)

    def test_plot(self):
        try:
            picture = memsim.run("gpt2").plot(title="a title")
        except memsim.ProgramError as error:
            self.skipTest(str(error))
        self.assertIn("<svg", picture)
        self.assertIn("a title", picture)


class Expectations(unittest.TestCase):
    """memsim.expect()."""

    def test_kept(self):
        with memsim.expect(peak="70GiB", reserved="70GiB", host=0,
                           step="1s", fits=True) as seen:
            memsim.run("gpt2")
            with memsim.expect(peak="3GiB"):
                memsim.run("gpt2", batch=1)
        self.assertEqual(len(seen.results), 2)

    def test_broken(self):
        with self.assertRaises(AssertionError) as caught:
            with memsim.expect(peak="2GiB", step="1ms"):
                memsim.run("gpt2", batch=4)
        self.assertIn("is more than 2GiB by", str(caught.exception))
        self.assertIn("is more than 1ms by", str(caught.exception))
        self.assertIn("memsim run gpt2 --batch 4", str(caught.exception))
        with self.assertRaisesRegex(AssertionError, "does not fit"):
            with memsim.expect(fits=True):
                memsim.run("gpt3")
        with self.assertRaisesRegex(AssertionError, "nothing was simulated"):
            with memsim.expect(peak="2GiB"):
                pass

    def test_other_failures_go_first(self):
        with self.assertRaises(KeyError):
            with memsim.expect(peak="1GiB"):
                memsim.run("gpt2")
                raise KeyError
        with self.assertRaisesRegex(memsim.UsageError, "did you mean 70GiB"):
            memsim.expect(peak="70G")
        with self.assertRaisesRegex(memsim.UsageError, "is no time"):
            memsim.expect(step="fast")


class Lasting(unittest.TestCase):
    """Memory and threads."""

    @staticmethod
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @unittest.skipUnless(os.path.exists("/proc/self/statm"), "no /proc")
    def test_a_thousand_runs(self):
        def some(n):
            for i in range(n):
                memsim.run("gpt2", batch=1 + i % 3, allocator="exact",
                           set={"model.layers": 2})
                if i % 10 == 0:
                    with self.assertRaises(memsim.Error):
                        memsim.run("gpt2", policy="nope")
        some(100)
        before = self.resident()
        some(1000)
        self.assertLess(self.resident() - before, 1 << 20)

    def in_threads(self, works):
        failures = []

        def guarded(work):
            try:
                work()
            except BaseException as error: # told by the test
                failures.append(error)
        threads = [threading.Thread(target=guarded, args=(work,))
                   for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_jobs_of_threads(self):
        cases = SAME[:4]
        want = [memsim.run(model, **settings).json
                for model, settings, _ in cases]

        def work(i):
            for _ in range(5):
                model, settings, _words = cases[i]
                self.assertEqual(memsim.run(model, **settings).json, want[i])
        self.in_threads([lambda i=i: work(i) for i in range(4)])

    def test_a_shared_job(self):
        with memsim.Job("gpt2", batch=2) as job:
            want = job.run()

            def work():
                for _ in range(10):
                    self.assertEqual(job.run(), want)
                    self.assertEqual(job.peak(), peak)
            peak = job.peak()
            self.in_threads([work] * 4)

    def test_expectations_of_threads(self):
        with memsim.expect(peak="3GiB"):
            memsim.run("gpt2")
            self.in_threads([lambda: memsim.run("gpt2", batch=16)])


if __name__ == "__main__":
    unittest.main()
