# SPDX-License-Identifier: GPL-3.0-or-later
# Each says what is wrong, and writes nothing.
fails() {
    "$MEMSIM" diff "$@"
    echo "exit $?"
}
"$MEMSIM" run gpt2 --json >saved.json
fails stacks.pickle
fails stacks.pickle no-such-file
fails gpt2
fails gpt2 bert-base --grid batch=1,2
fails gpt2 bert-base -p none -p checkpoint:full
fails gpt2 gpt2
fails gpt2 bert-base t5-small
fails stacks.pickle snapshot.pickle --batch 8
fails saved.json stacks.pickle --rank 1
: >empty.pickle
fails empty.pickle stacks.pickle
head -c 1000 stacks.pickle >cut.pickle
fails cut.pickle stacks.pickle
head -c 300 recorded.json >cut.json
fails cut.json stacks.pickle
head -c 9000 saved.json >cut-saved.json
fails cut-saved.json stacks.pickle
fails alloc.txt stacks.pickle
fails swept.csv stacks.pickle
fails stacks.pickle gpt2 -p checkpoint:sqrd
fails stacks.pickle gpt2 --plot=stacks.pickle
fails stacks.pickle gpt2 --title x
fails stacks.pickle gpt2 --json --plot=-
fails stacks.pickle gpt2 --top x
fails stacks.pickle gpt2 -o page.svg
fails stacks.pickle gpt2 -o stacks.pickle
cp stacks.pickle in.html
fails in.html gpt2 -o in.html
fails stacks.pickle gpt2 --json -o -
fails stacks.pickle gpt2 --plot=- -o -
fails stacks.pickle gpt2 -q -o no/such/folder/page.html
