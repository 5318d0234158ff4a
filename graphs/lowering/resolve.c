/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings beside the model they are for: what was left open is filled in,
 * what contradicts is refused. */

#include "graphs/formats/dtypes.h"
#include "graphs/formats/precisions.h"
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/quantized/packed.h"
#include "graphs/training.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SEQUENCE 2048

static bool is_set(const ms_training *training, const char *name)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        if (strcmp(ms_training_fields[row].name, name) == 0)
            return training->was_set >> row & 1;
    return false;
}

static bool is_autocast(const ms_training *training)
{
    return ms_precisions_of(training)->autocast != MS_FLOAT32;
}

/* Autocast on the CPU casts other ops, which are not known here. */
static ms_err check_autocast(const ms_training *training, ms_fault *fault)
{
    if (training->device == 0 || !is_autocast(training))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "training.precision",
                   "--set training.device=cuda",
                   "autocast is known for CUDA only");
}

/* The kernels of an op graph cannot be chosen: its ops have run already. */
static ms_err check_kernels(const ms_training *training, const ms_model *model,
                            ms_fault *fault)
{
    static const char *const names[] = {"attention_kernel",  "norm_kernel",
                                        "activation_kernel", "rotary_kernel",
                                        "loss_kernel",       "mlp_tiles"};
    char key[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_set(training, names[i]))
            continue;
        snprintf(key, sizeof key, "training.%s", names[i]);
        return ms_fail(fault, MS_EUSAGE, key,
                       "export the model with the kernels it is to run",
                       "%s is an op graph: its ops are what it ran",
                       model->name);
    }
    return MS_OK;
}

/* An op graph comes with its dtypes and its batch. */
static ms_err resolve_op_graph(ms_training *training, const ms_model *model,
                               ms_fault *fault)
{
    MS_TRY(check_kernels(training, model, fault));
    if (!is_set(training, "precision"))
        training->precision = MS_FP32;
    bool exported = training->precision == MS_FP32 ||
                    training->precision == MS_TF32 ||
                    (is_autocast(training) && !ms_precisions_of(training)->fp8);
    if (!exported)
        return ms_fail(fault, MS_EUSAGE, "training.precision",
                       "export the model in the precision it trains in, or "
                       "take autocast-bf16",
                       "an op graph keeps the dtypes it was exported with");
    if (is_set(training, "batch") &&
        (uint64_t)training->batch != model->fixed_batch)
        return ms_fail(fault, MS_EUSAGE, "training.batch",
                       "export it with another batch, or accumulate: "
                       "-p microbatch:4",
                       "%s was exported with a batch of %" PRIu64, model->name,
                       model->fixed_batch);
    training->batch = (int64_t)model->fixed_batch;
    return MS_OK;
}

/* Inference has no optimizer, unless one is named.  ms_training is a row of
 * int64_t in the order of ms_training_fields, so that an offset says the row.
 */
static void drop_optimizer(ms_training *training)
{
    uint32_t row = offsetof(ms_training, optimizer) / sizeof(int64_t);
    if (training->mode == 1 && (training->was_set >> row & 1) == 0)
        training->optimizer = MS_NO_OPTIMIZER;
}

/* Not every optimizer has each implementation. */
static ms_err check_impl(const ms_training *training, ms_fault *fault)
{
    static const char *const names[] = {"auto", "loop", "foreach", "fused"};
    const ms_optimizer_row *row = ms_updates_of(training);
    int64_t impl = training->optimizer_impl;
    char hint[64] = "";
    if (row == NULL || impl == MS_IMPL_AUTO || ms_updates_has(row, impl))
        return MS_OK;
    for (int64_t i = MS_IMPL_LOOP; i <= MS_IMPL_FUSED; i++)
        if (ms_updates_has(row, i))
            snprintf(hint + strlen(hint), sizeof hint - strlen(hint), "%s%s",
                     *hint ? " or " : "it has ", names[i]);
    return ms_fail(fault, MS_EUSAGE, "training.optimizer_impl", hint,
                   "training.optimizer=%s has no implementation %s", row->name,
                   names[impl]);
}

