# SPDX-License-Identifier: GPL-3.0-or-later
# Where --device is a file, what that says stays, but for what was measured.
cat >base.json <<'END'
{"name": "base", "like": "h100", "h2d_gbps": 12, "kernel_us": 1.25,
 "memory_curves": [{"kind": "softmax", "kib": [64, 4096], "gbps": [200, 900]}]
}
END
"$MEMSIM" calibrate rates.csv --device base.json -o new.json -q
cat new.json
"$MEMSIM" calibrate rates.csv --device new.json --check |
    sed -n '/^median/,/^$/p'
"$MEMSIM" calibrate rates.csv --device new.json -o base.json -q
