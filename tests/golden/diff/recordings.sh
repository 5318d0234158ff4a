# SPDX-License-Identifier: GPL-3.0-or-later
# Two recordings with Python stacks, of two steps each, of which one keeps a
# tensor more: told once, from either side, and not at all beside itself.
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle
"$MEMSIM" diff stacks-keeps.pickle stacks.pickle | sed -n '/^what/,$p'
"$MEMSIM" diff stacks.pickle stacks.pickle | sed -n '/^the same/,$p'
"$MEMSIM" diff snapshot.pickle recorded.json
"$MEMSIM" diff stacks.pickle stacks-keeps.pickle --json |
    jq -c 'del(.sides[].line_at, .sides[].line_bytes, .memsim)'
