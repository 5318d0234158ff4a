/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_EXPLAIN_H
#define MS_TOOLS_EXPLAIN_H

/* The parts of memsim explain, in the order of their calls:
 *
 *     instant.c   --at, or the peak, to a place among the events
 *     (sim)       the rows alive there: ms_timeline_alive
 *     why.c       a row to what keeps it
 *     alive.c     rows to groups that differ in nothing but a number
 *     remedy.c    which changes make a group smaller, by trying them
 *     explain.c   groups to text and JSON
 */

#include "tools/tools.h"

/* ---- instant.c ----------------------------------------------------------- */

typedef struct ms_instant {
    uint32_t event; /* the state is the one just after it; MS_NONE: empty */
    uint32_t op;    /* plan op at work, or MS_NONE */
    uint32_t now;   /* plan ops from here on can still read; n_ops: none */
    uint64_t t_ns, bytes;
} ms_instant;

/* at: a time ("12.5ms"), a phase (its peak), an op (where the level is
 * highest while it runs, the first time) or NULL (the peak).  Of the rank
 * with the highest peak. */
ms_err ms_instant_find(const ms_result *result, const char *at, ms_arena *arena,
                       ms_instant *instant, ms_fault *fault);
/* The highest level while an op runs that has the names, the layer and the
 * phase of plan op `op` of another run of the model.  False: there is none. */
bool ms_instant_like(const ms_result *result, const ms_plan *other, uint32_t op,
                     ms_arena *arena, ms_instant *instant);

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
/* Does the reason name a reader (and not the op after which the row ends)? */
bool ms_why_reads(uint8_t why);
/* "saved for aten::gelu_backward of layers.*.mlp.activation"; until: when the
 * training loop's own variables end. */
void ms_why_words(uint8_t why, const char *op, const char *layer,
                  const char *until, ms_text *text);

/* ---- alive.c ------------------------------------------------------------- */

#define MS_ALIVE_SPANS 3u

/* Tensors that differ in nothing but the first number of the dotted name of
 * their layer (without a layer: of their role), and in size where each_bytes
 * is 0.  Names are those of the first tensor; spans are the numbers,
 * ascending, in up to three runs. */
typedef struct ms_alive_group {
    const char *layer;        /* "layers.0.mlp.up", or NULL */
    const char *role;         /* "out"; NULL: whatever of the layer */
    const char *op;           /* that made it; NULL: was there before */
    const char *reader;       /* op of its fate, or NULL */
    const char *reader_layer; /* or NULL */
    uint64_t bytes, each_bytes;
    uint32_t count, member; /* member: what the caller gave it */
    uint32_t n_spans;       /* more than MS_ALIVE_SPANS: too many to list */
    uint32_t from[MS_ALIVE_SPANS], to[MS_ALIVE_SPANS];
    uint8_t category, why;
    bool one_reader; /* all have the same reader_layer, letter for letter */
} ms_alive_group;

/* The layer of a storage, or NULL. */
const char *ms_alive_layer(const ms_graph *graph, uint32_t storage);
/* Merges groups of one tensor each (count, spans and one_reader unset) in
 * place, largest first; returns how many are left.  leader (or NULL) gets, per
 * member, the member that its group goes by. */
uint32_t ms_alive_merge(ms_alive_group *groups, uint32_t n, uint32_t *leader);
/* The name that has the numbers: "layers.0-95.mlp.up", or "layers.*.mlp.up"
 * for too many runs. */
void ms_alive_name(const ms_alive_group *group, ms_text *text);
/* A dotted name with its first number as *, or as it is if literal. */
void ms_alive_pattern(const char *name, bool literal, ms_text *text);

/* ---- remedy.c ------------------------------------------------------------ */

/* A change of the job that makes groups smaller: "checkpoint:full" (for -p)
 * or "kernels=flash" (for --set). */
typedef struct ms_remedy {
    const char *words;
    bool *helps; /* per group: at most half of its bytes are left */
} ms_remedy;

typedef struct ms_remedy_task {
    const ms_job *job;
    const ms_result *result;
    const ms_instant *instant;
    const uint32_t *rows, *group_of; /* alive rows and their groups */
    uint32_t n_rows, n_groups;
    const ms_alive_group *groups;
} ms_remedy_task;

/* Replays the step with each change of a table and compares what is alive at
 * the same instant.  *n is 0 where changes cannot be tried: a program in text
 * form, a model too large. */
ms_err ms_remedy_find(const ms_remedy_task *task, ms_arena *arena,
                      ms_remedy **remedies, uint32_t *n, ms_fault *fault);

#endif
