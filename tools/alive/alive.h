/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALIVE_H
#define MS_TOOLS_ALIVE_H

/* Which tensors are alive at an instant of a run, and why: for memsim explain,
 * memsim compare --explain and the advice. In the order of the calls:
 *
 *     instant.c        --at, or the peak, to a place among the events
 *     (sim)            the rows alive there: ms_timeline_alive
 *     why.c            a row to what keeps it
 *     alive.c          all of this, to one group per row
 *     match.c          rows of two runs that are the same tensor
 *     differ.c         two runs to one group per tensor that they hold
 *                      differently
 *     groups.c         groups of one to groups that differ in nothing but a
 *                      number
 *     explain_text.c   instants and groups to text
 *     alive_keys.c     the same to JSON */

#include "tools/job/result.h"
#include "tools/options/options.h"

/* ---- instant.c ----------------------------------------------------------- */

typedef struct ms_instant {
    uint32_t event; /* the state is the one just after it; MS_NONE: empty */
    uint32_t op;    /* the plan op at work, or MS_NONE */
    /* plan ops from this one on can still read; n_ops: none can */
    uint32_t now;
    uint64_t t_ns, bytes;
} ms_instant;

/* The names of a plan op: "aten::mm", or its pass where it is not an op of the
 * model; and its layer, or NULL. */
const char *ms_instant_op(const ms_plan *plan, uint32_t op);
const char *ms_instant_op_layer(const ms_plan *plan, uint32_t op);
/* at is a time ("12.5ms"), a phase (its peak), an op (the first time that the
 * level is highest while it runs) or NULL (the peak), of the rank with the
 * highest peak. */
ms_err ms_instant_find(const ms_result *result, const char *at, ms_arena *arena,
                       ms_instant *instant, ms_fault *fault);
/* The highest level while an op runs that has the names, the layer and the
 * phase of plan op `op` of another run of the model; *is_there is false where
 * there is none. */
ms_err ms_instant_like(const ms_result *result, const ms_plan *other,
                       uint32_t op, ms_arena *arena, bool *is_there,
                       ms_instant *instant, ms_fault *fault);

/* ---- why.c --------------------------------------------------------------- */

typedef enum ms_why {
    MS_WHY_PARAMETER,
    MS_WHY_BUFFER,
    MS_WHY_STATE,
    MS_WHY_INPUT,
    MS_WHY_LIBRARY,
    MS_WHY_WORKSPACE,
    MS_WHY_GRAD,      /* .grad that nothing reads any more */
    MS_WHY_GRAD_STEP, /* .grad that the optimizer step reads */
    MS_WHY_GRAD_MORE, /* .grad to which more is added before */
    MS_WHY_SAVED,
    MS_WHY_SAVED_AGAIN, /* saved for an op that runs again */
    /* no backward op reads it; reader: the op that ends it */
    MS_WHY_SAVED_UNREAD,
    MS_WHY_HELD, /* held as a checkpoint's input */
    MS_WHY_HELD_UNREAD,
    MS_WHY_OUTPUT,
    MS_WHY_LOSS,
    MS_WHY_READ_NOW,
    MS_WHY_READ,
    MS_WHY_MADE, /* made and freed by the op at work */
    MS_WHY_VARIABLE,
    MS_WHY_KEPT,
    MS_WHY_NOT_MADE, /* from here on: reasons why it is not alive */
    MS_WHY_NOT_YET,
    MS_WHY_FREED, /* reader: the op after which it was freed */
    MS_WHY_FREED_AGAIN,
    MS_N_WHYS
} ms_why;

/* What keeps a row: the reason, with its plan op: the next reader, or for
 * UNREAD and VARIABLE the op after which the row ends; else MS_NONE. */
typedef struct ms_fate {
    uint8_t why;
    uint32_t reader;
} ms_fate;

/* Needs plan.use. fates gets n of them, in the order of rows. */
ms_err ms_why_find(const ms_result *result, const ms_instant *instant,
                   const uint32_t *rows, uint32_t n, ms_arena *arena,
                   ms_fate **fates, ms_fault *fault);
/* By row the plan op after which the host drops it, or MS_NONE. */
ms_err ms_why_ends(const ms_plan *plan, ms_arena *arena, uint32_t **ends,
                   ms_fault *fault);
/* Is a row with that reason there for the whole step? */
bool ms_why_lasts(uint8_t why);
/* Is the reason's op a reader (and not the op after which the row ends)? */
bool ms_why_reads(uint8_t why);
/* "saved for aten::gelu_backward of layers.*.mlp.activation". until: the
 * instant at which the training loop's own variables end. */
void ms_why_words(uint8_t why, const char *op, const char *layer,
                  const char *until, ms_text *text);

/* ---- groups.c ------------------------------------------------------------ */

#define MS_GROUP_SPANS 3u

/* What one run holds of the tensors of a group. */
typedef struct ms_group_side {
    uint64_t bytes, each_bytes; /* 0: they differ in size */
    const char *reader;         /* the op of the fate, or NULL */
    const char *reader_layer;   /* its layer, or NULL */
    uint8_t why;
    /* all have the same reader_layer, character by character */
    bool one_reader;
} ms_group_side;

