# SPDX-License-Identifier: GPL-3.0-or-later
# A million layers in a row, all of which read the first one, too.
awk 'BEGIN {
    print "{\"input\": {\"shape\": [8]}, \"layers\": ["
    print "{\"type\": \"linear\", \"name\": \"n0\", \"out\": 8},"
    for (i = 1; i <= 1000000; i++)
        printf "{\"type\": \"add\", \"name\": \"n%d\", %s[\"n%d\", \"n0\"]},\n",
            i, "\"inputs\": ", i - 1
    print "{\"type\": \"mse_loss\"}]}"
}' >million.json
"$MEMSIM" run million.json --json >million.out
echo $?
grep -o '"events": [0-9]*\|"step_ns": [0-9]*' million.out | sort -u
