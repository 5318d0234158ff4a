# SPDX-License-Identifier: GPL-3.0-or-later
# A hostile name in figure and script: what is drawn is the name, what has no
# glyph in the font becomes a question mark, and nothing of it is executed.
for ending in svg png pdf; do
    "$MEMSIM" run names.json -q --plot="a'b;\$(touch pwned).$ending" \
        --keep-script
done
grep -a -c "touch pwned" ./*.svg
grep -a "^set title\|EOD" ./*.gp | head -n 3
ls
