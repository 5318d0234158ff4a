#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A stranger's program builds against the installed library, shared and static,
# and says what the program says; what callers were compiled with has not
# changed (tests/library/abi.txt):
#
#   tests/library.sh SOURCE BUILD
#
# Every pointer and number of abi.txt is of a machine with 64 bits.
set -eu
export LC_ALL=C
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "library.sh: $*" >&2
    exit 1
}

cmake --install "$build" --prefix "$folder/prefix" >log || {
    cat log >&2
    fail "cmake --install"
}
configured=$(find prefix -name memsim.pc)
PKG_CONFIG_PATH=$folder/$(dirname "$configured")
export PKG_CONFIG_PATH
pkg-config --exists memsim || fail "pkg-config does not find memsim"
libraries=$(pkg-config --variable=libdir memsim)
cflags="-std=c17 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags memsim)"

# shellcheck disable=SC2046,SC2086 # lists of flags
compile() { # source program flags...
    file=$1
    program=$2
    shift 2
    cc $cflags "$source/tests/library/$file" "$@" -o "$program"
}
# shellcheck disable=SC2046 # lists of flags
compile peak.c shared $(pkg-config --libs memsim)
# shellcheck disable=SC2046 # lists of flags
compile abi.c abi $(pkg-config --libs memsim)

number() { # what stands before it, then what to run
    before=$1
    shift
    "$build/memsim" run gpt2 --json "$@" |
        sed "s/.*$before\([0-9]*\).*/\1/"
}
peak='"ranks": .*"peak": {"allocated_bytes": '
step='"ranks": .*"step_ns": '
plain=$(number "$peak")
saved=$(number "$peak" -p checkpoint:sqrt)
plain_ns=$(number "$step")
saved_ns=$(number "$step" -p checkpoint:sqrt)
echo "$plain $saved bytes, $plain_ns $saved_ns ns" >expected

LD_LIBRARY_PATH=$libraries ./shared gpt2 checkpoint:sqrt >said
diff expected said || fail "the shared library says something else"
if [ -f "$libraries/libmemsim.a" ]; then
    # shellcheck disable=SC2046 # lists of flags
    compile peak.c static "$libraries/libmemsim.a" \
        $(pkg-config --libs --static memsim | sed 's/-lmemsim//')
    ./static gpt2 checkpoint:sqrt >said
    diff expected said || fail "the archive says something else"
fi

status=0
LD_LIBRARY_PATH=$libraries ./shared gpt2 checkpiont:sqrt 2>said || status=$?
[ "$status" = 2 ] || fail "a wrong policy is status $status"
grep -q 'unknown policy' said || fail "a wrong policy: $(cat said)"

{
    LD_LIBRARY_PATH=$libraries ./abi
    nm -D --defined-only "$libraries/libmemsim.so" | sed 's/^[0-9a-f]* //'
} >abi.txt
diff "$source/tests/library/abi.txt" abi.txt ||
    fail "programs that were compiled before would misread the library"

if command -v c++ >/dev/null; then
    # shellcheck disable=SC2046 # lists of flags
    echo '#include <memsim.h>
int main() { memsim_free(memsim_open("gpt2")); }' |
        c++ -x c++ - -Wall -Wextra -Werror \
            $(pkg-config --cflags --libs memsim) -o plus
    LD_LIBRARY_PATH=$libraries ./plus
fi
