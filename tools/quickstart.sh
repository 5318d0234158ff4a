#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# From a fresh clone to a number and a figure: installs what is missing (see
# tools/packages.txt), builds into build/release and runs the main job.
set -eu
cd "$(dirname "$0")/.."
root=$PWD

sh tools/packages.sh build run
sh tools/build.sh release -DBUILD_TESTING=OFF

memsim=$root/build/release/memsim
cd build
show() { # memsim's arguments: the command, what it says
    echo
    echo "memsim $*"
    echo
    "$memsim" "$@"
}
show run gpt3.json --policy checkpoint:sqrt --plot=memsim.svg |
    tee memsim.txt

# One GPU does not hold it: the summary names a set-up that does.
fits=$(sed -n 's/^fits: *memsim //p' memsim.txt)
# shellcheck disable=SC2086 # the words of a command
show $fits --plot=memsim-fits.svg
echo
echo "program  $memsim"
echo "figures  $PWD/memsim.svg       the main job, on one GPU"
echo "         $PWD/memsim-fits.svg  the set-up that fits"
