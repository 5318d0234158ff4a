# SPDX-License-Identifier: GPL-3.0-or-later
# Each says what is wrong and leaves no file behind.
fails() {
    "$MEMSIM" report "$@"
    echo "exit $?"
}
fails gpt2 -o page.svg
fails gpt2 -o .html
set -- -p none -p microbatch:1
fails gpt2 bert-base resnet18 resnet50 t5-small "$@" -o page.html
"$MEMSIM" run gpt2 --json >saved.html
fails saved.html -o saved.html
fails saved.html --batch 2 -o page.html
fails saved.html --rank 3 -o page.html
fails no-such-model -o page.html
fails gpt2 -p checkpoint:sqrd -o page.html
fails gpt2 --batch 3 -p microbatch:2 -o page.html
fails gpt2 -o no/such/folder/page.html
fails gpt2 --plot page.svg
"$MEMSIM" run gpt2 -q --snapshot run.pickle
fails run.pickle --batch 8 -o page.html
fails run.pickle -o run.pickle
fails run.pickle --goal tokens -o page.html
fails saved.html --goal tokens -o page.html
fails gpt2 --goal speed -o page.html
head -c 3000 run.pickle >cut.pickle
fails cut.pickle -o page.html
ls ./*.html
