# SPDX-License-Identifier: GPL-3.0-or-later
# The calls of one micro-batch under DeepSpeed's stages 1 and 3.
cat >mlp.json <<'EOF'
{"memsim": 1, "name": "mlp", "input": {"shape": [8]}, "layers": [
  {"repeat": 3, "name": "h", "layers": [{"type": "linear", "out": 8}]},
  {"type": "mean"}]}
EOF
"$MEMSIM" run mlp.json -p zero:1,dp=2,impl=deepspeed,reduce_bucket_size=100 \
    --dump program >one.program
cat one.program
"$MEMSIM" run mlp.json -p zero:1,dp=2,impl=deepspeed,reduce_bucket_size=100 \
    --program one.program --dump program | sed 's/  #.*//' >again.program
sed 's/  #.*//' one.program | cmp - again.program
small=param_persistence_threshold=8,reduce_bucket_size=100
"$MEMSIM" run mlp.json --dump program -p zero:3,dp=2,impl=deepspeed,$small
