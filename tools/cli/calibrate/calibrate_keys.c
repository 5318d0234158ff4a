/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/calibrate/calibrate_keys.h"

/* ---- errors -------------------------------------------------------------- */

/* A share in percent, null where there are no rows. */
#define ERROR(kind, member) MS_KEYS_AT(kind, ms_measured_error, member)
static bool has_rows(const void *of)
{
    return ((const ms_measured_error *)of)->n > 0;
}

#define PART(called, member, ...)                                              \
    {                                                                          \
        .name = (called), .type = MS_KEY_NUMBER, .null = true,                 \
        ERROR(RATE, member), .there = has_rows, .help = __VA_ARGS__            \
    }
static const ms_key error_rows[] = {
    MS_KEYS_COUNT("shapes", ERROR(U32, n), .help = "of which the others are"),
    PART("median", median, ""),
    PART("most", most,
         "of |predicted / measured - 1|, at the median and for 95 of 100"),
    PART("ratio", ratio, "median of predicted / measured"),
};
static const ms_keys error = MS_KEYS_OBJECT("error", error_rows);

#define KIND(kind, member) MS_KEYS_AT(kind, ms_calibrated_kind, member)
#define OF_KIND(called, member, ...)                                           \
    {                                                                          \
        .name = (called), .type = MS_KEY_OBJECT, .of = &error,                 \
        KIND(NOT, member), .help = __VA_ARGS__                                 \
    }
static const ms_key kind_rows[] = {
    MS_KEYS_TEXT("kind", KIND(TEXT, word), .help = "a word of a CSV"),
    MS_KEYS_COUNT("shapes", KIND(U64, shapes), .help = ""),
    MS_KEYS_COUNT("samples", KIND(U64, samples),
                  .help = "how many shapes, and measurements of them"),
    {.name = "time_ns",
     .type = MS_KEY_NUMBER,
     KIND(FLOPS, time_ns),
     .help = "of all samples"},
    OF_KIND("fitted_before", fitted_before, ""),
    OF_KIND("fitted_after", fitted_after,
            "of the shapes that rates are fitted on, by the device as it was "
            "and as it became"),
    OF_KIND("kept_before", kept_before, ""),
    OF_KIND("kept_after", kept_after, "of those that are kept back"),
};
static const ms_keys kind =
    MS_KEYS_STRUCT("kind", kind_rows, ms_calibrated_kind);

/* ---- the fit ------------------------------------------------------------- */

#define CHANGE(kind, member) MS_KEYS_AT(kind, ms_ratefit_change, member)
static const ms_key change_rows[] = {
    MS_KEYS_TEXT("key", CHANGE(TEXT, key), .help = "of a device's file"),
    {.name = "before", .type = MS_KEY_NUMBER, CHANGE(RATE, before), .help = ""},
    {.name = "after",
     .type = MS_KEY_NUMBER,
     CHANGE(RATE, after),
     .help = "its value"},
};
static const ms_keys change = MS_KEYS_OBJECT("change", change_rows);

#define UNTOLD(kind, member) MS_KEYS_AT(kind, ms_untold, member)
static const ms_key untold_rows[] = {
    MS_KEYS_TEXT("name", UNTOLD(TEXT, name), .help = "of an op or a kernel"),
    MS_KEYS_TEXT("why", UNTOLD(TEXT, why),
                 .help = "why it says nothing of the device"),
    MS_KEYS_COUNT("calls", UNTOLD(U64, count), .help = ""),
    {.name = "time_ns",
     .type = MS_KEY_NUMBER,
     UNTOLD(FLOPS, ns),
     .help = "how many, and what they took"},
};
static const ms_keys untold = MS_KEYS_OBJECT("untold", untold_rows);

/* ---- predicted against recorded ------------------------------------------ */

#define OP(kind, member) MS_KEYS_AT(kind, ms_calibrated_op, member)
static const ms_key op_rows[] = {
    MS_KEYS_TEXT("op", OP(TEXT, op), .help = "as recorded"),
    MS_KEYS_TEXT_OR_NULL("shape", OP(TEXT, shape), .help = "in words"),
    MS_KEYS_TEXT_OR_NULL("kind", OP(TEXT, kind),
                         .help = "null: a device's file has no rate of it"),
    MS_KEYS_TEXT_OR_NULL("phase", OP(TEXT, phase),
                         .help = "forward, backward or optimizer, of a trace"),
    MS_KEYS_COUNT("calls", OP(U64, calls), .help = ""),
    {.name = "recorded_ns",
     .type = MS_KEY_NUMBER,
     OP(FLOPS, recorded_ns),
     .help = ""},
    {.name = "predicted_ns",
     .type = MS_KEY_NUMBER,
     .null = true,
     OP(RATE, predicted_ns),
     .help = "how many, what they took, what they are predicted to take"},
};
static const ms_keys op = MS_KEYS_OBJECT("op", op_rows);

