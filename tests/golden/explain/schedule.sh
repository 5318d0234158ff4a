# SPDX-License-Identifier: GPL-3.0-or-later
# Which block is saved, made again, and when.
show() { # model, policy
    echo "$2"
    # shellcheck disable=SC2086 # words
    "$MEMSIM" explain $1 --top 1 -p "checkpoint:$2" |
        sed -n '/^schedule/,/^$/p' | grep '^  *[a-z]*  *[SpiRrb>.*]*$\|more'
}
"$MEMSIM" explain gpt2 --top 1 --batch 16 -p checkpoint:every=4 |
    sed -n '/^schedule/,/^$/p'
for policy in full each=2 sqrt chen,budget=13GiB optimal,budget=12.6GiB \
    revolve=3 nested=6/2/1 sac modules=mlp full,micro_batches=0; do
    show 'gpt2 --batch 16' "$policy"
done
show chain.json optimal,budget=62
show 'gpt3 --gpus 8 --batch 8 -p tensor:8' optimal,budget=380GiB
show 'gpt2 --batch 16 -p microbatch:4 -p pipeline:2' full
"$MEMSIM" explain gpt2 --json -p checkpoint:every=6 | tr '\n' ' ' |
    grep -o '"schedule": [^]]*]'
"$MEMSIM" explain gpt2 --json -p none | grep -c '"schedule"'
