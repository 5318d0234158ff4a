# SPDX-License-Identifier: GPL-3.0-or-later
# Beyond the positions of a rotary model: allowed, with a note; a table ends.
"$MEMSIM" run tiny-llama.json --sequence 200 | sed -n '/^note/,/^memory/p'
"$MEMSIM" run tiny-llama.json --sequence 128 | sed -n '/^note: *a seq/p'
"$MEMSIM" explain tiny-llama.json --sequence 200 | sed -n '/^note/,/^at/p'
"$MEMSIM" inspect tiny-llama.json --sequence 200 | sed -n '/^note/,/^$/p'
"$MEMSIM" run tiny.json --sequence 200 2>&1
