/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the words of optimtable.h, and computes the sizes of states. */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* ---- words --------------------------------------------------------------- */

typedef struct word {
    const char *at;
    size_t n;
} word;

/* The word that begins at text, up to one of the stops; moves text behind it.
 */
static word take(const char **text, const char *stops)
{
    word w = {.at = *text, .n = strcspn(*text, stops)};
    *text += w.n;
    return w;
}

static bool is(word w, const char *name)
{
    return strlen(name) == w.n && strncmp(w.at, name, w.n) == 0;
}

static bool copy(word w, char *to, size_t size)
{
    if (w.n == 0 || w.n >= size)
        return false;
    memcpy(to, w.at, w.n);
    to[w.n] = '\0';
    return true;
}

static bool extent_of(word w, uint8_t *extent)
{
    static const char *const names[MS_N_EXTENTS] = {
        "whole",    "rows",      "columns",    "blocks",      "scalar",
        "square",   "projector", "low",        "left",        "right",
        "all_left", "all_right", "left_block", "right_block", "full"};
    for (uint32_t i = 0; i < MS_N_EXTENTS; i++)
        if (is(w, names[i])) {
            *extent = (uint8_t)i;
            return true;
        }
    return false;
}

static bool dtype_of(word w, uint8_t *dtype)
{
    if (is(w, "fp32"))
        *dtype = MS_FLOAT32;
    else if (is(w, "bf16"))
        *dtype = MS_BFLOAT16;
    else if (is(w, "fp16"))
        *dtype = MS_FLOAT16;
    else if (is(w, "byte"))
        *dtype = MS_BYTE;
    else
        return false;
    return true;
}

/* "role.EXTENT.DTYPE" */
static bool read_state(word w, ms_state *state)
{
    const char *text = w.at;
    const char *end = w.at + w.n;
    *state = (ms_state){.dtype = MS_AS_STATE};
    bool sound = copy(take(&text, ".! ;"), state->role, sizeof state->role);
    if (text < end && *text == '.') {
        text++;
        sound = extent_of(take(&text, ".! ;"), &state->extent) && sound;
    }
    if (text < end && *text == '.') {
        text++;
        sound = dtype_of(take(&text, ".! ;"), &state->dtype) && sound;
    }
    if (text < end && *text == '!') {
        state->at_construction = true;
        text++;
    }
    return sound && text == end;
}

static bool read_states(const char *list, ms_read_update *read)
{
    bool sound = true;
    for (list += strspn(list, " "); *list != '\0'; list += strspn(list, " ")) {
        if (read->n_states == MS_MOST_STATES)
            return false;
        ms_state *state = &read->states[read->n_states++];
        sound = read_state(take(&list, " "), state) && sound;
    }
    return sound;
}

/* ---- ops ----------------------------------------------------------------- */

static const char temporaries[] = "ABCDEFHIJK";

/* "S1", "A", "G"; MS_ON_NOTHING where the word is no operand. */
static uint8_t operand(word w)
{
    char first = w.n > 0 ? *w.at : '\0';
    if (w.n == 2 && first == 'S' && w.at[1] >= '0' &&
        w.at[1] < '0' + (char)MS_MOST_STATES)
        return (uint8_t)(MS_ON_STATE + (w.at[1] - '0'));
    if (w.n != 1)
        return MS_ON_NOTHING;
    const char *temporary = first == 0 ? NULL : strchr(temporaries, first);
    if (temporary != NULL)
        return (uint8_t)(MS_ON_TEMPORARY + (temporary - temporaries));
    return first == 'G'   ? MS_ON_GRAD
           : first == 'W' ? MS_ON_WEIGHT
           : first == 'P' ? MS_ON_PARAMETER
                          : MS_ON_NOTHING;
}

/* "=A:role.EXTENT" */
static bool read_made(word w, ms_step_op *op)
{
    const char *text = w.at;
    word name = take(&text, ":");
    if (name.n >= w.n)
        return false;
    op->makes = operand(name);
    bool fits = op->makes == MS_ON_GRAD || op->makes == MS_ON_WEIGHT ||
                op->makes >= MS_ON_TEMPORARY;
    word rest = {.at = text + 1, .n = w.n - name.n - 1};
    return fits && read_state(rest, &op->made);
}

/* "A=B" */
static bool read_renaming(word w, ms_step_op *op)
{
    word to = {.at = w.at, .n = 1}, from = {.at = w.at + 2, .n = w.n - 2};
    op->becomes = operand(to);
    op->was = operand(from);
    return op->becomes >= MS_ON_TEMPORARY && op->was >= MS_ON_TEMPORARY;
}

