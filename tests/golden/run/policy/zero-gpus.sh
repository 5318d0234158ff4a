# SPDX-License-Identifier: GPL-3.0-or-later
# What one of four ranks holds, sends and waits for.
"$MEMSIM" run tiny16.json --policy zero:2+microbatch:2 --gpus 4 --batch 8 \
    --json | keep 'policy, settings.gpus, peak, category_peaks, model_states,
        levels, phase_peaks, overheads, time, stalls, traffic, links.comm,
        overlap.comm, tokens_per_second'
