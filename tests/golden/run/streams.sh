# SPDX-License-Identifier: GPL-3.0-or-later
# The streams that own FSDP's blocks: the compute stream's (0), the all-gathers'
# (3), the reductions' (10), FSDP1's casts' (11).  How many blocks and bytes.
streams() {
    echo "$1"
    "$MEMSIM" run tiny.json -p "$1" --allocations - -q |
        awk '$1 == "a" { s = $4 + 0; n[s]++; bytes[s] += $3 }
            END { for (s = 0; s < 12; s++)
                if (n[s]) printf "  %d: %d, %d\n", s, n[s], bytes[s] }'
}
streams fsdp:dp=8
streams fsdp:dp=8,copy_in=reduce
streams fsdp:impl=1,dp=8
# The program's text says so, and is read back.
"$MEMSIM" run tiny.json -p fsdp:impl=1,dp=8 --dump program |
    sed 's/  #.*//' >program.txt
grep -E '^buffer [012] ' program.txt
"$MEMSIM" run tiny.json -p fsdp:impl=1,dp=8 --program program.txt \
    --dump program | sed 's/  #.*//' | cmp - program.txt && echo the same
