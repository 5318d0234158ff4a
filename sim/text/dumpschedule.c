/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The schedule of a program: one row per rank, one cell per turn, as PyTorch
 * writes it (torch/distributed/pipelining/schedules.py, _dump_csv,
 * compute_only: stage, letter, micro-batch).  The rows in which a stage's cells
 * stand say whose it is; a copy of it has its number. */
#include "sim/names.h"
#include "sim/program.h"
#include "sim/schedule/schedule.h"

/* A pair is one cell: (0F7;7B3)OVERLAP_F_B. */
static void put_turn(const ms_turn *turn, const ms_turn *before, ms_text *text)
{
    bool second = before->pairs;
    if (before->stage != MS_NONE)
        ms_text_put(text, second ? ";" : ",", 1);
    ms_text_add(text, "%s%u%c%u%s", turn->pairs ? "(" : "", turn->stage,
                ms_schedule_letters[turn->kind], turn->micro_batch,
                second ? ")OVERLAP_F_B" : "");
}

static void put_rank(const ms_program *program, uint32_t rank, ms_text *text)
{
    ms_turn last = {.stage = MS_NONE};
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (call->verb != MS_RUN || call->rank != rank)
            continue;
        ms_turn turn = ms_schedule_turn_of(program, call);
        if (turn.stage == last.stage && turn.kind == last.kind &&
            turn.micro_batch == last.micro_batch)
            continue;
        put_turn(&turn, &last, text);
        last = turn;
    }
    ms_text_add(text, "\n");
}

void ms_dumpschedule_write(const ms_program *program, ms_text *text)
{
    for (uint32_t r = 0; r < program->n_ranks; r++)
        put_rank(program, r, text);
}
