# SPDX-License-Identifier: GPL-3.0-or-later
# Files, standard input, headers in any order, carriage returns.
"$MEMSIM" alloc alloc.txt --csv rows.csv
"$MEMSIM" alloc - --csv - <alloc.txt | cmp - rows.csv && echo same rows
"$MEMSIM" alloc alloc.txt --csv rows.csv --json -q | grep -c address
sed 's/$/\r/' alloc.txt | "$MEMSIM" alloc - --csv - | cmp - rows.csv
"$MEMSIM" alloc - --csv - </dev/null
{
    printf '# conf max_split_size_mb:32\n# version 2.4\n'
    printf '# total_bytes 99999999\na 1 5'
} | "$MEMSIM" alloc - | head -n 2
"$MEMSIM" alloc alloc.txt --memory 64MiB --allocator torch,fraction=0.5 |
    tail -n 4
sed 's/139637976728064, 1000/139637976728576, 1000/' recorded.json |
    "$MEMSIM" alloc - | tail -n 1
