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
 * tests/plugin/ has five more: stripe.c (recomputes and moves), compress.c
 * (packs activations, with work of its own), partition.c (activations in
 * parts), lifo.c (an order of micro-batches, on several ranks), largest.c
 * (evicts while the step runs).
 *
 * Failures: what goes wrong in a function below is remembered, the function
 * returns 0, MS_PLUGIN_NONE or NULL, and memsim reports the first failure when
 * the hook returns; a hook need not ask.  Hooks return 0, or anything else for
 * a failure of their own (ms_plugin_fail).
 *
 * Hooks may be called from several threads at once, each with its own step or
 * view: keep what changes in ms_plugin_take's memory or, while rows are taken,
 * in the view's, not in statics.  The library is
 * never unloaded.
 *
 * Units: bytes, nanoseconds.  Ids count from 0; MS_PLUGIN_NONE is none.
 *
 * The version is raised when a function, a field or a value changes its meaning
 * or goes; what is added leaves it.  A library made for another is refused
 * before anything else of it is read.  Version 2 has the hooks schedule and
 * online. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS_PLUGIN_API 2u
#define MS_PLUGIN_NONE UINT32_MAX

/* ---- the policy ---------------------------------------------------------- */

typedef struct ms_plugin_step ms_plugin_step;
typedef struct ms_pluginview ms_pluginview;

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
    /* (optional) Which rank runs which stage of the model on which micro-batch,
     * in which order.  A spec has at most one policy that says so. */
    int (*schedule)(ms_plugin_step *step);
    /* (optional) With schedule: the name of the INT parameter that says how
     * many ranks share the model's layers.  They are known before the model is
     * read, because ranks have copies of weights that layers share.  NULL: one
     * rank has them all. */
    const char *ranks;
    /* (optional) What is kept for backward, before there is a program. */
    int (*keep)(ms_plugin_step *step);
    /* (optional) Writes the program anew, call by call. */
    int (*place)(ms_plugin_step *step);
    /* place asks for times: it runs after all policies that do not. */
    bool measures;
    /* (optional) Sets the budget to which victim keeps: on one rank, one
     * micro-batch after the other.  A spec has at most one policy that does. */
    int (*online)(ms_plugin_step *step);
    /* With online: the level of the device would exceed the budget by the
     * results of the next op.  Which of what is here goes?  It is asked again
     * until they fit.  Any other answer is none: then the step cannot be run.
     */
    uint32_t (*victim)(const ms_pluginview *view);
} ms_plugin;

extern const ms_plugin ms_plugin_entry __attribute__((visibility("default")));

/* ---- what the hooks may ask of a step ------------------------------------ */

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

/* How many run in a step. */
uint32_t ms_plugin_micro_batches(const ms_plugin_step *step);

/* The machine, as this rank sees it: data-parallel ranks; the device's memory
 * beside its context; a copy between the memories of host and device. */
uint32_t ms_plugin_ranks(const ms_plugin_step *step);
uint64_t ms_plugin_capacity_bytes(const ms_plugin_step *step);
uint64_t ms_plugin_copy_ns(const ms_plugin_step *step, uint64_t bytes,
                           bool to_device);

/* ---- in schedule --------------------------------------------------------- */

/* Stage 0, 1, ...: units [first, last] of the model, in its order, which are
 * the rank's.  A rank may have several.  A hook that adds none has one stage,
 * all of the model, on rank 0. */
void ms_plugin_stage(ms_plugin_step *step, uint32_t rank, uint32_t first,
                     uint32_t last);
typedef enum ms_plugin_turn_kind {
    MS_PLUGIN_TURN_FORWARD,
    MS_PLUGIN_TURN_BACKWARD,
    MS_PLUGIN_TURN_GRAD_INPUT, /* or these two, the one some time behind the */
    MS_PLUGIN_TURN_GRAD_WEIGHT /* other: the inputs' gradients, the weights' */
} ms_plugin_turn_kind;
/* The next turn of the stage's rank: its stages run each micro-batch forward
 * once, then backward once.  What a turn makes and a stage of another rank
 * reads is sent.  A hook that adds no turn leaves the order as it is. */
void ms_plugin_turn(ms_plugin_step *step, ms_plugin_turn_kind kind,
                    uint32_t stage, uint32_t micro_batch);
/* A rank makes room for a message beside the turn before the one that reads it;
 * else when that is over. */
void ms_plugin_receives_ahead(ms_plugin_step *step);

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

/* ---- in online ----------------------------------------------------------- */

/* The level of the device to which victim keeps (0: the device's memory beside
 * its context); how long ops may run again before it is given up (0: ten times
 * as long as forward). */
void ms_plugin_budget(ms_plugin_step *step, uint64_t bytes, uint64_t again_ns);
/* For victim: what the hook has found, in ms_plugin_take's memory, which many
 * threads read; and so many bytes in which it remembers. */
void ms_plugin_prepare(ms_plugin_step *step, const void *setup,
                       size_t memory_bytes);

/* ---- in victim ----------------------------------------------------------- */

/* Of what was prepared: the setup; memory, zero as a step begins. */
const void *ms_pluginview_setup(const ms_pluginview *view);
void *ms_pluginview_memory(const ms_pluginview *view);
/* What may go, in the order in which it came or came back. */
uint32_t ms_pluginview_n_here(const ms_pluginview *view);
uint32_t ms_pluginview_here(const ms_pluginview *view, uint32_t i);
uint64_t ms_pluginview_bytes(const ms_pluginview *view, uint32_t storage);
/* Made by forward in this micro-batch, and gone? */
bool ms_pluginview_is_gone(const ms_pluginview *view, uint32_t storage);
/* The device's level; by how much it would exceed the budget. */
uint64_t ms_pluginview_level(const ms_pluginview *view);
uint64_t ms_pluginview_missing(const ms_pluginview *view);
/* Now and when an op last used the storage, in times of the compute stream
 * alone. */
uint64_t ms_pluginview_now_ns(const ms_pluginview *view);
uint64_t ms_pluginview_used_ns(const ms_pluginview *view, uint32_t storage);

#endif
