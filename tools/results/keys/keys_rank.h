/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RESULTS_KEYS_RANK_H
#define MS_RESULTS_KEYS_RANK_H

/* Rows whose values lie in an ms_rank_report.  They stand in each rank of
 * "ranks" and, of the rank with the highest peak, in the object itself; what a
 * row says besides is given to it:
 *
 *     MS_RANK_TIMES(MS_KEYS_MUST), */

#include "sim/measure/waits.h"
#include "tools/results/keys/keys.h"

extern const ms_keys ms_keys_rank_peak;
extern const ms_keys ms_keys_rank_states;
extern const ms_keys ms_keys_rank_levels;
extern const ms_keys ms_keys_rank_phases;
extern const ms_keys ms_keys_rank_phase_categories;
extern const ms_keys ms_keys_rank_times;
extern const ms_keys ms_keys_rank_stalls;
extern const ms_keys ms_keys_rank_traffic;
extern const ms_keys ms_keys_rank_links;
extern const ms_keys ms_keys_rank_overlap;

#define MS_RANK_PEAK(...)                                                      \
    {                                                                          \
        .name = "peak", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_peak,       \
        __VA_ARGS__                                                            \
    }
#define MS_RANK_CATEGORY_PEAKS(...)                                            \
    {                                                                          \
        .name = "category_peaks", MS_KEYS_CATEGORIES,                          \
        MS_KEYS_AT(U64, ms_rank_report, category_peaks), __VA_ARGS__           \
    }
#define MS_RANK_MODEL_STATES(...)                                              \
    {                                                                          \
        .name = "model_states", .type = MS_KEY_OBJECT,                         \
        .of = &ms_keys_rank_states, __VA_ARGS__                                \
    }
#define MS_RANK_LEVELS(...)                                                    \
    {                                                                          \
        .name = "levels", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_levels,   \
        __VA_ARGS__                                                            \
    }
#define MS_RANK_PHASE_PEAKS(...)                                               \
    {                                                                          \
        .name = "phase_peaks", .type = MS_KEY_OBJECT,                          \
        .of = &ms_keys_rank_phases,                                            \
        MS_KEYS_AT(NOT, ms_rank_report, phase_peaks), __VA_ARGS__              \
    }
#define MS_RANK_TIMES(...)                                                     \
    {                                                                          \
        .name = "time", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_times,      \
        MS_KEYS_AT(NOT, ms_rank_report, time), __VA_ARGS__                     \
    }
#define MS_RANK_STALLS(...)                                                    \
    {                                                                          \
        .name = "stalls", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_stalls,   \
        __VA_ARGS__                                                            \
    }
#define MS_RANK_TRAFFIC(...)                                                   \
    {                                                                          \
        .name = "traffic", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_traffic, \
        __VA_ARGS__                                                            \
    }
#define MS_RANK_LINKS(...)                                                     \
    {                                                                          \
        .name = "links", .type = MS_KEY_NAMED, .of = &ms_keys_rank_links,      \
        .names = ms_waits_links, .n_names = MS_N_LINKS,                        \
        MS_KEYS_AT(NOT, ms_rank_report, links), __VA_ARGS__                    \
    }
#define MS_RANK_OVERLAP(...)                                                   \
    {                                                                          \
        .name = "overlap", .type = MS_KEY_OBJECT, .of = &ms_keys_rank_overlap, \
        __VA_ARGS__                                                            \
    }

/* Of a rank of a ring, those of ms_report.ring of an ms_sheet. */
extern const ms_keys ms_keys_rank_ring;
ms_key_list ms_keys_rank_ring_list(const void *sheet);
bool ms_keys_rank_has_ring(const void *sheet);

#endif
