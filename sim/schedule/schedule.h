/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_SCHEDULE_H
#define MS_SIM_SCHEDULE_H

/* The schedule: which rank runs which stage of the model on which micro-batch,
 * in which order.  It is the first of the passes that make a program: policies
 * of keep say what each of these runs saves, those of place put calls between
 * them.
 *
 * Nouns.  A stage is a range of units and the rank that owns it; a rank may own
 * several (chunks).  A turn is one stage's run on one micro-batch: forward,
 * backward, or one half of backward: that of the inputs' gradients, for which
 * the stage before waits, and that of the weights', which can wait.
 *
 * Invariants (ms_schedule_check): the stages are the model's units in order,
 * each of them once; the turns of a rank are of its stages; a stage runs each
 * micro-batch forward once, then either backward once, or the half of the
 * inputs and after it that of the weights; a forward that pairs has another
 * micro-batch's or stage's whole backward behind it.
 *
 * A worked example: two stages on two ranks, two micro-batches, 1F1B.
 *
 *     rank 0   0F0 0F1 0B0 0B1
 *     rank 1   1F0 1B0 1F1 1B1
 *
 * Zero bubble (Qi et al. 2024, ZB-H1) writes 0I0 0W0 for 0B0 where the stage
 * can wait with the weights' gradients. */

#include "sim/base/base.h"
#include "sim/nouns.h"
#include "sim/stage.h"

typedef enum ms_turn_kind {
    MS_TURN_FORWARD,
    MS_TURN_BACKWARD,
    MS_TURN_GRAD_INPUT,
    MS_TURN_GRAD_WEIGHT,
    MS_N_TURNS
} ms_turn_kind;

/* As PyTorch's schedules have them since 2.6: F, B, I, W. */
extern const char ms_schedule_letters[MS_N_TURNS];

typedef struct ms_turn {
    uint32_t stage, micro_batch;
    uint8_t kind; /* ms_turn_kind */
    bool pairs; /* a forward: it and the backward behind it are one turn, which
                   begins when what both read has come, and sends when both
                   have run (PyTorch's OVERLAP_F_B; deepseek-ai/DualPipe) */
    bool joins; /* a forward: with MS_RECEIVE_TOGETHER nothing is exchanged
                   between it and the backward behind it */
} ms_turn;

/* When a rank makes room for a message, and which messages wait for others. */
typedef enum ms_receives {
    MS_RECEIVE_NEXT,  /* for its next turn, when the turn before is done, in one
                         exchange with what that sends (Megatron-LM's 1F1B,
                         send_forward_recv_backward); what skips a stage as
                         soon as the sender comes to it.  What a rank sends is
                         in one queue */
    MS_RECEIVE_AHEAD, /* beside the turn before, or as soon as the sender comes
                         to it where that is earlier.  What a rank sends to one
                         neighbour does not wait for what it sends to the other
                         (Megatron-LM's overlap_p2p_communication: isend and
                         irecv one by one, for which torch has a communicator
                         for each pair of ranks) */
    MS_RECEIVE_IN_LINE, /* as soon as the sender comes to it.  What a rank sends
                           and receives is in one queue, in this order: a
                           message that has not come holds up all behind it
                           (PyTorch, distributed/pipelining/schedules.py,
                           _add_send_recv and _batch_p2p: one communicator) */
    MS_RECEIVE_TOGETHER /* when a turn is over, in one exchange of all that the
                           rank sends and receives until the next one, which
                           begins when all of it has ended at both ends
                           (Megatron-LM's send_forward_recv_forward,
                           send_forward_backward_recv_forward_backward, with
                           batch_p2p_comm: batch_isend_irecv, each request
                           waited for, then the device by the host) */
} ms_receives;

/* What a rank keeps beyond what its turns need. */
typedef struct ms_schedule_keeps {
    bool outputs;  /* a stage's output until its backward, or the half of the
                      inputs, has run; else it goes when it is sent */
    bool messages; /* room for the messages of all micro-batches at all times,
                      and what backward hands on to the end of the step */
    bool graphs; /* the half of the inputs lets nothing go before its end; of a
                    stage that hands no gradient on it does nothing, and the
                    half of the weights is the whole backward */
    uint8_t inputs; /* ms_stage_inputs: what a stage was handed last, and its
                       gradient, over the end of the step (stageinputs.h) */
} ms_schedule_keeps;

typedef struct ms_schedule {
    uint32_t n_stages;
    const ms_stage *stages; /* in the order of the model */
    uint16_t n_ranks;
    uint32_t n_micro_batches;
    uint32_t *turn_at; /* n_ranks + 1 */
    ms_turn *turns;
    uint8_t receives; /* ms_receives */
    bool waits; /* with MS_RECEIVE_NEXT the host waits for each exchange, before
                   it issues the turn behind it */
    bool parts; /* ms_message_call.parts */
    bool sides; /* turns that pair run side by side (ms_run_call.side) */
    ms_schedule_keeps keeps;
    /* (optional) Where stages have copies: the rank that runs a stage on a
     * micro-batch, in row stage * n_micro_batches + micro_batch.  Stages that
     * are one rank's for a micro-batch are one rank's for all; the first
     * micro-batch's ranks are those of stages. */
    const uint16_t *rank_of;
    /* (optional) Where faults are: who wrote it, a policy; or the file that it
     * was read from, and the cell of each turn in its row, from 1 up. */
    const char *name;
    const uint32_t *column;
} ms_schedule;

/* The rank that runs the stage on the micro-batch. */
uint16_t ms_schedule_rank(const ms_schedule *schedule, uint32_t stage,
                          uint32_t micro_batch);

/* The schedule of a job without a pipeline: one stage, whose micro-batches run
 * forward and backward one after the other. */
ms_err ms_schedule_default(const ms_graph *graph, uint32_t micro_batches,
                           ms_arena *arena, ms_schedule *schedule,
                           ms_fault *fault);
/* The invariants above; MS_EINPUT names rank and turn. */
ms_err ms_schedule_check(const ms_graph *graph, const ms_schedule *schedule,
                         ms_fault *fault);
/* Does a turn of it run a half of backward? */
bool ms_schedule_splits(const ms_schedule *schedule);
/* Per unit its stage (n_units). */
ms_err ms_schedule_stage_of(const ms_graph *graph, const ms_schedule *schedule,
                            ms_arena *arena, uint32_t **stage_of,
                            ms_fault *fault);

/* Which turn a RUN belongs to, as the program's table of stages has it. */
ms_turn ms_schedule_turn_of(const ms_program *program, const ms_call *call);

/* text/dumpschedule.c: the turns that a program runs, one row per rank, one
 * cell per turn, as PyTorch writes schedules: 0F0,0F1,0B0. */
void ms_dumpschedule_write(const ms_program *program, ms_text *text);

/* defaultprogram.c: the calls of all turns, the messages between ranks, the
 * step: before policies place calls in it.  In one rank and one stage all is in
 * frame 0; else a rank has as many frames as it has micro-batches in flight.
 * What a segment reads from outside gets a HOLD when it is made, or received,
 * and loses it after the backward of the first segment that reads it, which is
 * the last one to be replayed.
 * MS_EINPUT: a circle of turns that wait for each other. */
ms_err ms_defaultprogram(const ms_graph *graph, const ms_keep *keep,
                         const ms_schedule *schedule, ms_arena *arena,
                         ms_program *program, ms_fault *fault);
/* The same with the default schedule. */
ms_err ms_defaultprogram_alone(const ms_graph *graph, const ms_keep *keep,
                               uint32_t micro_batches, ms_arena *arena,
                               ms_program *program, ms_fault *fault);

#endif
