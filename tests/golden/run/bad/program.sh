# SPDX-License-Identifier: GPL-3.0-or-later
# These files are no programs.
: >empty.txt
head -c 1000000 /dev/zero | tr '\0' a >word.txt
printf 'program\n\377\000\033[31m\n' >bytes.txt
truncate -s 1G huge.txt
for name in empty.txt word.txt bytes.txt huge.txt /dev/zero . ; do
    "$MEMSIM" run tiny.json --program $name 2>&1 | cut -c 1-78
done
"$MEMSIM" run mlp.json --dump program | sed 's/^set 0 = [0-9]*/set 0 = 0/' |
    "$MEMSIM" run mlp.json --program - 2>&1
"$MEMSIM" run tiny.json --program word.txt 2>/dev/null
