# SPDX-License-Identifier: GPL-3.0-or-later
# Libraries that bring no policy.
try() {
    "$MEMSIM" run mlp.json --plugin "$@" 2>&1 | sed 's/ABI [0-9]*/ABI N/;
        s/has [0-9]\{6,\}/has N/'
    "$MEMSIM" run mlp.json --plugin "$@" >/dev/null 2>&1
    echo "exit $?"
}
cp "${MEMSIM%/*}"/tests/plugin/*.so .
mkfifo pipe
: >empty.so
try ./nowhere.so
try .
try pipe
try empty.so
try ./mlp.json
try ''
for fault in ENTRY ABI NAME HOOKS TAKEN SYMBOL; do
    try plugin-$fault.so
done
try stripe.so --plugin ./stripe.so
try plugin-PROGRAM.so -p broken
try plugin-SILENT.so -p broken
try stripe.so -p stripe:every=0
try stripe.so -p stripe:evry=2
try stripe.so -p strip:every=2
try stripe.so -p stripe:every=2 --csv stripe.so
"$MEMSIM" run mlp.json -p stripe:every=2 2>&1
"$MEMSIM" inspect mlp.json --plugin ./stripe.so 2>&1
exit 0