#define PHASE(kind, member) MS_KEYS_AT(kind, ms_calibrated_phase, member)
static const ms_key phase_rows[] = {
    MS_KEYS_TEXT("phase", PHASE(TEXT, name), .help = ""),
    MS_KEYS_COUNT("calls", PHASE(U64, calls), .help = ""),
    {.name = "recorded_ns",
     .type = MS_KEY_NUMBER,
     PHASE(FLOPS, recorded_ns),
     .help = ""},
    {.name = "predicted_ns",
     .type = MS_KEY_NUMBER,
     PHASE(FLOPS, predicted_ns),
     .help = "of the calls that are predicted"},
    {.name = "unknown_ns",
     .type = MS_KEY_NUMBER,
     PHASE(FLOPS, unknown_ns),
     .help = "recorded, of the others"},
};
static const ms_keys phase = MS_KEYS_OBJECT("phase", phase_rows);

#define OF(kind, member) MS_KEYS_AT(kind, ms_calibrated_model, member)
static const ms_key model_rows[] = {
    MS_KEYS_TEXT("name", OF(TEXT, name), .help = ""),
    MS_KEYS_TEXT("setup", OF(TEXT, setup), .help = "batch and tokens"),
    {.name = "matched",
     .type = MS_KEY_NUMBER,
     OF(FLOPS, matched),
     .help = "the part of the recorded time of products that is of its shapes"},
    MS_KEYS_COUNT("products", OF(U64, products), .help = ""),
    {.name = "recorded_products",
     .type = MS_KEY_NUMBER,
     OF(FLOPS, recorded),
     .help = "of a step, of the model and recorded; 0: steps are not marked"},
};
static const ms_keys model = MS_KEYS_OBJECT("calibrate_model", model_rows);

static bool has_model(const void *of)
{
    return ((const ms_calibration *)of)->model.name != NULL;
}

/* ---- the whole ----------------------------------------------------------- */

#define LIST(called, first, n, type)                                           \
    static ms_key_list called(const void *of)                                  \
    {                                                                          \
        const ms_calibration *c = of;                                          \
        return (ms_key_list){(void *)(uintptr_t)(first), (n), sizeof(type)};   \
    }
LIST(kinds_of, c->kinds, c->n_kinds, ms_calibrated_kind)
LIST(changes_of, c->fit.changes, c->fit.n_changes, ms_ratefit_change)
LIST(untold_of, c->all.untold, c->all.n_untold, ms_untold)
LIST(ops_of, c->ops, c->n_ops, ms_calibrated_op)
LIST(phases_of, c->phases, c->n_phases, ms_calibrated_phase)

static bool is_trace(const void *of)
{
    return ((const ms_calibration *)of)->is_trace;
}

static bool fits(const void *of)
{
    return !((const ms_calibration *)of)->checks;
}

static bool checks(const void *of)
{
    return ((const ms_calibration *)of)->checks;
}

#define AT(kind, member) MS_KEYS_AT(kind, ms_calibration, member)
#define OBJECTS(called, keys, get, ...)                                        \
    {                                                                          \
        .name = (called), .type = MS_KEY_OBJECTS, .list = (get), .of = (keys), \
        .line = 1, .element_line = 2, .end_line = 1, __VA_ARGS__               \
    }
static const ms_key rows[] = {
    MS_KEYS_VERSION,
    MS_KEYS_TEXT("memsim", AT(TEXT, memsim)),
    MS_KEYS_TEXT("file", AT(TEXT, file), .help = ""),
    MS_KEYS_TEXT("device", AT(TEXT, device),
                 .help = "what was measured, and what it is held against"),
    MS_KEYS_COUNT_OR_NULL("events", AT(U64, traced.n_events), .there = is_trace,
                          .help = ""),
    MS_KEYS_COUNT_OR_NULL("kernels", AT(U64, traced.n_kernels),
                          .there = is_trace, .help = ""),
    MS_KEYS_COUNT_OR_NULL("steps", AT(U32, traced.n_steps), .there = is_trace,
                          .help = "of a trace; 0 steps: it does not mark them"),
    MS_KEYS_TEXT_OR_NULL("recorded_on", AT(TEXT, traced.device),
                         .help = "the GPU that a trace names"),
    {.name = "model",
     .type = MS_KEY_OBJECT,
     .at = offsetof(ms_calibration, model),
     .null = true,
     .of = &model,
     .there = has_model,
     .help = "that the trace was held against; null: none was named"},
    OBJECTS("kinds", &kind, kinds_of, .help = "of kernels, with their errors"),
    OBJECTS("changes", &change, changes_of, .optional = true, .there = fits,
            .help = "numbers of the device's file that are new"),
    OBJECTS("untold", &untold, untold_of,
            .help = "what says nothing of the device"),
    OBJECTS("ops", &op, ops_of, .optional = true, .there = checks,
            .help = "with --check: predicted against recorded"),
    OBJECTS("phases", &phase, phases_of, .optional = true, .there = checks,
            .help = "the same by phase, of a trace"),
};
const ms_keys ms_calibrate_keys = MS_KEYS_OBJECT("calibrate", rows);
