# SPDX-License-Identifier: GPL-3.0-or-later
# Ops that the table does not know: refused, or all they touch is saved.
# log_softmax saves its output (512 B); what is unknown its input too.
sed 's/aten\._log_softmax/mine.soft/' ops.json >soft.json
"$MEMSIM" run soft.json 2>&1
"$MEMSIM" run soft.json --set graph.unknown_op=refuse 2>&1
for model in ops soft unknown; do
    "$MEMSIM" run $model.json --set graph.unknown_op=conservative --json |
        grep -oE '"(unknown_ops": [^]]*]|saved_for_backward_bytes": [0-9]*)'
done
"$MEMSIM" run unknown.json --set graph.unknown_op=conservative \
    --dump graph | grep -A3 unknown_backward
"$MEMSIM" run unknown.json --set graph.unknown_op=conservative |
    keep 'model, unknown, step, peak, at peak'
# A view of an unknown kind, then written in place: its node dies.
sed 's/\[13, 10, \[\], "float32", \[\], 0\]/&,\
  [14, 5, [8, 16], "float32", [16, 1], 0]/
s/"loss_start": 5/"loss_start": 6/
s/{"op": "aten.relu_", "mod": "h.0", "args": \["T"\], "in": \[6\]/\
  {"op": "mine.look", "mod": "h.0", "in": [6], "out": [14]},\
  {"op": "aten.relu_", "mod": "h.0", "args": ["T"], "in": [14]/' \
    ops.json >look.json
"$MEMSIM" run look.json --set graph.unknown_op=conservative --json |
    grep -oE '"(unknown_ops": [^]]*]|saved_for_backward_bytes": [0-9]*)'
"$MEMSIM" explain unknown.json --set graph.unknown_op=conservative --top 2 \
    -p none --at loss
"$MEMSIM" run tiny.json --set graph.unknown_op=conservative 2>&1
"$MEMSIM" run ops.json --set graph.unknwn_op=refuse 2>&1
"$MEMSIM" run ops.json --set unknown_op=refuse 2>&1
"$MEMSIM" run ops.json --set graph.unknown_op=keep 2>&1
