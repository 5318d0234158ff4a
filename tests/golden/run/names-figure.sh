# SPDX-License-Identifier: GPL-3.0-or-later
# A hostile name reaches the figure as text: what has no glyph in the font
# becomes a question mark, nothing of it is executed, no path comes of it.
touch start
for ending in svg png pdf; do
    "$MEMSIM" run names.json -q --plot="a'b;\$(touch pwned).$ending" \
        --keep-script
    echo "$?"
done
find . -type f -newer start | sort
grep -c 'touch pwned.*EOD ?*\.\./\.\./etc ; ' ./*.svg ./*.gp
