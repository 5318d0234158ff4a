#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted over measured times of the steps of times.tsv, a line per group:
#
#   tests/truth/times.sh [MEMSIM]           default: memsim
#
# It tells how far times can be trusted; no test depends on it.  README.md
# quotes it.
set -eu
export LC_ALL=C
memsim=${1-memsim}
here=$(cd "$(dirname "$0")" && pwd)

grep -v '^#' "$here/times.tsv" | sed 1d |
    while IFS=$(printf '\t') read -r group us options; do
        # shellcheck disable=SC2086 # the words of a command
        ns=$("$memsim" run $options --json |
            sed -n 's/.*"step_ns": \([0-9]*\),.*/\1/p')
        echo "$group $ns $us"
    done |
    awk '{ print $1, $2 / 1000 / $3 }' | sort -k 1,1r -k 2,2n |
    awk '{ if ($1 != group) order[++groups] = group = $1
           of[group, ++n[group]] = $2 }
        function at(group, share) { # of the sorted ratios
            return of[group, 1 + int(share * (n[group] - 1) + 0.5)] }
        END { printf "%-12s%6s%8s%8s%8s\n", "", "steps", "least", "median",
                  "most"
              for (g = 1; g <= groups; g++) { group = order[g]
                  printf "%-12s%6d%8.2f%8.2f%8.2f\n", group, n[group],
                      at(group, 0), at(group, 0.5), at(group, 1) } }'