/* Tensors that differ only in the first number of the dotted name of their
 * layer (without a layer: of their role), and in size where each_bytes is 0.
 * Names are those of the first tensor; spans are the numbers in ascending
 * order, in up to three runs of numbers. side[1] is zero unless two runs of a
 * model are compared. */
typedef struct ms_alike {
    const char *layer; /* "layers.0.mlp.up", or NULL */
    const char *role;  /* "out"; NULL: the layer's tensors of any role */
    /* the op that made it; NULL: it was there before the step */
    const char *op;
    ms_group_side side[2];
    /* member: the index that the caller gave the first tensor */
    uint32_t count, member;
    uint32_t n_spans; /* more than MS_GROUP_SPANS: too many to list */
    uint32_t from[MS_GROUP_SPANS], to[MS_GROUP_SPANS];
    uint8_t category;
} ms_alike;

/* Merges groups of one tensor each (without count, spans and one_reader) in
 * place, the largest gap first; returns how many are left. leader, unless NULL,
 * gets for each member the member that leads its group. */
uint32_t ms_groups_merge(ms_alike *groups, uint32_t n, uint32_t *leader);
/* The difference of the two sides in bytes. */
uint64_t ms_groups_gap(const ms_alike *group);
/* The name that may contain a number: the layer, or else the role. */
const char *ms_groups_numbered(const ms_alike *group);
/* The name with its numbers: "layers.0-95.mlp.up", or "layers.*.mlp.up" where
 * there are too many runs of numbers. */
void ms_groups_name(const ms_alike *group, ms_text *text);
/* A dotted name with * for its first number; unchanged if literal. */
void ms_groups_pattern(const char *name, bool literal, ms_text *text);

/* ---- alive.c ------------------------------------------------------------- */

/* The rows alive at an instant, and what keeps each of them. */
typedef struct ms_alive {
    const ms_result *result;
    ms_instant instant;
    uint32_t *rows, n;
    ms_fate *fates;
} ms_alive;

/* at is as in ms_instant_find. Needs plan.use. */
ms_err ms_alive_find(const ms_result *result, const char *at, ms_arena *arena,
                     ms_alive *alive, ms_fault *fault);
/* The i-th row as a group of one tensor. */
ms_alike ms_alive_one(const ms_alive *alive, uint32_t i);
/* The rows alive as groups, the largest first; group_of: by row alive. */
ms_err ms_alive_groups(const ms_alive *alive, ms_arena *arena,
                       ms_alike **groups, uint32_t **group_of,
                       uint32_t *n_groups, ms_fault *fault);
ms_group_side ms_alive_side(const ms_plan *plan, ms_fate fate, uint64_t bytes);
/* The layer of a storage, or NULL. */
const char *ms_alive_layer(const ms_graph *graph, uint32_t storage);

/* ---- match.c ------------------------------------------------------------- */

/* A tensor in two runs; bytes are the caller's to fill. */
typedef struct ms_match {
    const char *layer, *role, *op; /* "" where there is none */
    uint32_t pass, ordinal;
    uint64_t bytes[2];
    uint32_t first[2]; /* index among the rows alive; MS_NONE at first */
} ms_match;

typedef struct ms_matches {
    uint32_t n;
    ms_match *rows;
} ms_matches;

/* Every tensor alive in a or in b (if b is not NULL), once. */
ms_err ms_match_tensors(const ms_alive *a, const ms_alive *b, ms_arena *arena,
                        ms_matches *all, ms_fault *fault);
/* The tensor that a row of either run's plan belongs to, or NULL. */
ms_match *ms_match_find(const ms_matches *all, const ms_plan *plan,
                        uint32_t row);

/* ---- differ.c ------------------------------------------------------------ */

/* Groups of tensors of which the two runs hold different bytes, the largest gap
 * first; side s is that of runs[s]. The gaps sum to the difference of the
 * levels. */
ms_err ms_differ_find(const ms_alive runs[2], ms_arena *arena,
                      ms_alike **groups, uint32_t *n, ms_fault *fault);

/* ---- explain_text.c ------------------------------------------------------ */

/* --top: how many groups are shown; MS_NONE: all. */
ms_err ms_explain_text_top(const ms_arguments *arguments, uint32_t *top,
                           ms_fault *fault);
/* Adds the line of ms_textlines_unknown where an op has no rule. */
void ms_explain_text_unknown(const ms_graph *graph, ms_text *text);
/* "5.50 ms, backward pass, aten::mm of layers.0.mlp.up". */
void ms_explain_text_instant(const ms_result *result, const ms_instant *instant,
                             ms_text *words);
/* "216.02 GiB  layers.0-95.mlp.up:sqrt, 96 x 2.25 GiB"; size is the first
 * column. */
void ms_explain_text_name(const ms_alike *group, const char *size,
                          ms_text *text);
/* "optimizer state made by aten::zeros". */
void ms_explain_text_maker(const ms_alike *group, ms_text *words);
/* Why the side's tensors are alive, or when they were freed. */
void ms_explain_text_why(const ms_result *result, const ms_group_side *side,
                         ms_text *words);

/* "layers.*.mlp.up optimizer state 651.20 GiB, ...": the largest groups of rows
 * alive at the peak. A group has the same layer of every block and the same
 * category. */
ms_err ms_alive_words(const ms_result *result, uint32_t n_groups,
                      ms_arena *arena, ms_text *text, ms_fault *fault);

#endif
