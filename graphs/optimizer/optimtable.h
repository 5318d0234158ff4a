/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_OPTIMTABLE_H
#define MS_GRAPHS_OPTIMTABLE_H

/* Private to graphs/: optimizers as data.  An update is what is kept of one
 * parameter and the ops that change it; an optimizer says which parameters
 * get which update.
 *
 * States are "role", "role.EXTENT" or "role.EXTENT.DTYPE", with ! where the
 * optimizer's construction makes them and not the first step:
 *
 *     "exp_avg exp_avg_sq"
 *     "state1.whole.byte absmax1.blocks.fp32"
 *
 * Ops are calls as in Python, parted by ;
 *
 *     "decay mul_ >W; lerp_ G >S0; sqrt S0 =A:std; div# A =B:denom -A; ..."
 *
 * op       its name (all_gather: on the ranks' queue); with # the other operand
 * is a Python number; with @INNER it is a matrix product over that dimension
 * (rows, columns, small, large, rank), whose result says the other sizes G W P
 * it reads the gradient, the weight (or its master copy), the model's own
 * weight; S0..S5 a state; A..F, H..K a temporary >X       it changes X in place
 * =X:role  it makes a temporary, with .EXTENT and .DTYPE as above; =G and =W
 *          stand for these from then on, until -G or the parameter is done
 * -X       the variable X ends after it
 * X=Y      X names what Y named, Y nothing
 * decay    only where weights decay (training.weight_decay), undecayed: not
 * narrow   only where weights have 16 bits and no master copy
 * cpu      only where the model is on the CPU: in host memory else
 * shared   only where the rank has a part of it: all_gather makes the whole
 * refresh  before one of these, or alone: only on a step that finds anew what
 *          the others go on with (training.optimizer_refresh)
 *
 * In a loop over parameters a temporary that nothing drops is a variable: that
 * of the parameter before ends when it is bound anew, the last with the loop.
 * With foreach each op goes over lists of all parameters, and a list that
 * nothing drops ends with the step.  A fused update is one kernel that reads
 * the gradient and writes all states and the weight. */

#include "graphs/formats/dtypes.h"
#include "graphs/trace/stepsettings.h"
#include "graphs/trace/tensors.h"

/* How many elements, for a parameter. */
typedef enum ms_extent {
    MS_EXTENT_WHOLE,   /* of what the rank updates: its part */
    MS_EXTENT_ROWS,    /* all its dimensions but the last */
    MS_EXTENT_COLUMNS, /* all but the one before the last */
    MS_EXTENT_BLOCKS,  /* one for MS_OPTIMIZERS_BLOCK elements */
    MS_EXTENT_SCALAR,
    /* Of a matrix n x m; with three dimensions the first is a batch of
     * matrices, with more it is n. */
    MS_EXTENT_SQUARE,    /* min(n, m) squared */
    MS_EXTENT_PROJECTOR, /* rank min(n, m) */
    MS_EXTENT_LOW,       /* rank max(n, m) */
    MS_EXTENT_LEFT,      /* cut into blocks of training.optimizer_block a side:
                            the squares of their rows */
    MS_EXTENT_RIGHT,     /* and of their columns */
    MS_EXTENT_ALL_LEFT,  /* n squared, none where n is larger than that */
    MS_EXTENT_ALL_RIGHT,
    MS_EXTENT_LEFT_BLOCK, /* of the blocks' squares one, the largest */
    MS_EXTENT_RIGHT_BLOCK,
    MS_EXTENT_FULL, /* of the tensor, whatever part of it is the rank's */
    MS_N_EXTENTS
} ms_extent;
typedef enum ms_inner {
    MS_INNER_NONE,
    MS_INNER_ROWS,
    MS_INNER_COLUMNS,
    MS_INNER_SMALL,
    MS_INNER_LARGE,
    MS_INNER_RANK,
    MS_N_INNERS
} ms_inner;
#define MS_OPTIMIZERS_BLOCK 256u /* bitsandbytes/functional.py */

typedef struct ms_state {
    char role[24];
    uint8_t extent;
    uint8_t dtype; /* ms_dtype, or AS_STATE: fp32 beside 16-bit weights with a
                      master copy, else as the weights */
    bool at_construction;
} ms_state;
#define MS_AS_STATE ((uint8_t)MS_N_DTYPES)

typedef enum ms_operand {
    MS_ON_NOTHING,
    MS_ON_GRAD,
    MS_ON_WEIGHT,
    MS_ON_PARAMETER,
    MS_ON_STATE,
    MS_ON_TEMPORARY = MS_ON_STATE + MS_MOST_STATES,
    MS_N_OPERANDS = MS_ON_TEMPORARY + 10
} ms_operand;
#define MS_N_TEMPORARIES 10u

