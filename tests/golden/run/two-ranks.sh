# SPDX-License-Identifier: GPL-3.0-or-later
# Each call of a program again for a second rank: both get what one gets alone.
double() {
    sed 's/  #.*//' |
        awk 'NR == 2 { sub(/ranks 1/, "ranks 2") } { print }
            NR > 2 && !/^group |^set |^buffer / { print $0 " rank 1" }'
}
ranks() { # the ranks of a result, a line each, without their number
    sed 's/}], "timeline".*//; s/.*"ranks": \[//; s/}, {"rank"/}\
{"rank"/g' | sed 's/"rank": [01]/"rank"/g; s/}*$//'
}
for policy in none checkpoint:sqrt swap:vdnn=all zero:3,dp=8,impl=deepspeed; do
    "$MEMSIM" run tiny.json -p $policy --dump program | double >two.program
    "$MEMSIM" run tiny.json -p $policy --json | ranks >one
    "$MEMSIM" run tiny.json -p $policy --program two.program --json |
        ranks >two
    [ "$(grep -c category_peaks one)" = 1 ] && cat one one | cmp - two &&
        echo "$policy: the same"
done
# In words, each rank has a line.
"$MEMSIM" run tiny.json --dump program | double >two.program
"$MEMSIM" run tiny.json --program two.program | grep '^rank '
