# SPDX-License-Identifier: GPL-3.0-or-later
# The examples of the help are models that run.
"$MEMSIM" help files >files.txt
for name in tiny 7.5B mlp; do
    sed -n "/\"$name\"/,/^\$/p" files.txt >"$name.json"
    "$MEMSIM" run "$name.json" --json | grep -c '"fits"'
done
