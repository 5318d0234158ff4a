# SPDX-License-Identifier: GPL-3.0-or-later
# Every option that help lists is taken.
for command in run explain inspect; do
    for option in $("$MEMSIM" help $command |
        sed -n 's/^ *\(-[a-z], \)*--\([a-z-]*\).*/\2/p'); do
        "$MEMSIM" $command nowhere.json --"$option" 2>&1 |
            grep "unknown option"
    done
done
exit 0
