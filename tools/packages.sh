#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the missing packages of the named groups of tools/packages.txt:
#
#   packages.sh build run test
#
# Where nothing is missing it needs neither the network nor root.
# shellcheck disable=SC2086 # lists of package names
set -eu
cd "$(dirname "$0")"

wanted=''
for group; do
    wanted="$wanted $(sed -n "s/^$group //p" packages.txt)"
done
if ! command -v dpkg-query >/dev/null; then
    echo "no dpkg here: expecting these to be installed:" $wanted >&2
    exit 0
fi
missing=''
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) ||
        state=unknown
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing:$missing" >&2
root=''
[ "$(id -u)" = 0 ] || root=sudo
export DEBIAN_FRONTEND=noninteractive
$root apt-get -q update >&2
$root apt-get -q install --yes --no-install-recommends $missing >&2
