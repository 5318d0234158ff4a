#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# From a fresh clone to a number and a figure: installs what is missing (see
# tools/packages.txt), builds into build/release and runs the main job.
set -eu
cd "$(dirname "$0")/.."
root=$PWD

sh tools/packages.sh build run
cmake --preset release -DBUILD_TESTING=OFF
cmake --build --preset release --parallel "$(nproc)"

memsim=$root/build/release/memsim
cd build
set -- run gpt3.json --policy checkpoint:sqrt --batch 8 --plot
echo
echo "memsim $*"
echo
"$memsim" "$@"
echo
echo "program  $memsim"
echo "figure   $PWD/memsim.svg"
