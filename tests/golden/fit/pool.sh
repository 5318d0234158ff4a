# SPDX-License-Identifier: GPL-3.0-or-later
# A setup fits if what the pool reserves fits.
"$MEMSIM" fit tiny-llama.json --batch 64 --sequence 128 --memory 1GiB \
    --allocator torch -j2
"$MEMSIM" fit tiny-llama.json --sequence 128 --memory 1GiB --max batch \
    --allocator torch,expandable_segments:True -j2 | grep '^largest' -A 12
"$MEMSIM" fit tiny-llama.json --memory 1GiB --batch 64 --lengths 64,128 \
    --allocator torch -j2 --json | grep -o '"not_searched".*'
