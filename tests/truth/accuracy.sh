#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What the truth tables (times.tsv, peaks.tsv) say of memsim's errors:
#
#   tests/truth/accuracy.sh [BUILD]                  writes the rows of
#                       graphs/machines/accuracyrows.c; build again after it
#   tests/truth/accuracy.sh --figure FILE [BUILD]    draws predicted against
#                       measured step times, a point a run (.png, .svg or .pdf)
#   tests/truth/accuracy.sh --points FILE [BUILD]    writes what that draws: id,
#                       half, source, measured, predicted (us; of peaks bytes)
#
# BUILD is a build folder with tests; default: build/debug.
set -eu
export LC_ALL=C
tab=$(printf '\t')
here=$(cd "$(dirname "$0")" && pwd)
what=--rows
if [ "${1-}" = --figure ] || [ "${1-}" = --points ]; then
    what=$1
    file=${2?accuracy.sh: $1 needs the name of a file}
    shift 2
fi
build=${1-$here/../../build/debug}
tests=$build/tests/memsim-tests
if [ ! -x "$tests" ]; then
    echo "accuracy.sh: no $tests; give the build folder" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$what" = --rows ] || export MEMSIM_ACCURACY_POINTS="$work/points"
if ! CK_RUN_SUITE=accuracy CK_FORK=no CK_VERBOSITY=silent \
    MEMSIM_ACCURACY="$work/rows.c" "$tests" >"$work/log" 2>&1 &&
    [ ! -s "$work/rows.c" ]; then
    cat "$work/log" >&2
    exit 1
fi
# What accuracy.gp needs beside the points, by source: how many runs no rate was
# fitted on, and their median error.
key() {
    awk -F '\t' '{ e = $5 / $4 - 1; print $3 "\t" $2 "\t" (e < 0 ? -e : e) }' \
        "$work/times" | sort -t "$tab" -k 1,1 -k 2,2 -k 3,3g | awk -F '\t' '
        { all[++steps] = $1
          if ($2 == "report") error[$1, n[$1]++] = $3 }
        END { k = split("llmfoundry vtrain vtrain_tensor vtrain_pipeline " \
                  "timm torchtitan flashattn megatron llmc nanogpt dle " \
                  "bert lambda offload simumax " \
                  "simumax_experts korthikanti h100", of, " ")
              for (i = 1; i <= k; i++) { s = of[i]; known[s] = 1
                  names = names s " "
                  runs = runs (n[s] > 0 ? n[s] : "-") " "
                  errors = errors (n[s] > 0 ? sprintf("%.1f",
                      100 * error[s, int(n[s] / 2)]) : "-") " " }
              for (i = 1; i <= steps; i++) if (!(all[i] in known)) {
                  print "accuracy.sh: no colour for " all[i] >"/dev/stderr"
                  exit 1 }
              q = "\047"
              print "names = " q names q "\nruns = " q runs q
              print "error = " q errors q
              print "subtitle = " q steps " measured steps of " k \
                  " sources (tests/truth/times.tsv)" q }'
}

case $what in
--rows) cp "$work/rows.c" "$here/../../graphs/machines/accuracyrows.c" ;;
--points) cp "$work/points" "$file" ;;
--figure)
    case $file in
    *.png) terminal=pngcairo ;;
    *.svg) terminal=svg ;;
    *.pdf) terminal=pdfcairo ;;
    *)
        echo "accuracy.sh: $file: a figure is .png, .svg or .pdf" >&2
        exit 2
        ;;
    esac
    grep -v "${tab}peak$tab" "$work/points" >"$work/times"
    key >"$work/key.gp"
    gnuplot -e "points='$work/times'; terminal='$terminal'; file='$file'" \
        "$work/key.gp" "$here/accuracy.gp"
    ;;
esac
