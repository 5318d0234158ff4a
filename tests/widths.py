# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands on terminals of several widths: no line is wider than the
terminal, except what cannot be broken: a command to copy, or one word.

    python3 widths.py PROGRAM TESTS

Piped, the text is the same whatever COLUMNS says.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

WIDTHS = (50, 80, 120, 200)

LONG_POLICY = ("microbatch:4+deepspeed:2,dp=2+offload:optimizer/gradients,"
               "topk_ratio=0.1,overlap_step=1")

# Of each command its kinds of text: lines, tables, figures, advice, errors.
COMMANDS = """
run gpt2
run llama-2-7b -p checkpoint:full
run gpt2-xl --batch 8 -p swap:te=12
run gpt2-xl --batch 16 -p pipeline:4+microbatch:16
run gpt2 --batch 4 --gpus 8 -p tensor:2,sp+zero:1
run gpt2 --batch 4 -p %s
run gpt2 --lengths 512,1024,768 --steps 4 --allocator torch
explain gpt2
explain gpt2 --batch 4 -p checkpoint:sqrt --top 3
compare gpt2-xl -p none -p checkpoint:sqrt -p swap:te=24 -p checkpoint:full
compare gpt2 --batch 4 -p none -p checkpoint:full --explain
compare gpt2 --batch 4 -p none --checkpoint-all
compare gpt2 --allocators torch;torch,expandable_segments:True
fit gpt2 --batch 8 --device 4090
fit gpt2 --batch 8 --gpus 1,2
fit gpt2-xl --memory 4GiB
inspect gpt2
inspect tests/golden/files/hf-llama.json
diff gpt2 --batch 8 -p none -p checkpoint:full
diff snapshot.pickle gpt2 --batch 4
check cases.json
alloc trace.txt --allocator torch --allocator bfc --allocator buddy
alloc snapshot.pickle --leaks
alloc trace.txt --allocator arena,order=exact --allocator arena
calibrate trace.json --device a100
sweep gpt2 --grid batch=1,2 -o rows.csv
help
run
run gpt2 -p checkpointz
run gpt2 -p microbatch:4+checkpoint:fullx+tensor:4,sp+pipeline:4
run gpt2 --batchez 4
run gpt2 --micro-batch-size 4
run ./bad.json
run gpt2 --from ds_config.json --gpus 8
nothing
""" % LONG_POLICY

LAYOUT = {
    "bad.json": '{"memsim": 1, "name": "bad", "family": "decoder", "config": '
                '{"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000, '
                '"positions": 128, "hiden": 3}}\n',
    "ds_config.json": '{"train_micro_batch_size_per_gpu": 2, "bf16": {'
                      '"enabled": true}, "sparse_gradients": true,'
                      '"zero_optimization": {"stage": 2, "what_is_this": 1}}',
    "cases.json": '{"memsim_checks": 1, "cases": [{"name": "a case with a '
                  'rather long name", "model": "gpt2", "limit": "1GiB"}, '
                  '{"name": "b", "model": "gpt2"}]}',
}


def printed(words, columns):
    """What the command prints on a terminal, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 50, columns, 0, 0))
    environment = dict(os.environ, TERM="xterm")
    environment.pop("COLUMNS", None)
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        text += piece
    child.wait()
    os.close(ours)
    text = text.decode("utf-8").replace("\r\n", "\n")
    return re.sub(r"\033\[[0-9;]*m", "", text), child.returncode


def is_whole(line):
    """Is there nothing to break: a command, its arguments, or one word?"""
    words = re.sub(r"^ *[^ :]*: +", "", line).strip()
    return (re.match(r"memsim |--|understood as: memsim ", words) is not None
            or " " not in words)


def check(words, columns):
    text, status = printed(words, columns)
    wide = [line for line in re.split("[\n\r]", text)
            if len(line) > columns and not is_whole(line)]
    for line in wide[:3]:
        print("widths.py: %d columns: memsim %s: %d: %s"
              % (columns, " ".join(words[1:]), len(line), line),
              file=sys.stderr)
    if status not in (0, 1, 2, 3) or not text:
        print("widths.py: memsim %s: exit status %d: %s"
              % (" ".join(words[1:]), status, text[:300]), file=sys.stderr)
        return False
    return not wide


def prepare(program, tests):
    os.symlink(tests, "tests")
    for name, text in LAYOUT.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    with open("trace.txt", "w", encoding="utf-8") as file:
        file.write("a 1 5000000\na 2 70000000\nf 1\na 3 1000000\nf 2\nf 3\n")
    subprocess.run([program, "run", "gpt2", "--batch", "2", "-q",
                    "--snapshot", "snapshot.pickle"], check=True)
    with open("trace.json", "wb") as file:
        subprocess.run([sys.executable, os.path.join(tests, "kineto.py"),
                        "2", "2", "1.5"],
                       stdout=file, check=True)


def topics(program):
    text = subprocess.run([program, "help"], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    return re.findall(r"^  ([a-z-]+) ", text.split("Questions", 1)[1], re.M)


def same_piped(program):
    """A pipe's bytes do not depend on the terminal."""
    texts = [subprocess.run([program, "run", "gpt2"], check=True,
                            env=dict(os.environ, COLUMNS=columns),
                            stdout=subprocess.PIPE).stdout
             for columns in ("50", "200")]
    if texts[0] != texts[1]:
        print("widths.py: COLUMNS changes what a pipe gets", file=sys.stderr)
    return texts[0] == texts[1]


def main():
    program, tests = sys.argv[1:]
    prepare(program, tests)
    lines = COMMANDS.strip().split("\n")
    lines += ["help " + topic for topic in topics(program)]
    lines += ["help " + word for word in ("checkpoint", "pipeline", "fsdp",
                                          "swap", "conv2d", "decoder",
                                          "activation checkpointing")]
    fine = same_piped(program)
    for line in lines:
        for columns in WIDTHS:
            fine &= check([program] + line.split(), columns)
    sys.exit(0 if fine else 1)


main()
