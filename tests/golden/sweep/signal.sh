# SPDX-License-Identifier: GPL-3.0-or-later
# An interrupt leaves whole rows; --resume makes the file as if there had been
# none.
run() { # file, further options: in place of this shell
    file=$1
    shift
    exec env --default-signal=INT "$MEMSIM" sweep tiny.json \
        --grid 'policy=none;checkpoint:full;microbatch:2' \
        --grid batch=2..400+2 --grid sequence=16..128+16 -o "$file" "$@"
}
stop() { # signal
    run part.csv -j1 2>note &
    until [ -s part.csv ]; do sleep 0.01; done
    kill -"$1" $!
    wait $!
    echo "status $?"
    sed 's/[0-9,]* rows.*refused)/N rows/' note
    [ -z "$(tail -c 1 part.csv)" ] && echo "whole rows"
    [ "$(wc -l <part.csv)" -lt 4801 ] && echo "not all"
    (run part.csv --resume -q) && cmp part.csv whole.csv && rm part.csv
}
(run whole.csv -q)
wc -l <whole.csv
stop TERM
stop INT
