# SPDX-License-Identifier: GPL-3.0-or-later
# A schedule that is dumped and read back is the same run, byte for byte; so is
# one in the letters of PyTorch 2.5.
run() { # schedule what
    "$MEMSIM" run tiny16.json -p "pipeline:4,schedule=$1+microbatch:8" \
        --batch 8 --dump "$2"
}
for s in 1f1b gpipe interleaved,chunks=2 interleaved,chunks=2,group=8 \
    looped-bfs looped-bfs,chunks=2 zb-h1 zb-h1,chunks=3 zb-h2 zb-v v-half \
    v-min dualpipev dualpipe; do
    run "$s" schedule >s.csv
    run "$s" plan >one
    for letters in new old; do
        if [ $letters = old ]; then
            case $s in dual*) continue ;; esac
            sed 's/B/BW/g; s/I/B/g' s.csv >old.csv
            mv old.csv s.csv
        fi
        run ./s.csv plan >other
        cmp one other && echo "$s: the same, $letters letters"
    done
done
run dualpipe schedule
