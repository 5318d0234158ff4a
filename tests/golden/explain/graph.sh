# SPDX-License-Identifier: GPL-3.0-or-later
# An op graph is explained without roles, since its names have none.
graphs=$(dirname "$0")/../../truth/graphs
"$MEMSIM" explain "$graphs/resnet18_b2.graph.json" --at backward --top 8
"$MEMSIM" explain "$graphs/mlp8x1024_b64_drop.graph.json" \
    -p checkpoint:full --at forward --top 4
