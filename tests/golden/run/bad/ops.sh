# SPDX-License-Identifier: GPL-3.0-or-later
# Op graphs with one thing wrong.
try() {
    sed "$1" ops.json >bad.json
    cmp -s ops.json bad.json && echo "no change: $1"
    "$MEMSIM" run bad.json -q >out 2>err
    echo "$1: $?"
    head -n 1 err
}
try 's/"storages"/"case"/'
try 's/\[1, 1024/[2, 1024/'
try 's/\[0, 512/[0, -512/'
try 's/"param", "h.0.weight"/"parm", "w"/'
try 's/"h.0.weight"/"w\\u001b[31m"/'
try 's/\[1, 16\], 0/[1, 16], 1/'
try 's/\[5, 1, \[16, 16\]/[5, 1, [1125899906842624, 1125899906842624]/'
try 's/\[5, 1, \[16, 16\]/[5, 1, [0, -1]/'
try 's/\[5, 1, \[16, 16\]/[5, 1, [1, 1, 1, 1, 1, 1, 1]/'
try 's/\[1, 16\], 0/[1, 1125899906842624], 0/'
try 's/\[16, 1\], 0/[1], 0/'
try 's/\[10, 7, \[8\], "int64"/[10, 7, [8], "int63"/'
try 's/\[12, 9,/[12, 99,/'
try 's/"in": \[1\]/"in": [14]/'
try 's/"in": \[1\]/"in": [6]/'
try 's/"out": \[7\]/"out": [6]/'
try 's/"out": \[12, 13\]/"out": [12, 12]/'
try 's/aten.relu_/aten.relv_/'
try 's/"in": \[9\], "out": \[11\]/"in": [], "out": [11]/'
try 's/"in": \[11, 10\]/"in": [11]/'
try 's/"out": \[12, 13\]/"out": [12]/'
try 's/aten.t", "mod": "h.0", "args": \["T"/aten.permute", "args": ["T", [2]/'
try 's/aten.relu_/aten.view/; s/\[7, 5, \[8, 16\]/[7, 5, [8, 15]/'
try 's/"loss_start": 5/"loss_start": 8/'
try 's/"nodes": \[/"nodes": [], "case": [/'
try 's/"batch": 8/"batch": 0/'
# Ids: dangling, twice, of the wrong kind, missing.
try 's/"in": \[1\]/"in": [-1]/'
try 's/"in": \[1\]/"in": [1.5]/'
try 's/"in": \[1\]/"in": 1/'
try 's/"in": \[1\], //'
try 's/"in": \[1\], "out": \[5\]/"in": [1]/'
try 's/"out": \[7\]/"out": [99]/'
try 's/\[5, 512, "act"/[4, 512, "act"/'
try 's/\[6, 5, \[8, 16\]/[5, 5, [8, 16]/'
try 's/\[5, 512, "act", ""\]/[5, 512, "act"]/'
try 's/"tensors": \[/"tensors": [], "case": [/'
try 's/"storages": \[/"storages": [], "case": [/'
try 's/"nodes": \[/"nodes": {}, "case": [/'
try 's/"nodes": \[/"nodes": [7, /'
# Order: what is read before it is made, made twice, made where something is.
try 's/"in": \[2, 0, 5\]/"in": [2, 9, 5]/'
try 's/"in": \[4, 7, 8\]/"in": [4, 9, 8]/'
try 's/"out": \[9\]}/"out": [6]}/'
try 's/"in": \[9\], "out": \[11\]/"in": [9], "out": [9]/'
try 's/"out": \[12, 13\]/"out": [12, 1]/'
try 's/\[11, 8, \[8, 16\]/[11, 5, [8, 16]/'
try 's/\[11, 8, \[8, 16\]/[11, 0, [8, 16]/'
# Sizes and strides.
try 's/"float32", \[16, 1\], 0/"float32", [-16, 1], 0/'
try 's/"float32", \[16, 1\], 0/"float32", [17, 1], 0/'
try 's/\[6, 5, \[8, 16\]/[6, 5, [9, 16]/'
try 's/\[6, 5, \[8, 16\]/[6, 5, [-8, 16]/'
try 's/\[16, 1\], 0/[16, 1], -1/'
# The rest.
try 's/"op": "aten.t", //'
try 's/"op": "aten.t"/"op": ""/'
try 's/"op": "aten.t"/"op": 7/'
try 's/"args": \["T"\], "in": \[1\]/"args": {}, "in": [1]/'
try 's/"loss_start": 5/"loss_start": -1/'
try 's/"loss_start": 5/"loss_start": "x"/'
try 's/"loss_start": 5,//'
try 's/"nodes": \[/"nodes": [], "nodes": [/'
for bytes in 1 30 100 500 1500; do
    head -c $bytes ops.json >bad.json
    "$MEMSIM" run bad.json 2>&1
done