static ms_err contradict(const char *key, const char *value, const char *other,
                         const char *hint, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, key, hint, "%s=%s contradicts %s", key,
                   value, other);
}

/* Each gradient ends with its update in backward: there is no norm over all of
 * them, and none that is kept for the next step. */
static ms_err check_in_backward(const ms_training *training, ms_fault *fault)
{
    static const char key[] = "training.optimizer_in_backward";
    if (training->optimizer == MS_NO_OPTIMIZER)
        return contradict(key, "yes", "training.optimizer=none",
                          "name an optimizer, or leave it out", fault);
    if (training->clip_norm > 0)
        return contradict(key, "yes", "training.clip_norm",
                          "the norm of all gradients is not known before the "
                          "last of them is there: leave one out",
                          fault);
    if (training->zero_grad == 1)
        return contradict(key, "yes", "training.zero_grad=keep",
                          "each gradient ends with its update: leave one out",
                          fault);
    return MS_OK;
}

/* The other settings of the group (they stand between lora_rank and unknown_op)
 * say what adapters are like; without a rank there are none. */
static ms_err check_lora(const ms_training *training, const ms_model *model,
                         ms_fault *fault)
{
    uint32_t first = offsetof(ms_training, lora_rank) / sizeof(int64_t);
    uint32_t end = offsetof(ms_training, unknown_op) / sizeof(int64_t);
    char key[32];
    for (uint32_t row = first + 1; training->lora_rank == 0 && row < end;
         row++) {
        if ((training->was_set >> row & 1) == 0)
            continue;
        snprintf(key, sizeof key, "lora.%s", ms_training_fields[row].name);
        return ms_fail(fault, MS_EUSAGE, key, "--set lora.rank=16",
                       "%s changes nothing without lora.rank", key);
    }
    if (training->lora_rank == 0)
        return MS_OK;
    if (model->ops != NULL)
        return ms_fail(
            fault, MS_EUSAGE, "lora.rank", "export the model with its adapters",
            "%s is an op graph: its layers are what it ran", model->name);
    return MS_OK;
}

/* The two settings of the group say how products in fp8 scale. */
static ms_err check_fp8(const ms_training *training, ms_fault *fault)
{
    uint32_t first = offsetof(ms_training, fp8_recipe) / sizeof(int64_t);
    char key[32];
    for (uint32_t row = first; row < first + 2; row++) {
        if ((training->was_set >> row & 1) == 0 ||
            ms_precisions_of(training)->fp8)
            continue;
        snprintf(key, sizeof key, "fp8.%s", ms_training_fields[row].name);
        return ms_fail(fault, MS_EUSAGE, key, "--precision fp8",
                       "%s changes nothing with %s", key,
                       ms_precisions_of(training)->name);
    }
    return MS_OK;
}

/* A setting that only some optimizers read. */
static ms_err need_reader(const char *key, const char *who, bool is_read,
                          const ms_optimizer_row *row, ms_fault *fault)
{
    if (is_read)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, key, who,
                   "%s changes nothing with training.optimizer=%s", key,
                   row != NULL ? row->name : "none");
}

static ms_err check_optimizer(const ms_training *training, ms_fault *fault)
{
    const ms_optimizer_row *row = ms_updates_of(training);
    bool mixed = ms_precisions_of(training)->other.master != MS_NO_DTYPE;
    if (is_set(training, "optimizer_rank"))
        MS_TRY(need_reader("training.optimizer_rank",
                           "--optimizer galore, or leave it out",
                           row != NULL && row->has_rank, row, fault));
    if (is_set(training, "optimizer_block"))
        MS_TRY(need_reader("training.optimizer_block",
                           "--optimizer shampoo or soap, or leave it out",
                           row != NULL && row->block > 0, row, fault));
    if (training->optimizer_refresh == 1)
        MS_TRY(need_reader("training.optimizer_refresh",
                           "--optimizer galore, shampoo or soap, or leave it "
                           "out",
                           row != NULL && row->refreshes, row, fault));
    if (is_set(training, "weight_decay"))
        MS_TRY(need_reader("training.weight_decay",
                           "take another optimizer, or leave it out",
                           row != NULL && !row->no_decay, row, fault));
    if (row != NULL && row->no_master && mixed)
        return contradict("training.optimizer", row->name,
                          "the master copy of training.precision",
                          "--precision bf16", fault);
    return MS_OK;
}

