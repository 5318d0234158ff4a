/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ALIVE_H
#define MS_TOOLS_ALIVE_H

/* Which tensors are alive at an instant of a run and why, for memsim explain,
 * memsim compare --explain and the advice, in the order of the calls:
 *
 *     instant.c   --at, or the peak, to a place among the events
 *     (sim)       the rows alive there: ms_timeline_alive
 *     why.c       a row to what keeps it
 *     alive.c     all of this, to one group per row
 *     match.c     rows of two runs that are the same tensor
 *     differ.c    two runs to one group per tensor that they hold differently
 *     groups.c    groups of one to groups that differ in nothing but a number
 *     explain_text.c   instants and groups to text and JSON */

#include "tools/job/result.h"
#include "tools/options/options.h"

/* ---- instant.c ----------------------------------------------------------- */

typedef struct ms_instant {
    uint32_t event; /* the state is the one just after it; MS_NONE: empty */
    uint32_t op;    /* plan op at work, or MS_NONE */
    uint32_t now;   /* plan ops from here on can still read; n_ops: none */
    uint64_t t_ns, bytes;
} ms_instant;

/* Names of a plan op: "aten::mm", where it is not of the model its pass; its
 * layer, or NULL. */
const char *ms_instant_op(const ms_plan *plan, uint32_t op);
const char *ms_instant_op_layer(const ms_plan *plan, uint32_t op);
/* at: a time ("12.5ms"), a phase (its peak), an op (where the level is
 * highest while it runs, the first time) or NULL (the peak).  Of the rank
 * with the highest peak. */
ms_err ms_instant_find(const ms_result *result, const char *at, ms_arena *arena,
                       ms_instant *instant, ms_fault *fault);
/* The highest level while an op runs that has the names, the layer and the
 * phase of plan op `op` of another run of the model, if there is one. */
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
    MS_WHY_GRAD,      /* .grad, which nothing reads any more */
    MS_WHY_GRAD_STEP, /* .grad, which the optimizer step reads */
    MS_WHY_GRAD_MORE, /* .grad, to which more is added before */
    MS_WHY_SAVED,
    MS_WHY_SAVED_AGAIN,  /* by an op that runs again */
    MS_WHY_SAVED_UNREAD, /* no backward op reads it; reader: what ends it */
    MS_WHY_HELD,         /* input of a checkpoint */
    MS_WHY_HELD_UNREAD,
    MS_WHY_OUTPUT,
    MS_WHY_LOSS,
    MS_WHY_READ_NOW,
    MS_WHY_READ,
    MS_WHY_MADE, /* made and freed by the op at work */
    MS_WHY_VARIABLE,
    MS_WHY_KEPT,
    MS_WHY_NOT_MADE, /* from here on: not alive */
    MS_WHY_NOT_YET,
    MS_WHY_FREED, /* reader: the op after which it ended */
    MS_WHY_FREED_AGAIN,
    MS_N_WHYS
} ms_why;

/* What keeps a row: the reason, and the plan op that belongs to it: the next
 * reader, or (UNREAD, VARIABLE) the op after which it ends; else MS_NONE. */
typedef struct ms_fate {
    uint8_t why;
    uint32_t reader;
} ms_fate;

/* Needs plan.use.  fates: n, in the order of rows. */
ms_err ms_why_find(const ms_result *result, const ms_instant *instant,
                   const uint32_t *rows, uint32_t n, ms_arena *arena,
                   ms_fate **fates, ms_fault *fault);
/* Per row the plan op after which the host drops it, or MS_NONE. */
ms_err ms_why_ends(const ms_plan *plan, ms_arena *arena, uint32_t **ends,
                   ms_fault *fault);
/* Is the row there for the whole step? */
bool ms_why_lasts(uint8_t why);
/* Does the reason name a reader (and not the op after which the row ends)? */
bool ms_why_reads(uint8_t why);
/* "saved for aten::gelu_backward of layers.*.mlp.activation"; until: when the
 * training loop's own variables end. */
void ms_why_words(uint8_t why, const char *op, const char *layer,
                  const char *until, ms_text *text);

/* ---- groups.c ------------------------------------------------------------ */

#define MS_GROUP_SPANS 3u

/* Tensors in one run. */
typedef struct ms_group_side {
    uint64_t bytes, each_bytes; /* each_bytes 0: of any size */
    const char *reader;         /* op of its fate, or NULL */
    const char *reader_layer;   /* or NULL */
    uint8_t why;
    bool one_reader; /* all have the same reader_layer, letter for letter */
} ms_group_side;

/* Tensors that differ in nothing but the first number of the dotted name of
 * their layer (without a layer: of their role), and in size where each_bytes
 * is 0.  Names are those of the first tensor; spans are the numbers,
 * ascending, in up to three runs.  side[1] is all zero unless two runs are
 * compared. */
