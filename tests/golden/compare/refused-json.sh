# SPDX-License-Identifier: GPL-3.0-or-later
# A refused variant has its reason; the others are held against the first that
# is there.  A variant that is refused does not fit.
"$MEMSIM" compare tiny.json -p microbatch:3 -p none -p checkpoint:full --json \
    --check >out.json
echo "status $?"
sed 's/.*"names"/"names"/; s/"variants": \[\({[^}]*}\), .*/\1/' out.json
grep -o '"variant": 3, "against": 2' out.json
grep -c '"variant": [12], ' out.json