static ms_err check_step(ms_training *training, ms_fault *fault)
{
    const ms_optimizer_row *row = ms_updates_of(training);
    bool always = row != NULL && row->in_backward;
    MS_TRY(check_impl(training, fault));
    MS_TRY(check_optimizer(training, fault));
    if (always && is_set(training, "optimizer_in_backward") &&
        training->optimizer_in_backward == 0)
        return contradict(
            "training.optimizer_in_backward", "no", "training.optimizer=lomo",
            "it updates each parameter in backward: leave it out", fault);
    if (always)
        training->optimizer_in_backward = 1;
    if (training->clip_norm > 0 && row == NULL)
        return contradict("training.optimizer", "none", "training.clip_norm",
                          "name an optimizer, or leave it out", fault);
    return training->optimizer_in_backward == 1
               ? check_in_backward(training, fault)
               : MS_OK;
}

/* A chain that was measured runs as it ran: nothing of how it trains is known,
 * and nothing may be asked.  The host's own code is in its times. */
static ms_err resolve_measured(ms_training *training, const ms_model *model,
                               ms_fault *fault)
{
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        char key[64];
        if ((training->was_set >> row & 1) == 0)
            continue;
        snprintf(key, sizeof key, "training.%s", ms_training_fields[row].name);
        return ms_fail(
            fault, MS_EUSAGE, key,
            model->nodes != NULL ? "leave it out"
                                 : "leave it out, or measure the chain anew",
            "%s is a measured %s: its bytes and times are given", model->name,
            model->nodes == NULL    ? "chain"
            : model->family != NULL ? "DAG"
                                    : "run");
    }
    training->device = 1;
    training->precision = MS_FP32;
    training->optimizer = MS_NO_OPTIMIZER;
    training->hold_output = MS_HOLD_NONE;
    return MS_OK;
}

ms_err ms_resolve_training(ms_training *training, const ms_model *model,
                           ms_fault *fault)
{
    uint64_t limit = model->max_sequence;
    if (model->measured)
        return resolve_measured(training, model, fault);
    drop_optimizer(training);
    MS_TRY(check_step(training, fault));
    MS_TRY(check_autocast(training, fault));
    MS_TRY(check_fp8(training, fault));
    MS_TRY(ms_precisions_check(training, fault));
    MS_TRY(ms_kernels_check(training, fault));
    if (model->ops != NULL)
        MS_TRY(resolve_op_graph(training, model, fault));
    else if (is_set(training, "unknown_op"))
        return ms_fail(
            fault, MS_EUSAGE, "graph.unknown_op", "leave it out for this model",
            "%s is no op graph: memsim knows all its ops", model->name);
    MS_TRY(check_lora(training, model, fault));
    MS_TRY(ms_packed_check(training, model, fault));
    if (!model->sequence_input) {
        if (training->sequence == 0)
            return MS_OK;
        return ms_fail(fault, MS_EUSAGE, "training.sequence",
                       "leave it out for this model",
                       "the input of %s has no sequence", model->name);
    }
    if (training->sequence == 0)
        training->sequence = limit != 0 && limit < DEFAULT_SEQUENCE
                                 ? (int64_t)limit
                                 : DEFAULT_SEQUENCE;
    if (limit != 0 && (uint64_t)training->sequence > limit && !model->rotary)
        return ms_fail(fault, MS_EUSAGE, "training.sequence",
                       "take a shorter sequence or more \"positions\": they "
                       "are a table with a row for each",
                       "sequence %" PRId64 " is longer than the %" PRIu64
                       " positions of %s",
                       training->sequence, limit, model->name);
    return MS_OK;
}