static bool read_operand(word w, ms_step_op *op)
{
    word rest = {.at = w.at + 1, .n = w.n - 1};
    if (w.n == 3 && w.at[1] == '=')
        return read_renaming(w, op);
    switch (*w.at) {
    case '=':
        return read_made(rest, op);
    case '>':
        op->writes = operand(rest);
        return op->writes != MS_ON_NOTHING;
    case '-':
        op->drops |= 1u << operand(rest);
        return operand(rest) == MS_ON_GRAD || operand(rest) >= MS_ON_TEMPORARY;
    default:
        op->reads |= 1u << operand(w);
        return operand(w) != MS_ON_NOTHING;
    }
}

/* FLOPs per element; an op that is not named here has one. */
static double flops_of(word w)
{
    static const struct {
        const char *begins;
        double flops;
    } known[] = {
        {"_to_copy", 0}, {"copy_", 0},      {"clone", 0},
        {"addc", 3},     {"all_gather", 0}, {"lerp_", 3},
        {"add", 2},      {"norm", 2},       {"matmul", 2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(w.at, known[i].begins, strlen(known[i].begins)) == 0)
            return known[i].flops;
    return 1;
}

/* "matmul@small": returns the name before the @, or an empty word where the
 * inner size is unknown, which read_name refuses. */
static word without_inner(word w, ms_step_op *op)
{
    static const char *const names[MS_N_INNERS] = {"",      "rows",  "columns",
                                                   "small", "large", "rank"};
    const char *at = memchr(w.at, '@', w.n);
    if (!at)
        return w;
    word inner = {.at = at + 1, .n = w.n - (size_t)(at - w.at) - 1};
    for (uint32_t i = MS_INNER_ROWS; i <= MS_INNER_RANK; i++)
        if (is(inner, names[i]))
            op->inner = (uint8_t)i;
    return (word){.at = w.at, .n = op->inner ? (size_t)(at - w.at) : 0};
}

static word next(const char **list)
{
    *list += strspn(*list, " ");
    return take(list, " ;");
}

/* The word after the conditions. */
static word read_conditions(const char **list, ms_step_op *op)
{
    static const char *const conditions[] = {"",       "decay", "undecayed",
                                             "narrow", "cpu",   "shared"};
    word w = take(list, " ;");
    if (is(w, "refresh")) {
        op->refreshes = true;
        w = next(list);
    }
    for (uint32_t i = MS_WHEN_DECAYS; i <= MS_WHEN_SHARED; i++)
        if (is(w, conditions[i]))
            op->when = (uint8_t)i;
    return op->when != MS_WHEN_ALWAYS ? next(list) : w;
}

/* The words of one op before its operands. */
static bool read_name(const char **list, const char *prefix, ms_step_op *op)
{
    word w = read_conditions(list, op);
    op->gathers = is(w, "all_gather");
    if (op->gathers)
        prefix = "c10d::";
    size_t n = strlen(prefix);
    if (w.n > 0 && w.at[w.n - 1] == '#') {
        op->scalar = true;
        w.n--;
    }
    w = without_inner(w, op);
    op->flops = flops_of(w);
    memcpy(op->op, prefix, n);
    return copy(w, op->op + n, sizeof op->op - n);
}

static bool read_op(const char **list, const char *prefix, ms_step_op *op)
{
    *op = (ms_step_op){.scalar = false};
    bool sound = read_name(list, prefix, op);
    for (;;) {
        *list += strspn(*list, " ");
        if (**list == '\0' || **list == ';')
            return sound;
        sound = read_operand(take(list, " ;"), op) && sound;
    }
}

static const char *ops_of(const ms_update *update, int64_t impl,
                          uint8_t framework)
{
    if (impl == MS_IMPL_FUSED)
        return "";
    if (impl == MS_IMPL_LOOP)
        return update->loop;
    if (framework < MS_TORCH_2_0 && update->foreach_1_13)
        return update->foreach_1_13;
    return framework < MS_TORCH_2 && update->foreach_2_0 ? update->foreach_2_0
                                                         : update->foreach;
}

static uint32_t count_ops(const char *list)
{
    uint32_t n = *list != '\0';
    for (; *list != '\0'; list++)
        n += *list == ';';
    return n;
}

bool ms_updates_read(const ms_update *update, int64_t impl, uint8_t framework,
                     ms_arena *arena, ms_read_update *read)
{
    const char *list = ops_of(update, impl, framework);
    const char *prefix = impl == MS_IMPL_FOREACH ? "aten::_foreach_" : "aten::";
    uint32_t n = count_ops(list);
    *read = (ms_read_update){.n_ops = n};
    bool sound = read_states(update->states, read);
    ms_step_op *ops = ms_arena_take(arena, n + 1, sizeof *ops);
    read->ops = ops;
    for (uint32_t i = 0; ops && i < n; i++) {
        list += strspn(list, " ;");
        sound = read_op(&list, prefix, &ops[i]) && sound;
    }
    return sound && ops;
}

/* ---- sizes --------------------------------------------------------------- */

static uint64_t over(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

/* The elements of the tensor without one dimension, counted from the end. */
static uint64_t without(const ms_tensor *tensor, uint32_t from_end)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        n *= d + from_end == tensor->n_dims ? 1 : (uint64_t)tensor->size[d];
    return n;
}

/* A parameter as `lead` matrices n x m. */
typedef struct matrices {
    uint64_t lead, n, m, rank, block;
} matrices;

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static matrices matrices_of(const ms_training *training,
                            const ms_tensor *tensor)
{
    const ms_optimizer_row *row = ms_updates_of(training);
    const int64_t *size = tensor->size;
    uint64_t elements = ms_trace_elements(tensor);
    matrices it = {.lead = 1, .n = elements, .m = 1};
    if (tensor->n_dims == 3)
        it = (matrices){.lead = (uint64_t)size[0],
                        .n = (uint64_t)size[1],
                        .m = (uint64_t)size[2]};
    else if (tensor->n_dims >= 2 && size[0] > 0)
        it = (matrices){.lead = 1,
                        .n = (uint64_t)size[0],
                        .m = elements / (uint64_t)size[0]};
    it.rank = at_most((uint64_t)training->optimizer_rank, at_most(it.n, it.m));
    it.block = training->optimizer_block > 0
                   ? (uint64_t)training->optimizer_block
                   : row->block;
    return it;
}

/* Block-wise preconditioners cut a matrix into blocks: the squares of all sides
 * into which n is cut, once for each block across. */
static uint64_t squares(const matrices *it, uint64_t n, uint64_t across)
{
    uint64_t side = at_most(n, it->block), rest = n % side;
    return it->lead * over(across, it->block) *
           (n / side * side * side + rest * rest);
}

/* The square of the longest side that n is cut into. */
static uint64_t square_in(const matrices *it, uint64_t n)
{
    uint64_t side = at_most(n, it->block);
    return side * side;
}

static uint64_t square_of(const matrices *it, uint64_t n)
{
    return n <= it->block ? it->lead * n * n : 0;
}

static uint64_t matrix_extent(const matrices *it, ms_extent extent,
                              uint64_t part)
{
    uint64_t small = at_most(it->n, it->m);
    uint64_t large = it->n > it->m ? it->n : it->m;
    switch (extent) {
    case MS_EXTENT_SQUARE:
        return it->lead * small * small;
    case MS_EXTENT_PROJECTOR:
        return it->lead * it->rank * small;
    case MS_EXTENT_LOW:
        return it->lead * it->rank * large;
    case MS_EXTENT_LEFT:
        return squares(it, it->n, it->m);
    case MS_EXTENT_RIGHT:
        return squares(it, it->m, it->n);
    case MS_EXTENT_ALL_LEFT:
        return square_of(it, it->n);
    case MS_EXTENT_ALL_RIGHT:
        return square_of(it, it->m);
    case MS_EXTENT_LEFT_BLOCK:
        return square_in(it, it->n);
    case MS_EXTENT_RIGHT_BLOCK:
        return square_in(it, it->m);
    default:
        return part;
    }
}

uint64_t ms_updates_extent(const ms_training *training, uint8_t extent,
                           const ms_tensor *tensor, uint64_t part)
{
    switch ((ms_extent)extent) {
    case MS_EXTENT_WHOLE:
        return part;
    case MS_EXTENT_ROWS:
        return without(tensor, 1);
    case MS_EXTENT_COLUMNS:
        return without(tensor, 2);
    case MS_EXTENT_BLOCKS:
        return over(part, MS_OPTIMIZERS_BLOCK);
    case MS_EXTENT_SCALAR:
        return 1;
    case MS_EXTENT_FULL:
        return ms_trace_elements(tensor);
    default:
        break;
    }
    matrices it = matrices_of(training, tensor);
    if (it.n == 0 || it.m == 0)
        return 0;
    return matrix_extent(&it, (ms_extent)extent, part);
}

uint64_t ms_updates_inner(const ms_training *training, uint8_t inner,
                          const ms_tensor *tensor)
{
    matrices it = matrices_of(training, tensor);
    uint64_t most = it.block > 0 ? it.block : UINT64_MAX;
    switch ((ms_inner)inner) {
    case MS_INNER_ROWS:
        return at_most(it.n, most);
    case MS_INNER_COLUMNS:
        return at_most(it.m, most);
    case MS_INNER_SMALL:
        return at_most(it.n, it.m);
    case MS_INNER_LARGE:
        return it.n > it.m ? it.n : it.m;
    case MS_INNER_RANK:
        return it.rank;
    case MS_INNER_NONE:
    case MS_N_INNERS:
        break;
    }
    return 1;
}

/* ---- which --------------------------------------------------------------- */

static bool is_embedding(const ms_trace *trace, uint32_t storage)
{
    const ms_graph *g = trace->graph;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        uint32_t end = op + 1 < g->n_ops ? g->in_at[op + 1] : trace->n_in;
        if (strcmp(g->op_name[op], "aten::embedding") != 0)
            continue;
        for (uint32_t i = g->in_at[op]; i < end; i++)
            if (g->in[i] == storage)
                return true;
    }
    return false;
}

