# SPDX-License-Identifier: GPL-3.0-or-later
# Traces that are wrong: the message names the line.
try() {
    # shellcheck disable=SC2059 # with its escapes
    printf "$1" | "$MEMSIM" alloc - -q 2>&1
    echo "$?"
}
try 'a 1 512 0\nf 1\n\nf 1\n'
try 'a 1 512 0\nf 2\n'
try 'r 3 1\n'
try 'a 1 512 0\na 1 512 0\n'
try '# total_bytes 1048576\na 1 1048577 0\n'
try 'a 1 0 0\n'
try 'a 1 18446744073709551616 0\n'
try 'a 1 -5 0\n'
try 'a 1\n'
try 'a 1 5 0 7\n'
try '# a comment\nmalloc 1 5 0\n'
try 'q\n'
try 'm 1.5\n'
try 'm\n'
try 'w\n'
try 'c 1 x\n'
try 'x expandable_segments:true\n'
try 'x max_split_size_mb:20,\n'
try '# conf max_split_size:64\na 1 5\n'
try '# va up\na 1 5\n'
try '# total_bytes 80GiB\na 1 5\n'
try '# version 2.7\na 1 5\n'
try 'a 1 5\n# total_bytes 5\n'
try '# total_bytes 2251799813685248\na 1 5\n'
try 'a 1 5\000 0\n'
try '\037\213\010\000'
try "$(printf '%09000d' 1)"
lowered='a 2 30000000\nx max_split_size_mb:24\na 3 50000000\n'
try "# version 2.4\n# total_bytes 99999999\na 1 60000000\nf 1\n$lowered"
try 'w 1 18446744073709551615\nw 1 1\n'
