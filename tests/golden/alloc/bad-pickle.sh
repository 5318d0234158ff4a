# SPDX-License-Identifier: GPL-3.0-or-later
# Pickles that are wrong or hostile: the message names the byte, nothing runs.
try() {
    # shellcheck disable=SC2059 # with its escapes
    printf "$1" | "$MEMSIM" alloc - -q 2>&1
    echo "$?"
}
try '\200\002cos\nsystem\nX\004\000\000\000echo\205R.'
try '\200\004\225\013\000\000\000\000\000\000\000\214\002os\214\006system\223.'
try '\200\002}q\000X\377\377\377\377seg'
try '\200\002}q\000h\007.'
try '\200\002]q\377.'
try '\200\002(.'
try '\200\002e.'
try '\200\002a.'
try '\200\002}(K\001u.'
try '\200\002]K\001K\002s.'
try '\200\002K\001K\002.'
try '\200\002\212\011\001\001\001\001\001\001\001\001\001.'
try '\200\002G\000\000'
try '\200\006}.'
try '\200\002I1\n.'
try '\200\002}.'
try '\200\002N.'
for bytes in 100 1000 1366; do
    head -c $bytes snapshot.pickle | "$MEMSIM" alloc - -q 2>&1
    echo "$?"
done
# An entry that does not belong to the segments, an action that is not known.
LC_ALL=C sed 's/free_completed/free_xompleted/' snapshot.pickle |
    "$MEMSIM" alloc - -q 2>&1
echo "$?"
LC_ALL=C sed 's/segment_alloc/segment_xlloc/' snapshot.pickle |
    "$MEMSIM" alloc - -q 2>&1
echo "$?"
LC_ALL=C sed 's/active_allocated/inactive_xxxxxxx/' snapshot.pickle |
    "$MEMSIM" alloc - -q 2>&1
echo "$?"
LC_ALL=C sed 's/total_size/total_xxxx/' snapshot.pickle |
    "$MEMSIM" alloc - -q 2>&1
echo "$?"
