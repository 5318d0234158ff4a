#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Configures a preset of CMakePresets.json and builds it into build/PRESET:
#
#   tools/build.sh PRESET [CMAKE-OPTION]...
#
# A folder that an older checkout configured for make is configured again.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
[ -f "build/$preset/build.ninja" ] || set -- --fresh "$@"
cmake --preset "$preset" "$@" >/dev/null
cmake --build --preset "$preset" --parallel "$(nproc)"
