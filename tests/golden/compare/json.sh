# SPDX-License-Identifier: GPL-3.0-or-later
# The variants are what run --json prints of each; then the differences.
set -- none microbatch:2
"$MEMSIM" compare tiny.json --batch 8 -p "$1" -p "$2" --explain --at loss \
    --top 3 --json >all.json
for policy; do
    "$MEMSIM" run tiny.json --batch 8 -p "$policy" --json >one.json
    grep -cFf one.json all.json
done
sed 's/.*"differences"/"differences"/' all.json
