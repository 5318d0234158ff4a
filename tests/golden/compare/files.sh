# SPDX-License-Identifier: GPL-3.0-or-later
# Results are compared as if they had been simulated; what varies names them.
for batch in 1 8; do
    "$MEMSIM" run tiny.json --batch $batch --json >$batch.json
done
"$MEMSIM" run tiny.json --batch 8 -p checkpoint:full --json >full.json
"$MEMSIM" compare 1.json 8.json
"$MEMSIM" compare tiny.json --grid batch=1,8 >live
"$MEMSIM" compare 1.json 8.json | diff live - | grep '^[<>]' | cut -c1-72
"$MEMSIM" compare tiny.json --grid batch=1,8 --csv live.csv -q 2>/dev/null
"$MEMSIM" compare 1.json 8.json --csv - | diff live.csv - && echo same rows
cat 1.json 8.json >both.jsonl
"$MEMSIM" compare both.jsonl --json >both.json
"$MEMSIM" compare tiny.json --grid batch=1,8 --json | cmp - both.json &&
    echo same objects
"$MEMSIM" compare both.json full.json | sed -n '3,7p'
"$MEMSIM" compare full.json tiny.json -p none -p microbatch:2 --batch 8 |
    sed -n '6,16p'
"$MEMSIM" compare 8.json 8.json | sed -n '3,5p'
"$MEMSIM" run tiny.json --memory 1MiB --json >small.json
"$MEMSIM" compare 1.json small.json --check -q
echo "status $?"
