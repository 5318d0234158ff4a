#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What run --snapshot, --lifetimes and --allocations write is what Python's
# pickle, PyTorch's _memory_viz.py (where it is installed), planners and
# memsim alloc read, and all tell of the same step:
#
#   tests/memoryviz.sh [MEMSIM]    default: build/debug/memsim
#
# 77: there is no python3.
set -eu
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
memsim=${1-$here/../build/debug/memsim}
if ! command -v python3 >/dev/null; then
    echo "memoryviz.sh: skipped, there is no python3" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() { # a run
    "$memsim" run "$@" -q --snapshot "$folder/pickle" \
        --lifetimes "$folder/csv" --allocations "$folder/trace"
    "$memsim" run "$@" --json >"$folder/run"
    "$memsim" alloc "$folder/pickle" --json >"$folder/pickled"
    "$memsim" alloc "$folder/trace" --json >"$folder/traced"
    (cd "$folder" && python3 "$here/memoryviz.py" pickle csv run pickled traced)
}

check gpt2
check gpt2 -p checkpoint:sqrt+microbatch:2 --batch 4
check gpt2 -p fsdp:dp=8,impl=1,limit=0 --batch 8
check gpt2 -p swap:torchtune --batch 16 --book device
check "$here/golden/files/names.json"

# ---- with the allocator of the run, its options and version

pool() { # options
    echo "--allocator $1"
    check gpt2 --steps 1 --allocator "$1"
    python3 "$here/memoryviz.py" pool "$1" "$folder/pickle" "$folder/run" \
        "$folder/pickled" "$folder/traced"
}
pool torch,version=2.4
pool torch,expandable_segments:True
pool torch,max_split_size_mb:32,garbage_collection_threshold:0.75
pool torch,version=2.1,roundup_power2_divisions:4
pool 'torch,roundup_power2_divisions:[64:8,256:4,>:2]'
pool torch,large_segment_size_mb:40,va=firstfit

# ---- leaks by frames

python3 "$here/memoryviz.py" leak 1 >"$folder/leaks"
python3 "$here/memoryviz.py" leak 0 >"$folder/none"
"$memsim" alloc "$folder/leaks" --leaks | sed -n '/^as recorded/,$p' |
    tee "$folder/told"
grep -q '^ *12.00 MiB  *1  *5  cache (train.py:31) < main (train.py:7)$' \
    "$folder/told"
grep -q '^leaks: 1 of 2 groups grow at 5 recurrences of 2 allocations$' \
    "$folder/told"
"$memsim" alloc "$folder/none" --leaks |
    grep '^leaks: nothing grows at 5 recurrences of 2 allocations$'

# ---- the same of snapshots of successive steps

for anew in 0 1; do
    python3 "$here/memoryviz.py" steps "$folder" $anew
    "$memsim" alloc "$folder"/step?.pickle --leaks >"$folder/told"
    grep '^as recorded: 4 of 4 traces$' "$folder/told"
    grep '^leaks: 1 of 2 groups grow at the ends of 4 successive traces$' \
        "$folder/told"
    grep '^ *2.00 MiB  *1  *4  cache (train.py:31)$' "$folder/told"
    "$memsim" alloc "$folder"/step?.pickle | grep -A 1 '^note:'
done
