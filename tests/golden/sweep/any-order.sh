# SPDX-License-Identifier: GPL-3.0-or-later
# A grid's rows stand in its order, and a point has one result: whatever the
# order of the keys, on one core or two, in shards, and over more points than
# are simulated at a time.
policies='policy=none;checkpoint:full;microbatch:2'
rows() { # without the number of the point
    "$MEMSIM" sweep tiny.json "$@" -q -o - | sed '1d; s/^[0-9]*,//' | sort
}
rows --grid "$policies" --grid batch=2..1000*2 --jobs 1 >one
rows --grid batch=2..1000*2 --grid "$policies" --jobs 2 >two
cmp one two && wc -l <one
"$MEMSIM" sweep tiny.json --grid "$policies" --grid batch=2..1200 -q -o whole
for shard in 1 2 3; do
    "$MEMSIM" sweep tiny.json --grid "$policies" --grid batch=2..1200 -q \
        --shard $shard/3 -o - | sed 1d
done >parts
sed 1d whole | cmp - parts && wc -l <parts
cut -d, -f 1 parts | awk '$1 != NR { print "point " $1 " is row " NR }'
