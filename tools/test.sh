#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what the tests need, builds and runs them.
#
#   tools/test.sh          core: debug build; unit, laws, golden, truth, house
#   tools/test.sh --all    and: clang, ASan+UBSan, 60 s of fuzzing per target,
#                          coverage, release, its benchmark and package,
#                          what is handed out in an empty Debian,
#                          sweeps by GNU parallel and Slurm, pages in Chromium,
#                          the exporter under Debian's PyTorch, recorded GPU
#                          steps
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)

test_preset() {
    echo "---- $1"
    sh tools/build.sh "$1"
    ctest --preset "$1" --parallel "$jobs" --output-log "build/$1/ctest.log"
}

# Suites that did not run are no part of what passed: they are listed with the
# reason.  ctest's summary is repeated, since it is looked for at the end.
close() {
    log=build/$1/ctest.log
    skipped=$(sed -n 's/^[ \t]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$log")
    for name in $skipped; do
        echo "---- $name"
        sed -n "/ Test: $name\$/,/^<end of output>/s/.*skipped, /    /p" \
            "build/$1/Testing/Temporary/LastTest.log" | sort -u
    done
    echo "$(echo "$skipped" | grep -c .) tests skipped"
    grep '% tests passed' "$log"
}

fuzz() { # seconds per target; new inputs stay in build/fuzz
    echo "---- fuzz"
    sh tools/build.sh fuzz
    for target in model spec program run alloc; do
        mkdir -p "build/fuzz/found/$target"
        "build/fuzz/tests/fuzz-$target" -max_total_time="$1" -timeout=5 \
            -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$target-" \
            "build/fuzz/found/$target" "tests/fuzz/corpus/$target" \
            tests/golden/files graphs/models/builtin
    done
}

all() {
    sh tools/packages.sh shells
    test_preset clang
    test_preset asan
    fuzz 60
    test_preset coverage
    cmake --build --preset coverage --target coverage
    sh tools/build.sh release -DBUILD_TESTING=ON # quickstart.sh leaves it off
    build/release/tests/memsim-bench build/release/memsim
    sh tests/schema.sh build/release/memsim
    sh tests/package.sh build/release
    sh tools/build.sh static
    sh tools/packages.sh empty
    sh tests/install.sh build/release build/static || [ $? = 77 ] # not root
    sh tools/packages.sh engines
    sh tests/engines.sh build/release/memsim
    sh tools/packages.sh browser
    sh tests/browser.sh build/release/memsim
    sh tools/packages.sh torch
    sh tests/export.sh build/release/memsim
    sh tests/gpu.sh build/release/memsim || [ $? = 77 ] # no traces
    sh tests/layers.sh
}

sh tools/packages.sh build run test
case ${1-} in
'') ;;
--all) all ;;
*) sed -n '3,10p' "$0" >&2; exit 2 ;;
esac
test_preset debug
close debug
