#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# How far off the times of kernels are that nothing was fitted on, by device and
# kind, in percent:
#
#   tests/truth/kernels.sh [BUILD]      writes kernelerrors.tsv
#
# BUILD is a build folder with tests; default: build/debug.
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=${1-$here/../../build/debug}
tests=$build/tests/memsim-tests
if [ ! -x "$tests" ]; then
    echo "kernels.sh: no $tests; give the build folder" >&2
    exit 2
fi
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for suite in rates products memories links; do
    CK_RUN_SUITE=$suite CK_FORK=no CK_VERBOSITY=silent MEMSIM_KERNELS="$lines" \
        "$tests" >&2 || true
done
{
    echo "# SPDX-License-Identifier: GPL-3.0-or-later"
    echo "# Kernels that nothing was fitted on: how many, the median error of"
    echo "# their times and that of 95 of 100, in percent (kernels.sh)."
    printf 'device\tkind\trows\tmedian\tmost\n'
    sort -u "$lines"
} >"$here/kernelerrors.tsv"