typedef struct ms_group {
    const char *layer; /* "layers.0.mlp.up", or NULL */
    const char *role;  /* "out"; NULL: whatever of the layer */
    const char *op;    /* that made it; NULL: was there before */
    ms_group_side side[2];
    uint32_t count, member; /* member: what the caller gave it */
    uint32_t n_spans;       /* more than MS_GROUP_SPANS: too many to list */
    uint32_t from[MS_GROUP_SPANS], to[MS_GROUP_SPANS];
    uint8_t category;
} ms_group;

/* Merges groups of one tensor each (count, spans and one_reader unset) in
 * place, largest gap first; returns how many are left.  leader (or NULL) gets,
 * per member, the member that its group goes by. */
uint32_t ms_groups_merge(ms_group *groups, uint32_t n, uint32_t *leader);
/* How far the sides lie apart, in bytes. */
uint64_t ms_groups_gap(const ms_group *group);
/* The name that may hold a number: the layer, else the role. */
const char *ms_groups_numbered(const ms_group *group);
/* The name that has the numbers: "layers.0-95.mlp.up", or "layers.*.mlp.up"
 * for too many runs. */
void ms_groups_name(const ms_group *group, ms_text *text);
/* A dotted name with its first number as *, or as it is if literal. */
void ms_groups_pattern(const char *name, bool literal, ms_text *text);

/* ---- alive.c ------------------------------------------------------------- */

/* The rows alive at an instant and what keeps each. */
typedef struct ms_alive {
    const ms_result *result;
    ms_instant instant;
    uint32_t *rows, n;
    ms_fate *fates;
} ms_alive;

/* at: as ms_instant_find takes it.  Needs plan.use. */
ms_err ms_alive_find(const ms_result *result, const char *at, ms_arena *arena,
                     ms_alive *alive, ms_fault *fault);
/* The i-th row as a group of its own. */
ms_group ms_alive_one(const ms_alive *alive, uint32_t i);
ms_group_side ms_alive_side(const ms_plan *plan, ms_fate fate, uint64_t bytes);
/* The layer of a storage, or NULL. */
const char *ms_alive_layer(const ms_graph *graph, uint32_t storage);

/* ---- match.c ------------------------------------------------------------- */

/* A tensor in two runs; what each holds of it is the caller's. */
typedef struct ms_match {
    const char *layer, *role, *op; /* "": none */
    uint32_t pass, ordinal;
    uint64_t bytes[2];
    uint32_t first[2]; /* of the rows alive; MS_NONE at first */
} ms_match;

typedef struct ms_matches {
    uint32_t n;
    ms_match *rows;
} ms_matches;

/* Every tensor alive in a or in b (NULL: in a), once. */
ms_err ms_match_tensors(const ms_alive *a, const ms_alive *b, ms_arena *arena,
                        ms_matches *all, ms_fault *fault);
/* The one that a row of either run's plan belongs to, or NULL. */
ms_match *ms_match_find(const ms_matches *all, const ms_plan *plan,
                        uint32_t row);

/* ---- differ.c ------------------------------------------------------------ */

/* Groups of tensors of which the runs hold different bytes, largest gap first;
 * side s is of runs[s].  Their differences sum to that of the levels. */
ms_err ms_differ_find(const ms_alive runs[2], ms_arena *arena,
                      ms_group **groups, uint32_t *n, ms_fault *fault);

/* ---- explain_text.c ------------------------------------------------------ */

/* --top: how many groups to tell of; MS_NONE: all. */
ms_err ms_explain_text_top(const ms_arguments *arguments, uint32_t *top,
                           ms_fault *fault);
/* The line of ms_textlines_unknown, if there is one. */
void ms_explain_text_unknown(const ms_graph *graph, ms_text *text);
/* "5.50 ms, backward pass, aten::mm of layers.0.mlp.up". */
void ms_explain_text_instant(const ms_result *result, const ms_instant *instant,
                             ms_text *words);
/* "216.02 GiB  layers.0-95.mlp.up:sqrt, 96 x 2.25 GiB"; size: the number. */
void ms_explain_text_name(const ms_group *group, const char *size,
                          ms_text *text);
/* "optimizer state made by aten::zeros". */
void ms_explain_text_maker(const ms_group *group, ms_text *words);
/* Why the side is alive or where it has gone. */
void ms_explain_text_why(const ms_result *result, const ms_group_side *side,
                         ms_text *words);

/* JSON: {"time_ns": ..., "event":, "phase":, "op":, "layer":}. */
void ms_explain_text_json_instant(const ms_result *result,
                                  const ms_instant *instant, ms_text *text);
/* "category": ..., "layer":, "role":, "op":, "count": without braces. */
void ms_explain_text_json_group(const ms_group *group, ms_text *text);
/* The words of ms_explain_text_why. */
void ms_explain_text_json_why(const ms_result *result,
                              const ms_group_side *side, ms_text *text);
/* {"op": ..., "layer":} or null. */
void ms_explain_text_json_reader(const ms_group_side *side, ms_text *text);

/* "layers.*.mlp.up optimizer state 651.20 GiB, ...": the largest groups of
 * rows (same layer in every block, same category) alive at the peak. */
ms_err ms_alive_words(const ms_result *result, uint32_t n_groups,
                      ms_arena *arena, ms_text *text, ms_fault *fault);

#endif
