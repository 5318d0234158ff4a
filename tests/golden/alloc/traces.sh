# SPDX-License-Identifier: GPL-3.0-or-later
# Several traces: of ranks (which is highest and why, under one allocator and
# two, of mixed forms), and of successive steps of one run (what grows).
"$MEMSIM" alloc stacks.pickle stacks-keeps.pickle --allocator torch,va=bump
"$MEMSIM" alloc stacks-keeps.pickle alloc.txt recorded.json snapshot.pickle \
    --allocator torch,va=bump --allocator bfc
"$MEMSIM" alloc recorded.json snapshot.pickle recorded.json
sed 's/139637976728064, 1000/139637976728576, 1000/' recorded.json >other.json
"$MEMSIM" alloc other.json recorded.json --memory 40GiB | sed -n '/^first/,$p'
"$MEMSIM" alloc other.json recorded.json | sed -n '/^as/,$p; /^not/p'

# A row of one trace is what it has alone.
for file in alloc.txt recorded.json; do
    "$MEMSIM" alloc $file --json |
        jq -c '.allocators[0] | del(.segments)'
done >alone
"$MEMSIM" alloc alloc.txt recorded.json --json |
    jq -c '.traces[].allocators[0]' | cmp - alone && echo the same
"$MEMSIM" alloc stacks.pickle stacks-keeps.pickle --allocator torch,va=bump \
    --json | jq -c 'del(.memsim, .traces), [.traces[].trace]'

# Successive steps: each keeps 1 MiB more, and 2 MiB that are others each time.
for k in 0 1 2 3; do
    awk -v k=$k 'BEGIN {
        print "# total_bytes 1073741824"
        for (i = 0; i <= k; i++)
            print "a", i, 1048576
        print "a 90", 2097152 + 4096 * k
        print "a 91 3145728\nf 91"
    }' >step$k.txt
done
"$MEMSIM" alloc step?.txt --leaks
"$MEMSIM" alloc step?.txt --leaks --json | sed -n '/"leaks"/,$p'
"$MEMSIM" alloc step?.txt | tail -n 4
"$MEMSIM" alloc step0.txt step0.txt step0.txt --leaks | sed -n '/^leaks/,$p'
"$MEMSIM" alloc step3.txt step2.txt step1.txt --leaks | sed -n '/^leaks/,$p'
