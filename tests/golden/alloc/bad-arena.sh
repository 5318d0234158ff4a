# SPDX-License-Identifier: GPL-3.0-or-later
# Static plans: wrong options, wrong buffers, and plans that do not exist.
try() {
    "$MEMSIM" alloc "$@" 2>&1
    echo "$?"
}
for spec in arena,order=siez arena,order arena,capacity=8 arena,steps=2 \
    arena,order=exact,steps=0 arena,order=exact,steps=1x \
    arena,order=exact,capacity=0 arena,order=exact,capacity=80G \
    arena,order=exact,seconds=0 arena,order=exact,seconds=2s arena,seconds=2 \
    arena,order=exact,seconds=0.0000001 arena,order=exact,seconds=1000001; do
    try buffers.csv --allocator "$spec"
done
try buffers.csv --allocator arena --allocator torch
try buffers.csv --allocator arena --memory 1GiB
try buffers.csv --allocator arena --allocator arena --csv -
try buffers.csv --allocator arena --json --csv -
try buffers.csv --allocator arena --leaks
try buffers.csv --allocator arena,order=exact,capacity=12KiB --csv -
try buffers.csv --allocator arena,order=exact,capacity=12KiB --json
try buffers.csv --allocator arena,order=best \
    --allocator arena,order=exact,capacity=13208
try buffers.csv --allocator arena,order=exact,capacity=13208,steps=1
try buffers.csv --allocator arena,order=exact,capacity=13208,steps=1 --csv -
try buffers.csv --allocator arena,order=exact,steps=1
text() {
    # shellcheck disable=SC2059 # with its escapes
    printf "$1" | "$MEMSIM" alloc - --allocator arena 2>&1
    echo "$?"
}
text 'id,lower,upper\n'
text 'id,lower,upper,size,gaps\n'
text 'id,lower,upper,size,size\n'
text 'id,lower,upper,size\n1,2,3\n'
text 'id,lower,upper,size\n1,2,3,4,5\n'
text 'id,lower,upper,size\n1,3,3,4\n'
text 'id,lower,upper,size\n1,2,3,0\n'
text 'id,lower,upper,size\n1,2,-3,4\n'
text 'id,lower,upper,size\n"1",2,3,4\n'
text 'id,lower,upper,size\n1,2,3,99999999999999999999\n'
text 'id,lower,upper,size\n1,2,3,4611686018427387904\n2,2,3,1\n'
text 'id,lower,upper,size\n'
text 'a 1 512\nf 2\n'
text 'a 1 512\na 1 512\n'
text 'a 1 0\n'
text 'f 1\n'
