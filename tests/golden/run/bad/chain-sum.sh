# SPDX-License-Identifier: GPL-3.0-or-later
# One value may be 2^50, all of them no more than 2^53.
most=1125899906842624
half=$((most / 2))
sed "s/forward_ns\": [0-9]*/forward_ns\": $most/g
     s/backward_ns\": [0-9]*/backward_ns\": $half/g" chain.json >long.json
"$MEMSIM" run long.json
