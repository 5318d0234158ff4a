# SPDX-License-Identifier: GPL-3.0-or-later
# ZeRO++ on two nodes; the program is read back as it was written.
cat >mlp.json <<'EOF'
{"memsim": 1, "name": "mlp", "input": {"shape": [8]}, "layers": [
  {"repeat": 2, "name": "h", "layers": [
    {"type": "linear", "out": 8, "bias": false}]},
  {"type": "mean"}]}
EOF
policy=zero:3,dp=16,impl=deepspeed,param_persistence_threshold=8
policy=$policy,reduce_bucket_size=100,zero_quantized_weights=1
policy=$policy,zero_hpz_partition_size=8,zero_quantized_gradients=1
"$MEMSIM" run mlp.json -p "$policy" --dump program >one.program
cat one.program
"$MEMSIM" run mlp.json -p "$policy" --program one.program --dump program |
    sed 's/  #.*//' >again.program
sed 's/  #.*//' one.program | cmp - again.program
