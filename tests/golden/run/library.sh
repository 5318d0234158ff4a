# SPDX-License-Identifier: GPL-3.0-or-later
# What cuBLAS keeps are blocks of the pool like others: one for each thread that
# multiplies, after the output of its first product, as large as the device or
# CUBLAS_WORKSPACE_CONFIG has it; until torch 2.3 cublasLt takes 1 MiB a call.
kept() {
    echo "$*:"
    "$MEMSIM" run "$@" --dump plan | grep -B 1 cublas_workspace
}
kept tiny.json --set training.step=first
kept tiny.json --set training.step=first --device a100
kept tiny.json --set training.mode=inference
echo '{"like": "h100", "cublas_workspace_bytes": 131072}' >small.json
kept tiny.json --set training.step=first --device small.json
"$MEMSIM" run mlp.json --framework torch-2.0 --dump plan |
    grep -c ":workspace workspace 1048576"
pool() {
    "$MEMSIM" run tiny.json --allocator torch --steps 1 --json \
        --set training.step=first "$@" |
        grep -oE '"(reserved_bytes|segments)": [0-9]+' | sort -u
}
pool
pool --device small.json
"$MEMSIM" run tiny.json --set training.step=first --allocations - -q |
    grep ' 33554432$'
