# SPDX-License-Identifier: GPL-3.0-or-later
# Named variants, a product with -p; labels; what cannot be.
try() {
    "$MEMSIM" compare tiny.json "$@" 2>&1
    echo "status $?"
}
try --variant "small:" --variant "large: batch=8 precision=fp32" \
    --variant "kept: policy=checkpoint:full training.optimizer=sgd" --csv - |
    cut -d , -f 1-4
try -p none -p checkpoint:full --variant "a:" --variant "b: batch=2" --csv - |
    cut -d , -f 1-4
try -p none -p checkpoint:full --label first --label "the second" --csv - |
    cut -d , -f 1-4
"$MEMSIM" compare tiny.json --variant "a:" --variant "b: batch=2" --json >c.json
"$MEMSIM" compare tiny.json --variant "a:" --variant "b: batch=2" -q \
    --plot=live.svg --title "Mine" --keep-script
"$MEMSIM" plot c.json -q -o saved.svg --title "Mine"
cmp live.svg saved.svg
grep -c "'{/:Bold Mine}'\|'a'\|'b'" live.gp
try --variant "a: batch=1" --variant "b:"
try -p none -p none
try --variant "a: batch=1" --variant "a: batch=2"
try --variant "a batch=1" --variant "b:"
try --variant ": batch=1" --variant "b:"
try --variant "a: batch" --variant "b:"
try --variant "a: btch=1" --variant "b:"
try --variant "a: batch=x" --variant "b:"
try --variant "a: batch=1 batch=2" --variant "b:"
try --variant "a: batch=1" --variant "b:" --grid batch=1,2
try --variant "a: allocator=torch" --variant "b:" --allocators "exact;torch"
try --variant "a: batch=2" --variant "b:" --label one
"$MEMSIM" compare c.json --variant "a: batch=2" 2>&1
try --variant "a: batch=2" --variant "b:" --title x
