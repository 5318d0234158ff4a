/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_PLUGIN_H
#define MS_POLICIES_PLUGIN_H

/* A policy in a shared library (--plugin ./mine.so).  This header is all that
 * it needs: it sees the step through functions, never through memsim's structs,
 * which may change.  This is a whole one, which drops what is larger than a
 * megabyte and lets it be made again:
 *
 *     #include "policies/plugin.h"
 *
 *     static int keep(ms_plugin_step *step)
 *     {
 *         for (uint32_t s = 0; s < ms_plugin_storages(step); s++)
 *             if (ms_plugin_is_saved(step, s) &&
 *                 ms_plugin_bytes(step, s) > 1u << 20)
 *                 ms_plugin_drop(step, s);
 *         return 0;
 *     }
 *     const ms_plugin ms_plugin_entry = {
 *         .api = MS_PLUGIN_API, .name = "small",
 *         .summary = "keep nothing above 1 MiB", .keep = keep};
 *
 *     cc -std=c17 -shared -fPIC -I. mine.c -o mine.so
 *     memsim run gpt2 --plugin ./mine.so -p small
 *
 * tests/plugin/ has three more: stripe.c (recomputes and moves), compress.c
 * (packs activations, with work of its own), partition.c (activations in
 * parts).
 *
 * Failures: what goes wrong in a function below is remembered, the function
 * returns 0, MS_PLUGIN_NONE or NULL, and memsim reports the first failure when
 * the hook returns; a hook need not ask.  Hooks return 0, or anything else for
 * a failure of their own (ms_plugin_fail).
 *
 * Hooks may be called from several threads at once, each with its own step:
 * keep what changes in ms_plugin_take's memory, not in statics.  The library is
 * never unloaded.
 *
 * Units: bytes, nanoseconds.  Ids count from 0; MS_PLUGIN_NONE is none.
 *
 * The version is raised when a function, a field or a value changes its meaning
 * or goes; what is added leaves it.  A library made for another is refused
 * before anything else of it is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS_PLUGIN_API 1u
#define MS_PLUGIN_NONE UINT32_MAX

/* ---- the policy ---------------------------------------------------------- */

typedef struct ms_plugin_step ms_plugin_step;

typedef enum ms_plugin_type {
    MS_PLUGIN_INT,  /* from low to high */
    MS_PLUGIN_SIZE, /* bytes: 40GiB, 1500000; from low to high */
    MS_PLUGIN_FLAG, /* a bare word: 1 where it is given */
    MS_PLUGIN_WORD  /* one of words, "a|b|c": its place among them */
} ms_plugin_type;

/* A parameter: the parser, its bounds, help and completion are this row.  Of
 * the rows marked choice exactly one is given. */
typedef struct ms_plugin_param {
    const char *name, *help;
    ms_plugin_type type;
    bool choice;
    int64_t fallback, low, high;
    const char *words;
} ms_plugin_param;

/* The library exports one object of this type, of the name below. */
typedef struct ms_plugin {
    uint32_t api; /* MS_PLUGIN_API */
    uint32_t n_params;
    const char *name; /* a letter, then letters, digits, - and _ */
    const char *summary, *example;
    const ms_plugin_param *params;
    /* (optional) What is kept for backward, before there is a program. */
    int (*keep)(ms_plugin_step *step);
    /* (optional) Writes the program anew, call by call. */
    int (*place)(ms_plugin_step *step);
    /* place asks for times: it runs after all policies that do not. */
    bool measures;
} ms_plugin;

extern const ms_plugin ms_plugin_entry __attribute__((visibility("default")));

/* ---- what both hooks may ask --------------------------------------------- */

/* The value of a parameter, by its row; its fallback where it is not given. */
int64_t ms_plugin_argument(const ms_plugin_step *step, uint32_t param);
bool ms_plugin_is_given(const ms_plugin_step *step, uint32_t param);
/* Zeroed memory that lasts as long as the step; NULL where there is none. */
void *ms_plugin_take(ms_plugin_step *step, size_t n, size_t size);
/* Says why a hook fails; returns 1, what the hook should return. */
int ms_plugin_fail(ms_plugin_step *step, const char *why);

/* The graph: units, the smallest pieces that run forward and backward, in the
 * order of their forward; some are in blocks (transformer layers). */
uint32_t ms_plugin_units(const ms_plugin_step *step);
uint32_t ms_plugin_blocks(const ms_plugin_step *step);
const char *ms_plugin_unit_name(ms_plugin_step *step, uint32_t unit);
uint32_t ms_plugin_unit_block(ms_plugin_step *step, uint32_t unit);
/* How long its kernels run alone, on an idle device. */
uint64_t ms_plugin_forward_ns(ms_plugin_step *step, uint32_t unit);
uint64_t ms_plugin_backward_ns(ms_plugin_step *step, uint32_t unit);
/* Storages: memory that ops make.  The unit whose forward makes one, NONE for
 * what exists before the step and what backward makes. */
uint32_t ms_plugin_storages(const ms_plugin_step *step);
const char *ms_plugin_storage_name(ms_plugin_step *step, uint32_t storage);
uint64_t ms_plugin_bytes(ms_plugin_step *step, uint32_t storage);
uint32_t ms_plugin_maker(ms_plugin_step *step, uint32_t storage);
/* Does forward make it, and save it for backward? */
bool ms_plugin_is_saved(ms_plugin_step *step, uint32_t storage);

