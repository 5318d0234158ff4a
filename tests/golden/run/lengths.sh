# SPDX-License-Identifier: GPL-3.0-or-later
# Steps with a sequence length each through one pool.
try() {
    echo "$@"
    "$MEMSIM" run tiny-llama.json --color never "$@" |
        keep 'model, policy, defaults, pool, steps, most, try, peak, verdict'
}
try --allocator torch --lengths 4x64,2x128,4x64
try --allocator torch --batch 4 --lengths 32,128,64 --steps 5
try --allocator torch,expandable_segments:True --batch 4 --lengths 32,128,64
try --allocator torch --batch 64 --memory 700MiB --lengths 16,128,64
try --allocator torch --batch 4 --lengths 128 --steps 1 -p checkpoint:full
"$MEMSIM" run mlp.json --allocator torch --lengths 16x,32x --color never |
    keep 'pool, steps, most, try, peak, at peak'
"$MEMSIM" run tiny-llama.json --allocator torch --lengths 4x64,2x128 --json |
    grep -o '"lengths": "[^"]*"\|"by_step": [[][^]]*[]]'