/* The head of a layer list is what the loss reads; that of an op graph, which
 * has no layers, counts as its last matrix. */
static bool is_head(const ms_trace *trace, const ms_parameter *parameter)
{
    const ms_model *model = trace->settings->model;
    if (!model->ops)
        return ms_trace_is_head(trace, &model->layers[parameter->layer]);
    for (const ms_parameter *p = parameter + 1;
         p < trace->parameters + trace->n_parameters; p++)
        if (ms_trace_at(trace, p->tensor)->n_dims >= 2)
            return false;
    return true;
}

bool ms_updates_is_chosen(const ms_trace *trace, const ms_optimizer_row *row,
                          const ms_parameter *parameter)
{
    bool matrix = ms_trace_at(trace, parameter->tensor)->n_dims >= 2;
    switch ((ms_chosen)row->chosen) {
    case MS_CHOSEN_MATRICES:
        return matrix;
    case MS_CHOSEN_HIDDEN:
        return matrix && !is_embedding(trace, parameter->storage) &&
               !is_head(trace, parameter);
    case MS_CHOSEN_LARGE:
        return parameter->part >= MS_OPTIMIZERS_LARGE;
    case MS_CHOSEN_LINEAR:
        return parameter->linear;
    case MS_CHOSEN_ALL:
        break;
    }
    return true;
}

