#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What is installed and packed runs from where it lies:
#
#   tests/package.sh BUILD       a release build of all
#
# cmake --install into a DESTDIR, and the Debian package, unpacked in a folder
# of its own: the program finds nothing by an absolute path, prints the same,
# and its man page, completions, schemas and headers lie beside it.
set -eu
export LC_ALL=C
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "package.sh: $*" >&2
    exit 1
}

job() { # the main job
    "$1" run gpt3.json --policy checkpoint:sqrt
}
job "$build/memsim" >expected

check() { # a folder with bin/ and share/
    mkdir moved
    cp "$1/bin/memsim" moved/program
    job "$1/bin/memsim" | cmp - expected || fail "$1: another result"
    job moved/program | cmp - expected || fail "$1: another result when moved"
    rm -r moved
    share=$1/share
    memsim=$1/bin/memsim
    "$memsim" completion bash |
        cmp - "$share/bash-completion/completions/memsim"
    "$memsim" completion zsh | cmp - "$share"/zsh/*/_memsim
    "$memsim" completion fish |
        cmp - "$share/fish/vendor_completions.d/memsim.fish"
    "$memsim" completion words -- schema '' | cut -f 1 >documents
    [ -s documents ] || fail "which schemas are there?"
    while read -r name; do
        "$memsim" schema "$name" | cmp - "$share/memsim/$name.schema.json"
    done <documents
    [ "$(find "$share/memsim" -type f | wc -l)" = "$(wc -l <documents)" ] ||
        fail "$share/memsim has other files"
    [ -f "$1/include/memsim/policies/plugin.h" ] || fail "no header"
}

# ---- cmake --install

DESTDIR=$folder/dest cmake --install "$build" --prefix /usr >log || {
    cat log >&2
    fail "cmake --install"
}
check dest/usr
cmp "$build/printed/memsim.1" dest/usr/share/man/man1/memsim.1

# ---- the program by itself

if command -v readelf >/dev/null; then
    readelf -d "$build/memsim" | grep -E 'R(UN)?PATH' &&
        fail "the program has a path to libraries in it"
fi
grep -aqF "$source" "$build/memsim" && fail "the program knows $source"

# ---- the Debian package

if ! command -v dpkg-shlibdeps >/dev/null; then
    echo "package.sh: skipped the package, there is no dpkg-dev" >&2
    exit 77
fi
(cd "$build" && cpack -G DEB -B "$folder/packed") >log 2>&1 || {
    cat log >&2
    fail "cpack"
}
package=$(find packed -maxdepth 1 -name '*.deb')
dpkg-deb -x "$package" unpacked
check unpacked/usr
gzip -dc unpacked/usr/share/man/man1/memsim.1.gz |
    cmp - "$build/printed/memsim.1"
for tool in man mandoc; do
    command -v $tool >/dev/null || continue
    $tool -l unpacked/usr/share/man/man1/memsim.1.gz >page 2>/dev/null ||
        fail "$tool cannot show the page"
    grep -q simulates page || fail "$tool shows another page"
done

field() {
    dpkg-deb -f "$package" "$1"
}
libraries='libc6'
grep -q '^MEMSIM_SHARED_IGRAPH:BOOL=ON' "$build/CMakeCache.txt" &&
    libraries="$libraries libigraph3 zlib1g"
for library in $libraries; do
    field Depends | grep -q "$library (>=" || fail "no dependency on $library"
done
field Depends | grep -q gnuplot && fail "gnuplot must not be needed"
[ "$(field Recommends)" = 'gnuplot-nox, fonts-liberation' ] ||
    fail "recommends $(field Recommends)"
"$build/memsim" --version | grep -q "^memsim $(field Version)\( \|$\)" ||
    fail "the package is of version $(field Version)"
gzip -dc unpacked/usr/share/doc/memsim/changelog.gz |
    head -n 1 | grep -qF "memsim ($(field Version))" ||
    fail "tools/debian/changelog begins with another version"
dpkg-deb -c "$package" | grep -v ' root/root ' &&
    fail "files that are not root's"
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning --allow-root "$package" || fail "lintian"
fi
