/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_DUMP_H
#define MS_SIM_DUMP_H

/* Private to dump.c and dumpread.c: the text form of a program.
 *
 *     memsim-program 1
 *     frames 1 ranks 1 micro-batches 1
 *     group 0 = data ranks 8 stride 1 node 8 comm fastest
 *     set 0 = 71 72  # layers.3.norm layers.3.gelu
 *     buffer 0 = 4096 communication device comm waited  # all_gather_output
 *     task 0 = 12000 ns compute  # compress
 *     stage 0 = rank 0 units 0-3
 *     mark start
 *     run forward unit 3 frame 0 micro 0 keep 0 hold nothing
 *     rerun units 1-3 frame 0 micro 0 whole
 *     run backward unit 3 frame 0 micro 0   (or grad_input, then grad_weight)
 *     drop 0 frame 0 micro 0
 *     step all
 *
 * One call a line: the verb, what it acts on, then keys in any order.  What is
 * not said has the value of ms_program_call; '#' begins a comment; sets,
 * buffers (bytes, category, pool, stream or ms_block_home, how freed) and tasks
 * (an amount of ns, flops or bytes, and the stream) are numbered in order and
 * stand before the calls that name them.  Groups (sim/group.h: how many of a
 * node's GPUs can be in one, the queue, the algorithm) stand before these;
 * those not told are of one rank.  A program that tells none has the machine's.
 * Stages (sim/stage.h) stand there, too.
 *
 * "outer" was a program's second group, before there were rows of groups. */

#include "sim/program.h"

typedef enum ms_dump_object {
    MS_DUMP_NO_OBJECT,
    MS_DUMP_PASS, /* forward, backward */
    MS_DUMP_SET,  /* all, nothing or a number */
    MS_DUMP_MARK,
    MS_DUMP_TASK /* a number */
} ms_dump_object;

typedef enum ms_dump_key {
    MS_DUMP_UNIT,         /* unit 3 */
    MS_DUMP_UNITS,        /* units 1-3 */
    MS_DUMP_FRAME,        /* frame 0 */
    MS_DUMP_MICRO,        /* micro 0 */
    MS_DUMP_RANK,         /* rank 0 */
    MS_DUMP_KEEP,         /* keep all */
    MS_DUMP_HOLD,         /* hold 3 */
    MS_DUMP_TO,           /* to host */
    MS_DUMP_OF,           /* of 3 */
    MS_DUMP_WHOLE,        /* whole */
    MS_DUMP_HOLD_OUTPUTS, /* hold-outputs */
    MS_DUMP_SAVES,        /* saves */
    MS_DUMP_LATER,        /* later */
    MS_DUMP_IN_LINE,      /* in-line */
    MS_DUMP_STATE,        /* state */
    MS_DUMP_ADD,          /* add */
    MS_DUMP_OUTER,        /* outer: read, never written */
    MS_DUMP_GROUP,        /* group 1 */
    MS_DUMP_AHEAD,        /* ahead */
    MS_DUMP_LIMIT,        /* limit */
    MS_DUMP_SIDE,         /* side */
    MS_DUMP_AGAIN,        /* again */
    MS_DUMP_FILLED,       /* filled */
    MS_DUMP_EXCHANGE,     /* exchange */
    MS_DUMP_PART,         /* part */
    MS_DUMP_BUFFER,       /* buffer 0 */
    MS_DUMP_PAGEABLE,     /* pageable */
    MS_DUMP_STRAIGHT,     /* straight */
    MS_DUMP_PEER,         /* peer 1 */
    MS_DUMP_TAG,          /* tag 7 */
    MS_DUMP_PAIRS,        /* pairs */
    MS_DUMP_AS_IS,        /* as-is */
    MS_DUMP_N_KEYS
} ms_dump_key;

typedef struct ms_dump_verb {
    const char *name;
    ms_dump_object object;
    uint32_t keys; /* a bit per ms_dump_key */
} ms_dump_verb;

extern const ms_dump_verb ms_dump_verbs[MS_N_VERBS];
/* Where in a call of the verb the place of "to" is. */
extern const size_t ms_dump_places[MS_N_VERBS];
/* Of a buffer: by ms_row.waited. */
extern const char *const ms_dump_frees[2];
/* Of a program's hooks: skips_parameters, pageable, waits. */
extern const char *const ms_dump_hooks[4][2];
extern const char *const ms_dump_keys[MS_DUMP_N_KEYS];
/* Where in a call of the verb the bool is that a key sets; 0: the key says
 * something else. */
size_t ms_dump_flag(uint8_t verb, ms_dump_key key);

#endif
