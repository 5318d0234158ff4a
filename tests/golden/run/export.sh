# SPDX-License-Identifier: GPL-3.0-or-later
# Exports of allocations: what they say, same input same bytes, into a pipe,
# read back by memsim alloc.
"$MEMSIM" run mlp.json --lifetimes - | sed -n '1,4p;$p'
"$MEMSIM" run mlp.json --allocations - | sed -n '1,12p;$p'
"$MEMSIM" run mlp.json --snapshot a.pickle --allocations a.txt \
    --lifetimes a.csv | keep 'peak, verdict'
"$MEMSIM" run mlp.json -q --snapshot b.pickle
cmp a.pickle b.pickle
"$MEMSIM" run mlp.json --snapshot - | cmp - a.pickle
"$MEMSIM" run mlp.json --snapshot - | "$MEMSIM" alloc - | tail -n 1
"$MEMSIM" alloc a.txt | sed -n '/^peak/p'
"$MEMSIM" alloc a.pickle | sed -n '/^peak/p'

# Frees that other streams hold up.
set -- run tiny-llama.json --sequence=16 -p fsdp:dp=4,impl=1,limit=0
"$MEMSIM" "$@" --allocations - | grep '^[rwc]' | head -n 6
"$MEMSIM" "$@" --snapshot - | "$MEMSIM" alloc - | sed -n '/^peak/p;$p'
"$MEMSIM" "$@" --allocations - | "$MEMSIM" alloc - | sed -n '/^peak/p'

# A snapshot is one rank's, as torch writes one for each process.
for rank in 0 1; do
    set -- run tiny-llama.json --batch 2 -p pipeline:2+microbatch:2 --rank $rank
    "$MEMSIM" "$@" --snapshot - | "$MEMSIM" alloc - |
        sed -n '/snapshot of/p; /^peak allocated/p'
    "$MEMSIM" "$@" --allocations - | "$MEMSIM" alloc - |
        sed -n '/^peak allocated/p'
done

# More than the device holds.
"$MEMSIM" run mlp.json --memory 700MiB --allocations - | "$MEMSIM" alloc - |
    sed -n '/out of memory/p'

# Refused.
"$MEMSIM" run mlp.json --snapshot mlp.json
"$MEMSIM" run mlp.json --snapshot x --allocations x
"$MEMSIM" run mlp.json --snapshot - --json
"$MEMSIM" run mlp.json --snapshot - --lifetimes -
"$MEMSIM" run mlp.json --snapshot no/such/folder -q
"$MEMSIM" run mlp.json --lifetimes /dev/full -q
"$MEMSIM" run mlp.json --allocations . -q
echo "done"
