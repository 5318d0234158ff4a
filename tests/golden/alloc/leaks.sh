# SPDX-License-Identifier: GPL-3.0-or-later
# What grows from step to step: a trace of six steps, each with 20 tensors and
# a buffer that the next step replaces; with kept=1 it keeps 3 MiB of each step
# and, of every other step, 2 KiB.
steps() { # kept mark
    awk -v kept="$1" -v mark="$2" 'BEGIN {
        print "a 1 70000000"
        for (step = 0; step < 6; step++) {
            if (mark != "")
                print mark
            if (step == 0)
                print "a 2 140000000" # set up once
            for (i = 0; i < 20; i++)
                print "a", 100 + i, 1000 * (i + 1), i % 2 * 7
            print "a", 50 + step, 5000
            if (step > 0)
                print "f", 49 + step
            if (kept)
                print "a", 1000 + step, 3 * 1024 * 1024
            if (kept && mark != "" && step % 2)
                print "a", 2000 + step, 2048
            for (i = 0; i < 20; i++)
                print "f", 100 + i
        }
    }'
}
leaks() {
    "$MEMSIM" alloc - --leaks "$@" | sed -n '/^leaks/,$p'
}

steps 1 '' | leaks
steps 1 '# step' | leaks
steps 1 P | leaks --allocator torch --allocator torch,expandable_segments=True
steps 0 '' | leaks
steps 0 '# step' | leaks
steps 1 '' >kept.txt
"$MEMSIM" alloc kept.txt --leaks --json | sed -n '/"leaks"/,$p'
steps 1 P | "$MEMSIM" alloc - --leaks --json | sed -n '/"leaks"/,$p'
"$MEMSIM" alloc kept.txt --leaks --csv rows.csv -q
"$MEMSIM" alloc kept.txt --csv - | cmp - rows.csv

# Where steps cannot be told.
head -n 50 kept.txt | "$MEMSIM" alloc - --leaks
steps 1 '# step' | head -n 100 | "$MEMSIM" alloc - --leaks
"$MEMSIM" alloc - --leaks </dev/null
"$MEMSIM" alloc alloc.txt --leaks --json
"$MEMSIM" alloc recorded.json --leaks
echo "$?"
