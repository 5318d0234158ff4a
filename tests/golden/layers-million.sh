# SPDX-License-Identifier: GPL-3.0-or-later
# A million layers, all of which read the first one and the model's input.
awk 'BEGIN {
    print "{\"input\": {\"shape\": [8]}, \"layers\": ["
    print "{\"type\": \"linear\", \"name\": \"a\", \"out\": 8},"
    for (i = 0; i < 500000; i++) {
        print "{\"type\": \"add\", \"inputs\": [\"a\", \"input\"]},"
        print "{\"type\": \"mul\", \"inputs\": [\"a\", \"mul" i "\"]},"
    }
    print "{\"type\": \"mse_loss\"}]}"
}' | sed 's/"mul0"/"add1"/' >million.json
exec "$MEMSIM" run million.json --json |
    grep -o '"events": [0-9]*\|"allocated_bytes": [0-9]*' | sort -u
