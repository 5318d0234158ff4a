# SPDX-License-Identifier: GPL-3.0-or-later
# What is wrong with a schedule is said at file:row:column.
try() { # rows...
    printf '%s\n' "$@" >s.csv
    "$MEMSIM" run tiny16.json -p pipeline:2,schedule=./s.csv+microbatch:2 \
        --batch 2 --dump schedule
    echo "status $?"
}
exec 2>&1
good=1F0,1B0,1F1,1B1
try '0F0,0F1,0B0,0B1' "$good,1B1"
try '0F0,0F1,0B0,0B1' '1F0,1B0,1F1'
try '0F0,0F1,0W0,0I0,0B1' "$good"
try '0F0,,0F1,0B0,0B1x' "$good"
try '0F0,0F1,0B0,0BW1,0I0' "$good"
try '0F0,0F1,0B0,0B1,0SEND_F0' "$good"
try '0F0,0F1,0B0,0B1' '1F0,1B0,(1F1,1B1)OVERLAP_F_B'
try '0F0,0F1,0B0,0B1' '1F0,1B0,(1F1;1B1)OVERLAP_F_B'
try '0F0,0F1,0B0,0B1' '1F0,1B0,1F1,0B1'
try '0F0,0F1,0B0,0B1' '1B0,1F0,1F1,1B1'
try '0F0,0F1,0B0,0B1' '1F0,1B0,99999999F1'
try '0F0,0F1,0B0,0B1' '1F0,1B0,99999F1'
try '0F0,0B0,0F1,0B1' '1F1,1B1,1F0,1B0'
try '0F0,0F1,0B0,0B1' '' "$good"
try '0F0,0F1,0B0,0B1'
try '0F0,0F1,0B0,0B1,0F2,0B2' "$good,1F2,1B2"
try '0F0,0F1,0B0,0B1' "$good,2F0,2F1,2B0,2B1"
try '0F0,0F1,0B0,0B1' '2F0,2B0,2F1,2B1'
try '0F0,0F1,0I0,0I1,0W0' "$good"
try ''
# Cells of messages, gathers and reductions must fit the turns.
sends=0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
receives=1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1
try "$sends" "$receives"
try "$sends" "$(echo "$receives" | sed s/1RECV_F1,//)"
try "$sends,0SEND_F1" "$receives"
try "0SEND_F0,$sends" "$receives"
try "$sends" "$receives,1RECV_F0"
try "$sends,0SEND_B1" "$receives"
try "$sends,1SEND_B1" "$receives"
try "0UNSHARD,$sends,0REDUCE_GRAD,0RESHARD" "$receives"
try "0UNSHARD,0RESHARD,$sends" "$receives"
try "0REDUCE_GRAD,$sends" "$receives"
try "1UNSHARD,$sends" "$receives"
try "$sends" 1RECV_F0,1RECV_F1
"$MEMSIM" run tiny16.json -p pipeline:2,schedule=./none.csv
order() { # arguments of the policy, micro-batches
    "$MEMSIM" run tiny16.json -p "pipeline:4,$1+microbatch:$2" --batch "$2"
}
hang() { # micro-batches, arguments of the policy, rows...
    printf '%s\n' "$3" "$4" >s.csv
    "$MEMSIM" run tiny16.json -p "pipeline:2,schedule=./s.csv$2+microbatch:$1" \
        --batch "$1" --dump plan
    echo "status $?"
}
# Rank 1 sends a gradient that rank 0 does not receive yet, whose forwards rank
# 1 does not receive meanwhile.
hang 4 '' 0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3 1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3
hang 2 ,overlap=0 0F0,2F0,2B0,0B0,0F1,2F1,2B1,0B1 \
    1F1,3F1,3B1,1B1,1F0,3F0,3B0,1B0
order chunks=2,group=6 8
order group=6 8
order schedule=dualpipe 7
order schedule=dualpipev 4
order schedule=v-min,chunks=3 8
order schedule=zb-v2 8
