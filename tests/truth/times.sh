#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted over measured times of the steps of times.tsv, a line per group:
#
#   tests/truth/times.sh [--half fit|report] [MEMSIM]     default: memsim
#
# It tells how far times can be trusted; truth.times holds them to what
# timebounds.tsv says.  README.md quotes it.
set -eu
export LC_ALL=C
half=report
if [ "${1-}" = --half ]; then
    half=$2
    shift 2
fi
memsim=$(command -v "${1-memsim}")
memsim=$(cd "$(dirname "$memsim")" && pwd)/$(basename "$memsim")
cd "$(dirname "$0")"

grep -v '^#' times.tsv | awk -F '\t' -v half="$half" '$2 == half' |
    while IFS=$(printf '\t') read -r id _ group us options; do
        # shellcheck disable=SC2086 # the words of a command
        ns=$("$memsim" run $options --allocator exact --json |
            sed -n 's/.*"step_ns": \([0-9]*\),.*/\1/p')
        echo "$group $ns $us $id"
    done |
    awk '{ print $1, $2 / 1000 / $3 }' | sort -k 1,1 -k 2,2n |
    awk '{ if ($1 != group) order[++groups] = group = $1
           of[group, ++n[group]] = $2 }
        function at(group, share) { # of the sorted ratios
            return of[group, 1 + int(share * (n[group] - 1) + 0.5)] }
        function off(group, share,    i, k, e, t) { # of the errors
            for (i = 1; i <= n[group]; i++) {
                t = of[group, i] - 1; if (t < 0) t = -t
                for (k = i; k > 1 && e[k - 1] > t; k--) e[k] = e[k - 1]
                e[k] = t }
            return 100 * e[1 + int(share * (n[group] - 1) + 0.5)] }
        END { printf "%-14s%6s%8s%8s%8s%15s%8s\n", "", "steps", "least",
                  "median", "most", "median error", "95 %"
              for (g = 1; g <= groups; g++) { group = order[g]
                  printf "%-14s%6d%8.2f%8.2f%8.2f%13.1f %%%6.1f %%\n", group,
                      n[group], at(group, 0), at(group, 0.5), at(group, 1),
                      off(group, 0.5), off(group, 0.95) } }'
