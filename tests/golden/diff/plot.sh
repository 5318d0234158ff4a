# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck disable=SC2016 # names of files that a shell would read
# Both on one axis; the script is kept, and no word of it is a command.
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle -q --plot both.svg \
    --keep-script --title 'A `name` \ "of" mine'
grep -c '<svg' both.svg
sed -n '/^\$l0/,/^EOD/p' both.gp | head -n 6
cp stacks.pickle 'a `b` {c}.pickle'
"$MEMSIM" diff 'a `b` {c}.pickle' tiny.json --plot both.svg | tail -n 1
