#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What is handed out runs where nothing else is:
#
#   tests/install.sh RELEASE STATIC    builds of these presets
#
# the static program in a folder that has nothing else; the tarball, unpacked
# by a user who is not root, the Debian package and the wheel in an empty
# Debian 12, which debootstrap makes in $MEMSIM_CHROOT, if that is set and not
# there yet, or in a folder of its own; the same without root, in a system of
# another C library for each name in $MEMSIM_SUITES (trixie; bullseye, whose is
# too old for the library, says so).  77: not root, or no debootstrap.
set -eu
export LC_ALL=C
release=$(cd "$1" && pwd)
static=$(cd "$2" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "install.sh: skipped, it needs root and debootstrap" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

run() { # what the main job and a sweep say
    "$@" run gpt3.json -p checkpoint:sqrt
    "$@" sweep gpt2 --grid batch=1,2 --json -q
}
run "$release/memsim" >"$folder/expected"

# ---- the program alone

mkdir "$folder/alone"
cp "$static/memsim" "$folder/alone/"
run chroot "$folder/alone" /memsim | cmp - "$folder/expected" ||
    fail "the static program says something else"
status=0
chroot "$folder/alone" /memsim run gpt2 --plugin x.so 2>"$folder/said" ||
    status=$?
[ $status = 2 ] || fail "--plugin of the static program is status $status"
grep -q 'statically linked' "$folder/said" || fail "$(cat "$folder/said")"
status=0
chroot "$folder/alone" /memsim run gpt2 --plot x.svg >"$folder/text" \
    2>"$folder/said" || status=$?
[ $status = 5 ] || fail "without gnuplot the status is $status"
[ "$(grep -c gnuplot "$folder/said")" = 2 ] || fail "$(cat "$folder/said")"
grep -q 'memsim report' "$folder/said" || fail "$(cat "$folder/said")"
grep -q '^verdict:' "$folder/text" || fail "no text without gnuplot"
chroot "$folder/alone" /memsim report gpt2 -o - -q | grep -q '</html>' ||
    fail "no page without gnuplot"
echo "the static program alone: as here"

# ---- Debian 12

system() { # a suite, a folder
    [ -d "$2/usr" ] ||
        debootstrap --variant=minbase --include=python3,python3-pip "$1" "$2" \
            >"$folder/log" 2>&1 || {
        tail -n 5 "$folder/log" >&2
        fail "debootstrap $1"
    }
}
debian=${MEMSIM_CHROOT-$folder/debian}
system bookworm "$debian"
within() { # as root
    chroot "$debian" "$@"
}
user() { # somebody who is not
    chroot --userspec=65534:65534 "$debian" env HOME=/tmp/work \
        PYTHONDONTWRITEBYTECODE=1 "$@"
}
rm -rf "$debian/tmp/work"
mkdir -p "$debian/tmp/work"
chown 65534:65534 "$debian/tmp/work"

rm -f "$static"/memsim-*.tar.gz "$release"/memsim_*.deb "$release"/memsim-*.whl
(cd "$static" && cpack -G TGZ) >"$folder/log" 2>&1 || fail "the tarball"
(cd "$release" && cpack -G DEB) >"$folder/log" 2>&1 || fail "the package"
cmake --build "$release" --target wheel >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    fail "the wheel"
}
cp "$static"/memsim-*.tar.gz "$release"/memsim_*.deb "$release"/memsim-*.whl \
    "$debian/tmp/work"

user sh -c 'mkdir /tmp/work/here && cd /tmp/work/here &&
    tar xzf ../memsim-*.tar.gz --strip-components=1'
run user /tmp/work/here/bin/memsim | cmp - "$folder/expected" ||
    fail "the tarball says something else"
user env PYTHONPATH=/tmp/work/here/lib/python3/dist-packages python3 -c '
import memsim
print(memsim.run("gpt2").peak, memsim.program.path())' >"$folder/said" ||
    fail "the tarball has no package for Python"
grep -q '/here/bin/memsim$' "$folder/said" || fail "$(cat "$folder/said")"
echo "the tarball, unpacked without root: as here"

user sh -c 'cd /tmp/work && python3 -m pip install -q --no-index --no-deps \
    --target wheel memsim-*.whl' 2>"$folder/log" || {
    cat "$folder/log" >&2
    fail "the wheel cannot be installed"
}
cp -r "$source/tests/python" "$debian/tmp/work/tests"
mkdir -p "$debian/tmp/work/golden"
cp -r "$source/tests/golden/files" "$debian/tmp/work/golden/"
user env PYTHONPATH=/tmp/work/wheel python3 /tmp/work/tests/test_memsim.py ||
    fail "the wheel does not do as the program"
run user env PYTHONPATH=/tmp/work/wheel python3 -m memsim |
    cmp - "$folder/expected" || fail "the wheel says something else"
echo "the wheel: as here"

within sh -c 'dpkg -i /tmp/work/memsim_*.deb' >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    fail "the package cannot be installed"
}
run user memsim | cmp - "$folder/expected" ||
    fail "the package says something else"
user python3 -c 'import memsim; print(memsim.run("gpt2"))' >"$folder/said" ||
    fail "the package has none for Python"
within dpkg --purge memsim >"$folder/log" 2>&1 || fail "it stays"
user sh -c '! command -v memsim' || fail "it stays"
echo "the Debian package: as here"
rm -rf "$debian/tmp/work"

# ---- other systems, without root

for suite in ${MEMSIM_SUITES-trixie}; do
    debian=${MEMSIM_CHROOT+${MEMSIM_CHROOT%/*}/$suite}
    debian=${debian:-$folder/$suite}
    system "$suite" "$debian"
    rm -rf "$debian/tmp/work"
    mkdir -p "$debian/tmp/work/here"
    cp "$static"/memsim-*.tar.gz "$release"/memsim-*.whl "$debian/tmp/work"
    chown -R 65534:65534 "$debian/tmp/work"
    user sh -c 'cd /tmp/work/here &&
        tar xzf ../memsim-*.tar.gz --strip-components=1'
    run user /tmp/work/here/bin/memsim | cmp - "$folder/expected" ||
        fail "$suite: the tarball says something else"
    if user env PYTHONPATH=/tmp/work/here/lib/python3/dist-packages \
        python3 -c 'import memsim; print(memsim.run("gpt2"))' \
        >"$folder/said" 2>&1; then
        user sh -c 'cd /tmp/work && python3 -m pip install -q --no-index \
            --no-deps --target wheel memsim-*.whl' 2>"$folder/log" || {
            cat "$folder/log" >&2
            fail "$suite: the wheel cannot be installed"
        }
        run user env PYTHONPATH=/tmp/work/wheel python3 -m memsim |
            cmp - "$folder/expected" || fail "$suite: the wheel"
        echo "$suite, without root: tarball and wheel as here"
    else
        grep -q 'C library here is older' "$folder/said" ||
            fail "$suite: $(cat "$folder/said")"
        echo "$suite, without root: the program as here, no library"
    fi
    rm -rf "$debian/tmp/work"
done
