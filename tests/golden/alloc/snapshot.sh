# SPDX-License-Identifier: GPL-3.0-or-later
# A pickle as torch.cuda.memory._dump_snapshot writes it (of recorded.json).
"$MEMSIM" alloc snapshot.pickle
"$MEMSIM" alloc - --csv - <snapshot.pickle
"$MEMSIM" alloc snapshot.pickle --allocator torch,expandable_segments=True |
    sed -n '/reserved/p'
