# SPDX-License-Identifier: GPL-3.0-or-later
# Where a pool's blocks lie: of one run, in each format, as it was saved; of
# several, one under another; results without addresses.
run() {
    "$MEMSIM" run gpt2 --batch 4 --sequence 256 --set model.layers=2 "$@"
}
for ending in svg png pdf; do
    run -q --allocator torch --figure address --plot=a.$ending --keep-script
    head -c 9 a.$ending | tr -dc '[:print:]\n' | sed 's/-.*//;q'
done
grep -o "^set label '[^']*'" a.gp | grep -v "'[0-9.]*'"
run --allocator torch --json >torch.json
"$MEMSIM" plot torch.json -q -o b.svg --figure address
cmp a.svg b.svg && echo same picture
for option in expandable_segments=True max_split_size_mb=64; do
    run --allocator torch,$option --json >$option.json
done
set -- torch.json expandable_segments=True.json max_split_size_mb=64.json
"$MEMSIM" compare "$@" -q --plot c.svg --figure address --keep-script
grep -o "^set label '\(reserved\|torch\|black\)[^']*'" c.gp
"$MEMSIM" plot "$@" -q -o d.svg --figure address
cmp c.svg d.svg && echo same picture
"$MEMSIM" run parameters.json -q --allocator torch --figure address \
    --plot=e.svg --keep-script
grep -o "^set label '\(events\|torch\)[^']*'" e.gp