typedef enum ms_when {
    MS_WHEN_ALWAYS,
    MS_WHEN_DECAYS,
    MS_WHEN_UNDECAYED,
    MS_WHEN_NARROW,
    MS_WHEN_CPU,
    MS_WHEN_SHARED
} ms_when;

typedef struct ms_step_op {
    char op[40];           /* "aten::_foreach_lerp_" */
    double flops;          /* per element of the parameter */
    ms_state made;         /* if it makes something */
    uint32_t reads, drops; /* a bit per operand */
    uint8_t writes, makes; /* operands, or MS_ON_NOTHING */
    uint8_t becomes, was;
    uint8_t when;  /* ms_when */
    uint8_t inner; /* ms_inner */
    bool scalar;
    bool refreshes;
    bool gathers; /* an all-gather among the ranks */
} ms_step_op;

/* NULL: there is no such implementation. */
typedef struct ms_update {
    const char *states, *loop, *foreach;
    const char *foreach_2_0;  /* up to 2.0; NULL: as foreach */
    const char *foreach_1_13; /* NULL: as foreach_2_0 */
    bool fused;
    bool elementwise; /* any part of a tensor can be updated alone */
    bool gathers;     /* or once the ranks have brought the parts together */
} ms_update;

/* Which parameters get an optimizer's update; the others get `others`. */
typedef enum ms_chosen {
    MS_CHOSEN_ALL,
    MS_CHOSEN_MATRICES, /* two dimensions or more */
    MS_CHOSEN_HIDDEN,   /* these, but no embedding and not the head */
    MS_CHOSEN_LARGE,    /* MS_OPTIMIZERS_LARGE elements or more */
    MS_CHOSEN_LINEAR    /* weights with the format of linear layers */
} ms_chosen;
#define MS_OPTIMIZERS_LARGE 4096u /* bitsandbytes, min_8bit_size */

typedef struct ms_optimizer_row {
    const char *name;
    const ms_update *update, *others;
    uint8_t chosen; /* ms_chosen */
    uint8_t impl;   /* of training.optimizer_impl=auto; AUTO: the framework's */
    bool decays;    /* training.weight_decay=auto: its default is not 0 */
    bool no_decay;  /* it has none */
    bool in_backward; /* never otherwise */
    bool no_master;   /* made for weights without a master copy */
    uint32_t block;   /* of training.optimizer_block=0; 0: it has none */
    bool has_rank;    /* reads training.optimizer_rank */
    bool refreshes;   /* has steps of training.optimizer_refresh */
    bool starts_anew; /* its first step is one of them */
    bool counts;      /* a step counter per parameter, in host memory; beside
                       * a fused kernel on the device */
    uint8_t maps;     /* of 8-bit codes to fp32, shared by all parameters */
} ms_optimizer_row;
#define MS_OPTIMIZERS_MAP_BYTES 1024u

/* In the order of ms_optimizer, without MS_NO_OPTIMIZER. */
extern const ms_optimizer_row ms_optimtable[];
extern const uint32_t ms_optimtable_n;
/* Adam and AdamW of precisions that come with their own, in the order of
 * ms_precision_optimizers; NULL for the first. */
extern const ms_optimizer_row *const ms_optimtable_own[];

/* An update read for one implementation. */
typedef struct ms_read_update {
    ms_state states[MS_MOST_STATES];
    uint32_t n_states, n_ops;
    const ms_step_op *ops; /* none: fused */
} ms_read_update;

/* Reads states and the ops of impl (not AUTO) for a framework; false: not well
 * formed, or (*ops NULL where there are some) out of memory. */
bool ms_updates_read(const ms_update *update, int64_t impl, uint8_t framework,
                     ms_arena *arena, ms_read_update *read);

/* Does a parameter get the row's update and not the one for the others? */
bool ms_updates_is_chosen(const ms_trace *trace, const ms_optimizer_row *row,
                          const ms_parameter *parameter);
/* Elements of an extent of a tensor, of which a rank updates a part. */
uint64_t ms_updates_extent(const ms_training *training, uint8_t extent,
                           const ms_tensor *tensor, uint64_t part);
/* Of a product's inner dimension. */
uint64_t ms_updates_inner(const ms_training *training, uint8_t inner,
                          const ms_tensor *tensor);
/* NULL: no optimizer. */
const ms_optimizer_row *ms_updates_of(const ms_training *training);
/* What auto means. */
int64_t ms_updates_impl(const ms_optimizer_row *row, const ms_trace *trace);
/* Have all its updates such an implementation (not AUTO)? */
bool ms_updates_has(const ms_optimizer_row *row, int64_t impl);
bool ms_updates_is_elementwise(const ms_optimizer_row *row);
/* Can ranks have parts of its tensors, elementwise or gathered? */
bool ms_updates_is_shared(const ms_optimizer_row *row);
/* Does DeepSpeed's flat step find updates of whole matrices before it? */
bool ms_updates_is_flat(const ms_step_settings *settings);

#endif
