# SPDX-License-Identifier: GPL-3.0-or-later
# What kind of file it is: minimalloc's CSV, with a byte order mark or without
# one, is of the arena alone; what holds no allocation is an error.
try() {
    "$MEMSIM" alloc "$@" 2>&1
    echo "exit $?"
}
printf 'id,lower,upper,size\na,0,5,10\n' >plain.csv
printf '\357\273\277id,lower,upper,size\na,0,5,10\n' >bom.csv
printf 'id,lower,upper,size\nx\0,0,1,1\n' >nul.csv
printf '\357\273\277a 1 512\nf 1\n' >bom.txt
printf 'id,lower,upper,size\n' >heading.csv
printf '# nothing\n\n' >comment.txt
: >empty.txt
for file in plain.csv bom.csv nul.csv; do
    try $file
    try $file --allocator torch --json
    try $file --allocator arena
done
try bom.txt --quiet
try heading.csv --allocator arena
for file in comment.txt empty.txt; do
    try $file
    try $file --leaks
    try $file --allocator arena
done
