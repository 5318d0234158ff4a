# SPDX-License-Identifier: GPL-3.0-or-later
# An op graph is taken at its word or not at all: keys, counts, FLOPs.
try() {
    echo "$1"
    sed "$1" ops.json >bad.json
    cmp -s ops.json bad.json && echo "nothing changed"
    "$MEMSIM" inspect bad.json 2>&1 | grep memsim:
}
try 's/"format": /"fromat": 1, "format": /'
try 's/"op": "aten.t"/"op": "aten.t", "flop": 7/'
try 's/"op": "aten.t"/"op": "aten.t", "flops": -1/'
try 's/"op": "aten.t"/"op": "aten.t", "flops": "7"/'
try 's/"op": "aten.t"/"op": "aten.t", "flops": 1e999/'
try 's/"op": "aten.t"/"op": "aten.t", "flops": null/'
try 's/"args": \["T"\], "in": \[1\]/"args": ["T", ["T", "T"]], "in": [1]/'
try 's/\[0, 512, \(.*\)"x"\]/[0, 512, \1"x", 1]/'
try 's/\[16, 1\], 0\]/[16, 1], 0, 0]/'
try 's/\[16, 1\], 0\]/[16], 0]/'
try 's/\[16, 1\], 0\]/[16, 1], 1000]/'
try 's/\(\[10, 4, "act", ""\]\)\]/\1, [11, 512, "act", ""]]/
s/\(\[13, 10, .*\]\)\],$/\1, [14, 11, [8, 16], "float32", [16, 1], 0]],/
s/"in": \[6\], "out": \[7\]/"in": [6], "out": [7, 14]/'
