# SPDX-License-Identifier: GPL-3.0-or-later
# A weight that nothing reads gets no gradient.
sed 's/\[10, 4, "act", ""\]\],/[10, 4, "act", ""], [11, 64, "param", "h.2.b"]],/
     s/\[13, 10, .*0\]\],/[13, 10, [], "float32", [], 0],\
                          [14, 11, [16], "float32", [1], 0]],/' \
    ops.json >unread.json
for model in ops.json unread.json; do
    "$MEMSIM" run $model --color never | grep '^model\|^warning\|^states'
done
