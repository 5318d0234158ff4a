#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the wheel of the Python package memsim, and tells where it lies:
#
#   sh tools/python/wheel.sh [CMAKE-OPTION]...
#   pip install build/release/memsim-*.whl
set -eu
cd "$(dirname "$0")/../.."
sh tools/build.sh release "$@"
cmake --build --preset release --target wheel
