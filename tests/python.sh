#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Python package of a build, its example, and its wheel: unpacked elsewhere
# it runs by itself; the same build gives the same wheel.
#
#   tests/python.sh SOURCE BUILD       exit 77: there is no python3
set -eu
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
unset MEMSIM_LIBRARY MEMSIM_PROGRAM
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
if ! command -v python3 >/dev/null; then
    echo "python.sh: skipped, there is no python3" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "python.sh: $*" >&2
    exit 1
}

PYTHONPATH=$build/python python3 "$source/tests/python/test_memsim.py"
PYTHONPATH=$build/python python3 "$source/tests/python/plan.py" >said ||
    fail "the example does not run"
grep -q 'GiB' said || fail "the example says $(cat said)"

if readelf -d "$build/libmemsim.so" | grep -q igraph; then
    echo "python.sh: no wheel of a build with igraph's shared library"
    exit 0
fi

# ---- the wheel

wheel() { # a folder that there is not
    mkdir "$1"
    python3 "$source/tools/python/wheel.py" "$build/python/memsim" "$1" |
        sed 's|.*/||'
}
name=$(wheel one)
[ "$(wheel two)" = "$name" ] || fail "another name the second time"
cmp "one/$name" "two/$name" || fail "another wheel the second time"
python3 -m zipfile -e "one/$name" unpacked
chmod +x unpacked/memsim/memsim # as pip does, which keeps the modes
ldd unpacked/memsim/libmemsim.so.1 |
    grep -vE 'linux-vdso|lib(c|m)\.so\.6|ld-linux' &&
    fail "the library needs others"
cat >check.py <<'END'
import base64, csv, glob, hashlib, os, sys
import memsim
assert memsim.__file__.startswith(os.path.join(os.getcwd(), "unpacked"))
memsim.library.load()
assert memsim.program.path().startswith(os.path.dirname(memsim.__file__))
print(memsim.run("gpt3", policy="checkpoint:sqrt").json)
record = glob.glob("unpacked/memsim-*.dist-info/RECORD")[0]
listed = set()
with open(record, encoding="utf-8") as file:
    for path, digest, size in csv.reader(file):
        listed.add(path)
        if digest:
            with open(os.path.join("unpacked", path), "rb") as one:
                data = one.read()
            said = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            assert digest == "sha256=" + said.decode().rstrip("=")
            assert int(size) == len(data)
there = {os.path.relpath(os.path.join(top, name), "unpacked")
         for top, _, names in os.walk("unpacked") for name in names}
assert there == listed, there ^ listed
END
PYTHONPATH=unpacked python3 check.py >run.json ||
    fail "the unpacked wheel does not run"
"$build/memsim" run gpt3 -p checkpoint:sqrt --json | cmp - run.json ||
    fail "the unpacked wheel says something else"
PYTHONPATH=unpacked python3 -m memsim run gpt2 --json >run.json
"$build/memsim" run gpt2 --json | cmp - run.json ||
    fail "python3 -m memsim says something else"
