# SPDX-License-Identifier: GPL-3.0-or-later
# One value may be 2^50, all of them no more than 2^53.
sed 's/forward_ns": [0-9]*/forward_ns": 1125899906842624/g;
     s/backward_ns": [0-9]*/backward_ns": 562949953421312/g' chain.json >long.json
"$MEMSIM" run long.json
