# SPDX-License-Identifier: GPL-3.0-or-later
# What a micro-batch makes leaves for a buffer of fewer bytes (PACKED) or in
# parts (SHARD) and is brought back by a call or by whoever reads it; a task
# takes its time on its stream.  The block's input, 16,384 bytes, is saved by
# checkpoint:full; four ranks.
run() {
    cat >now
    "$MEMSIM" run tiny.json --gpus 4 -p ddp --program now "$@"
}
"$MEMSIM" run tiny.json --gpus 4 -p checkpoint:full+ddp --dump program >plain
block=layers.0.residual2:out
input=$(sed -n "s/^set \([0-9]*\) = [0-9]*  # $block/\1/p" plain | head -n 1)
unit=$(sed -n 's/^run forward unit \([0-9]*\) .*# layers.1.norm2$/\1/p' plain)
cat >tables <<'END'
buffer 0 = 4000 activations device compute recorded
task 0 = 50000 ns compute  # compress
task 1 = 1000000000 flops comm
task 2 = 1000000 bytes d2h
END
here="frame 0 micro 0"
with() { # lines after the last forward of the block, before its replay
    awk -v unit="$unit" -v after="$1" -v before="$2" '
        /^mark start/ { while (getline line <"tables") print line }
        /^rerun/ && $3 ~ "-" unit "$" && before != "" { print before }
        { print }
        /^run forward/ && $4 == unit { print after }' plain
}
rows() {
    run --dump plan | awk -v name="layers.0.residual2:out" '
        $1 == "+" && ($4 == name || $4 == "buffer") { print "  " $4, $5, $6 }'
}
echo "in parts, gathered by the replay:"
with "move $input $here to shard" "" | rows
echo "in parts, gathered by a call:"
with "move $input $here to shard" "gather $input $here" | rows
echo "packed:"
with "take $here buffer 0
move $input $here to packed buffer 0" "move $input $here to here
give $here buffer 0" | rows
echo "tasks:"
with "work 0 $here of $input
work 1 $here of $input
work 2 $here" "" >tasks
run --dump plan <tasks | awk '$3 == "copy" && / ns (50000|1011|18182)/ {
    $2 = ""; $NF = $(NF - 1) == "wait" ? "N" : $NF; print }'
run --dump program <tasks >printed
run --dump program <printed >again
cmp again printed && echo "read back"
grep -E '^(task|work)' printed
for wrong in "work 3 $here" "reduce $input $here to here" \
    "work 0 $here unit 3"; do
    with "$wrong" "" >broken
    run <broken 2>&1
    echo "status $?"
done
exit 0