/* ---- what there is ------------------------------------------------------- */

static bool update_has(const ms_update *update, int64_t impl)
{
    if (impl == MS_IMPL_FUSED)
        return update->fused;
    return (impl == MS_IMPL_LOOP ? update->loop : update->foreach) != NULL;
}

const ms_optimizer_row *ms_updates_of(const ms_training *training)
{
    const ms_optimizer_row *own =
        ms_optimtable_own[ms_precisions_of(training)->optimizers];
    if (training->optimizer == MS_NO_OPTIMIZER)
        return NULL;
    if (own && training->optimizer == MS_ADAM)
        return &own[0];
    if (own && training->optimizer == MS_ADAMW)
        return &own[1];
    return &ms_optimtable[training->optimizer];
}

/* Trainers ask for AdamW's one kernel on CUDA: optim=adamw_torch_fused is the
 * default of Hugging Face's Trainer (transformers training_args.py, with torch
 * 2.8 and later), implementation="fused" torchtitan's
 * (components/optimizer.py). torch.optim.AdamW without arguments takes lists.
 */
static bool trainers_fuse(const ms_optimizer_row *row,
                          const ms_training *training)
{
    return training->optimizer == MS_ADAMW &&
           training->framework == MS_TORCH_2 &&
           ms_updates_has(row, MS_IMPL_FUSED);
}

int64_t ms_updates_impl(const ms_optimizer_row *row, const ms_trace *trace)
{
    const ms_training *training = trace->settings->training;
    if (training->optimizer_impl != MS_IMPL_AUTO)
        return training->optimizer_impl;
    if (row->impl != MS_IMPL_AUTO)
        return row->impl;
    if (trace->kernels.fuses_updates && ms_updates_has(row, MS_IMPL_FUSED))
        return MS_IMPL_FUSED;
    if (training->device == 1 || training->framework == MS_TORCH_1_13)
        return MS_IMPL_LOOP;
    return trainers_fuse(row, training) ? MS_IMPL_FUSED : MS_IMPL_FOREACH;
}

bool ms_updates_has(const ms_optimizer_row *row, int64_t impl)
{
    return update_has(row->update, impl) &&
           (row->others == NULL || update_has(row->others, impl));
}

bool ms_updates_is_elementwise(const ms_optimizer_row *row)
{
    return row->update->elementwise &&
           (row->others == NULL || row->others->elementwise);
}

bool ms_updates_is_shared(const ms_optimizer_row *row)
{
    return (row->update->elementwise || row->update->gathers) &&
           (row->others == NULL || row->others->elementwise);
}

bool ms_updates_is_flat(const ms_step_settings *settings)
{
    const ms_optimizer_row *row = ms_updates_of(settings->training);
    return row != NULL && row->update->gathers &&
           settings->shape->flat_step.used;
}
