# SPDX-License-Identifier: GPL-3.0-or-later
# A checkpoint is moved to the host, and a swap moves the other saves.
"$MEMSIM" run tiny16.json --policy swap:save_on_cpu+checkpoint:full --batch 8 \
    --json | keep 'peak, category_peaks, saved_for_backward_bytes,
        host_peak_bytes, host_by_category, time, stalls, flops, traffic,
        links.h2d, links.d2h, overlap.copies, recomputed_ops'
