# SPDX-License-Identifier: GPL-3.0-or-later
# Every kind of figure of one run, in each format; what its axes say.
for kind in timeline gantt layers ranks bars; do
    echo "== $kind"
    for ending in svg png pdf; do
        "$MEMSIM" run tiny16.json -q -p checkpoint:sqrt --batch 8 \
            --figure "$kind" --plot=a.$ending --keep-script
        head -c 9 a.$ending | tr -dc '[:print:]\n' | sed 's/-.*//;q'
    done
    grep -o "^set label '[a-z ]* ([A-Za-z]*)'" a.gp | sort -u
done
