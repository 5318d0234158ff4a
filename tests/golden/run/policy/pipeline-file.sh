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
# A mark of UTF-8, quotes and other ends of lines are a spreadsheet's.
run 1f1b plan >one
run 1f1b schedule | sed 's/[^,]*/"&"/g; s/$/,\r/; 1s/^/\xef\xbb\xbf/' >s.csv
run ./s.csv plan | cmp one - && echo 'as a spreadsheet saves it: the same'
run 1f1b schedule | tr '\n' '\r' >s.csv
run ./s.csv plan | cmp one - && echo 'lines that end in CR: the same'