/* The machine, as this rank sees it: data-parallel ranks; the device's memory
 * beside its context; a copy between the memories of host and device. */
uint32_t ms_plugin_ranks(const ms_plugin_step *step);
uint64_t ms_plugin_capacity_bytes(const ms_plugin_step *step);
uint64_t ms_plugin_copy_ns(const ms_plugin_step *step, uint64_t bytes,
                           bool to_device);

/* ---- in keep ------------------------------------------------------------- */

/* It goes after its last use of forward, and is made again for backward. */
void ms_plugin_drop(ms_plugin_step *step, uint32_t storage);
/* Neighbouring units of one segment run again together, before the first of
 * their backwards. */
void ms_plugin_segment(ms_plugin_step *step, uint32_t unit, uint32_t segment);

/* ---- in place ------------------------------------------------------------ */

/* The program as it came: its calls in the order in which the host issues
 * them. */
typedef enum ms_plugin_verb {
    MS_PLUGIN_FORWARD,  /* a unit runs */
    MS_PLUGIN_BACKWARD, /* a unit's backward runs */
    MS_PLUGIN_REPLAY,   /* units from `unit` to `last` run forward again */
    MS_PLUGIN_UPDATE,   /* the optimizer step, or some of it */
    MS_PLUGIN_OTHER
} ms_plugin_verb;
uint32_t ms_plugin_calls(const ms_plugin_step *step);
ms_plugin_verb ms_plugin_call_verb(ms_plugin_step *step, uint32_t call);
uint32_t ms_plugin_call_unit(ms_plugin_step *step, uint32_t call);
uint32_t ms_plugin_call_last(ms_plugin_step *step, uint32_t call);
uint32_t ms_plugin_call_micro_batch(ms_plugin_step *step, uint32_t call);

/* Sets of storages: calls name them.  NONE is the empty one: calls that are
 * given it write nothing. */
uint32_t ms_plugin_set(ms_plugin_step *step, const uint32_t *storages,
                       uint32_t n);
uint64_t ms_plugin_set_bytes(ms_plugin_step *step, uint32_t set);
/* What the program keeps or holds for backward and this unit's forward reads
 * last, of storages of at least min_bytes (those of the first question): it may
 * leave when the unit has run, and is needed from the unit's backward, or its
 * replay, on. */
uint32_t ms_plugin_saved_set(ms_plugin_step *step, uint32_t unit,
                             uint64_t min_bytes);
/* A flat buffer on the device that counts as activations. */
uint32_t ms_plugin_buffer(ms_plugin_step *step, const char *name,
                          uint64_t bytes);
/* Work that is not an op of the graph. */
typedef enum ms_plugin_unit {
    MS_PLUGIN_NS,
    MS_PLUGIN_FLOPS, /* at the device's rate for 16-bit products */
    MS_PLUGIN_BYTES  /* at the rate of the stream's memory or link */
} ms_plugin_unit;
/* stream: "compute", "h2d", "d2h", "comm", "host", ...: a name that memsim run
 * --dump program writes. */
uint32_t ms_plugin_task(ms_plugin_step *step, const char *name,
                        const char *stream, ms_plugin_unit unit,
                        uint64_t amount);

/* Writing: each appends a call to the new program, in the name of call `like`
 * of the old one (its rank, its frame, its micro-batch).  A hook that writes
 * nothing leaves the program as it is. */

/* Call `like` itself. */
void ms_plugin_copy(ms_plugin_step *step, uint32_t like);
typedef enum ms_plugin_place {
    MS_PLUGIN_HERE, /* the device's memory, out of a buffer too */
    MS_PLUGIN_HOST,
    MS_PLUGIN_NVME,
    MS_PLUGIN_PARTS /* each rank keeps an equal part */
} ms_plugin_place;
/* Copies go on streams of their own.  What is not here when an op reads it is
 * brought at once; a move before says it earlier. */
void ms_plugin_move(ms_plugin_step *step, uint32_t like, uint32_t set,
                    ms_plugin_place place);
/* Into a buffer that is taken: the set's own memory goes.  The kernel takes as
 * long as reading and writing the set. */
void ms_plugin_pack(ms_plugin_step *step, uint32_t like, uint32_t set,
                    uint32_t buffer);
/* What is in parts becomes whole, by one collective. */
void ms_plugin_gather(ms_plugin_step *step, uint32_t like, uint32_t set);
/* The compute stream waits for the copies of a set. */
void ms_plugin_wait(ms_plugin_step *step, uint32_t like, uint32_t set);
void ms_plugin_take_buffer(ms_plugin_step *step, uint32_t like,
                           uint32_t buffer);
void ms_plugin_give_buffer(ms_plugin_step *step, uint32_t like,
                           uint32_t buffer);
/* The task runs on its stream.  It waits for the ops that wrote the set, and
 * later readers of the set wait for it. */
void ms_plugin_work(ms_plugin_step *step, uint32_t like, uint32_t task,
                    uint32_t set);

/* What has been written, or the program as it came where nothing has been:
 * expanded and replayed as the run will be.  False: it cannot be. */
bool ms_plugin_measure(ms_plugin_step *step, uint64_t *peak_bytes,
                       uint64_t *step_ns);
/* Forgets the calls that were written: for another try. */
void ms_plugin_restart(ms_plugin_step *step);

#endif
