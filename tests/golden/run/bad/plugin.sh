# SPDX-License-Identifier: GPL-3.0-or-later
# These libraries have no policy.
try() {
    "$MEMSIM" run mlp.json --plugin "$@" 2>&1
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
for fault in ENTRY API OLD NAME HOOKS PAIR RANKS TAKEN SYMBOL; do
    try plugin-$fault.so
done
try stripe.so --plugin ./stripe.so
for fault in PROGRAM SILENT FAILS UNIT EARLY STREAM BUFFER SHORT TWO HALF \
    LATE; do
    try plugin-$fault.so -p broken
done
try stripe.so -p stripe:every=0
try stripe.so -p stripe:evry=2
try stripe.so -p strip:every=2
try stripe.so -p stripe:every=2 --csv stripe.so
"$MEMSIM" run mlp.json -p stripe:every=2 2>&1
"$MEMSIM" inspect mlp.json --plugin ./stripe.so 2>&1
exit 0
