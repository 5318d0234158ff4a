/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/headloss.h"
#include "graphs/models/build.h"

#include <assert.h>
#include <inttypes.h>

/* ---- the transformer's parameters ---------------------------------------- */

/* Rows of the tables below, in their order. */
enum {
    LAYERS,
    HIDDEN,
    HEADS,
    FFN,
    VOCAB,
    POSITIONS,
    NORM,
    ACTIVATION,
    DROPOUT,
    ATTENTION_DROPOUT,
    BIAS,
    TIED,
    VOCAB_PAD_TO,
    TYPES,
    EMBEDDING_NORM,
    POOLER,
    HEAD,
    NORM_TYPE,
    POSITIONS_TYPE,
    KV_HEADS,
    HEAD_DIM,
    LOSS,
    CODE,
    FUSED_QKV,
    QK_NORM
};
enum { NORM_PRE, NORM_POST };
enum { HEAD_LM, HEAD_NONE };
enum { POSITIONS_LEARNED, POSITIONS_ROTARY };
enum { FUSED_AUTO, FUSED_YES };
enum { CODE_AUTO, CODE_LLAMA, CODE_TORCHTUNE, CODE_TORCHTUNE_COMPILED };
static const char *const norms[] = {"layer_norm", "rms_norm"};
/* From FIRST_GATED on the MLP has a gate beside the way up. */
enum { FIRST_GATED = 4 };
static const char *const activations[] = {"gelu", "gelu_new", "relu",
                                          "silu", "swiglu",   "geglu"};

#define MAX_WIDTH (INT64_C(1) << 24)
#define MAX_ROWS (INT64_C(1) << 31)

/* A decoder's and an encoder's table differ in defaults only. */
#define TRANSFORMER_FIELDS(norm_, types_, embedding_norm_, pooler_, head_)     \
    {.name = "layers",                                                         \
     .type = MS_INT,                                                           \
     .required = true,                                                         \
     .low = 1,                                                                 \
     .high = 100000,                                                           \
     .help = "number of transformer layers"},                                  \
        {.name = "hidden",                                                     \
         .type = MS_INT,                                                       \
         .required = true,                                                     \
         .low = 1,                                                             \
         .high = MAX_WIDTH,                                                    \
         .help = "width of the residual stream"},                              \
        {.name = "heads",                                                      \
         .type = MS_INT,                                                       \
         .required = true,                                                     \
         .low = 1,                                                             \
         .high = MAX_WIDTH,                                                    \
         .help = "attention heads per layer"},                                 \
        {.name = "ffn",                                                        \
         .type = MS_INT,                                                       \
         .low = 1,                                                             \
         .high = MAX_WIDTH,                                                    \
         .help = "inner width of the MLP; default 4 * hidden"},                \
        {.name = "vocab",                                                      \
         .type = MS_INT,                                                       \
         .required = true,                                                     \
         .low = 1,                                                             \
         .high = MAX_ROWS,                                                     \
         .help = "rows of the token embedding"},                               \
        {.name = "positions",                                                  \
         .type = MS_INT,                                                       \
         .required = true,                                                     \
         .low = 1,                                                             \
         .high = MAX_ROWS,                                                     \
         .help = "the longest sequence"},                                      \
        {.name = "norm",                                                       \
         .type = MS_WORD,                                                      \
         .fallback.i = (norm_),                                                \
         .words = "pre|post",                                                  \
         .help = "normalise before or after a sublayer"},                      \
        {.name = "activation",                                                 \
         .type = MS_WORD,                                                      \
         .words = "gelu|gelu_new|relu|silu|swiglu|geglu",                      \
         .help = "activation of the MLP; swiglu, geglu: with a gate"},         \
        {.name = "dropout",                                                    \
         .type = MS_FLOAT,                                                     \
         .fallback.f = 0.1,                                                    \
         .low = 0,                                                             \
         .high = 1,                                                            \
         .help = "dropout probability; 0: no dropout layers"},                 \
        {.name = "attention_dropout",                                          \
         .type = MS_FLOAT,                                                     \
         .fallback.f = -1,                                                     \
         .low = 0,                                                             \
         .high = 1,                                                            \
         .help = "dropout of attention weights; default: dropout"},            \
        {.name = "bias",                                                       \
         .type = MS_BOOL,                                                      \
         .fallback.b = true,                                                   \
         .help = "linear layers have a bias"},                                 \
        {.name = "tied",                                                       \
         .type = MS_BOOL,                                                      \
         .fallback.b = true,                                                   \
         .help = "the head shares the token embedding's weights"},             \
        {.name = "vocab_pad_to",                                               \
         .type = MS_INT,                                                       \
         .fallback.i = 1,                                                      \
         .low = 1,                                                             \
         .high = 1 << 20,                                                      \
         .help = "round vocab up to a multiple of this"},                      \
        {.name = "types",                                                      \
         .type = MS_INT,                                                       \
         .fallback.i = (types_),                                               \
         .low = 0,                                                             \
         .high = MAX_ROWS,                                                     \
         .help = "token types (segments); 0: none"},                           \
        {.name = "embedding_norm",                                             \
         .type = MS_BOOL,                                                      \
         .fallback.b = (embedding_norm_),                                      \
         .help = "a norm after the embeddings"},                               \
        {.name = "pooler",                                                     \
         .type = MS_BOOL,                                                      \
         .fallback.b = (pooler_),                                              \
         .help = "linear and tanh on the first token"},                        \
        {.name = "head",                                                       \
         .type = MS_WORD,                                                      \
         .fallback.i = (head_),                                                \
         .words = "lm|none",                                                   \
         .help = "language-model head, or none"},                              \
        {.name = "norm_type",                                                  \
         .type = MS_WORD,                                                      \
         .words = "layer_norm|rms_norm",                                       \
         .help = "how to normalise"},                                          \
        {.name = "positions_type",                                             \
         .type = MS_WORD,                                                      \
         .words = "learned|rotary",                                            \
         .help = "a table of positions, or rotated queries and keys"},         \
        {.name = "kv_heads",                                                   \
         .type = MS_INT,                                                       \
         .low = 0,                                                             \
         .high = MAX_WIDTH,                                                    \
         .help = "heads of keys and values; default: heads"},                  \
        {.name = "head_dim",                                                   \
         .type = MS_INT,                                                       \
         .low = 0,                                                             \
         .high = MAX_WIDTH,                                                    \
         .help = "channels of a head; default hidden / heads"},                \
        {.name = "loss",                                                       \
         .type = MS_WORD,                                                      \
         .words = MS_HEADLOSS_WORDS,                                           \
         .help = "kernel of cross entropy, as the layer's \"kernel\""},        \
        {.name = "code",                                                       \
         .type = MS_WORD,                                                      \
         .words = "auto|llama|torchtune|torchtune_compiled",                   \
         .help =                                                               \
             "llama: ops as Meta's code and torchtitan's have them: norms "    \
             "in fp32, rotation by complex numbers, keys and values "          \
             "repeated for their queries, silu and its product apart, "        \
             "fp32 logits; "                                                   \
             "torchtune: as llama, of packed samples, whose positions "        \
             "are looked up; torchtune_compiled: torch.compile has made "      \
             "each block's norms, rotations and gates a kernel each"},         \
        {.name = "fused_qkv",                                                  \
         .type = MS_WORD,                                                      \
         .words = "auto|yes|no",                                               \
         .help =                                                               \
             "one product makes queries, keys and values; auto: where they "   \
             "do not rotate"},                                                 \
    {                                                                          \
        .name = "qk_norm", .type = MS_WORD, .words = "none|head|width",        \
        .help = "RMS norm of queries and keys, by heads or over all"           \
    }

static const ms_field decoder_fields[] = {
    TRANSFORMER_FIELDS(NORM_PRE, 0, false, false, HEAD_LM)};
static const ms_field encoder_fields[] = {
    TRANSFORMER_FIELDS(NORM_POST, 2, true, true, HEAD_NONE)};
static const ms_field parameters_fields[] = {{.name = "count",
                                              .type = MS_INT,
                                              .required = true,
                                              .low = 1,
                                              .high = INT64_C(1) << 58,
                                              .help = "number of parameters"}};

#define N_FIELDS(rows) (sizeof(rows) / sizeof *(rows))

/* ---- building blocks ----------------------------------------------------- */

typedef struct stack {
    ms_build build;
    const ms_value *values;
    const char *prefix; /* of the current block's layer names: "layers.3." */
    uint32_t block;
    bool causal;
    bool failed; /* out of memory somewhere */
} stack;

/* Appends a layer that reads one layer (MS_NONE: the model's input); NULL
 * once memory ran out. */
static ms_layer *add(stack *s, const char *type, const char *name,
                     uint32_t from)
{
    const char *full = ms_arena_format(s->build.arena, "%s%s", s->prefix, name);
    uint32_t kind = ms_layer_find(type);
    assert(kind != MS_NONE);
    ms_layer *layer =
        full == NULL ? NULL : ms_build_layer(&s->build, full, kind);
    if (layer == NULL || !ms_build_edge(&s->build, from)) {
        s->failed = true;
        return NULL;
    }
    layer->block = s->block;
    return layer;
}

static uint32_t newest(const stack *s)
{
    return s->build.model->n_layers - 1;
}

static uint32_t add_simple(stack *s, const char *type, const char *name,
                           uint32_t from)
{
    add(s, type, name, from);
    return newest(s);
}

/* Meta's code of LLaMA (meta-llama/llama model.py); torchtitan's model.py of
 * 2024 is the same in what it saves, and has fused_rmsnorm besides. */
static bool is_llama(const ms_value *values)
{
    return values[CODE].i != CODE_AUTO;
}

/* torchtune compiles blocks (training/_compile.py), and nothing between them.
 */
static bool is_compiled(const stack *s)
{
    return s->values[CODE].i == CODE_TORCHTUNE_COMPILED && s->block != MS_NONE;
}

static uint32_t add_norm(stack *s, const char *name, uint32_t from)
{
    ms_layer *layer = add(s, norms[s->values[NORM_TYPE].i], name, from);
    if (layer != NULL && is_llama(s->values) && !is_compiled(s))
        ms_build_field(layer, "upcast")->b = true;
    return newest(s);
}

static uint32_t add_sum(stack *s, const char *name, uint32_t first,
                        uint32_t second)
{
    if (add(s, "add", name, first) != NULL)
        s->failed |= !ms_build_edge(&s->build, second);
    return newest(s);
}

static uint32_t add_embedding(stack *s, const char *name, int64_t rows,
                              int64_t ids)
{
    ms_layer *layer = add(s, "embedding", name, MS_NONE);
    if (layer != NULL) {
        ms_build_field(layer, "vocab")->i = rows;
        ms_build_field(layer, "dim")->i = s->values[HIDDEN].i;
        ms_build_field(layer, "ids")->i = ids;
    }
    return newest(s);
}

static uint32_t add_linear(stack *s, const char *name, uint32_t from,
                           int64_t out)
{
    ms_layer *layer = add(s, "linear", name, from);
    if (layer != NULL) {
        ms_build_field(layer, "out")->i = out;
        ms_build_field(layer, "bias")->b = s->values[BIAS].b;
    }
    return newest(s);
}

static uint32_t add_dropout(stack *s, const char *name, uint32_t from)
{
    if (s->values[DROPOUT].f == 0)
        return from;
    ms_layer *layer = add(s, "dropout", name, from);
    if (layer != NULL)
        ms_build_field(layer, "p")->f = s->values[DROPOUT].f;
    return newest(s);
}

/* Rotary models have projections of their own for q, k and v, as LLaMA. */
static bool is_rotary(const ms_value *values)
{
    return values[POSITIONS_TYPE].i == POSITIONS_ROTARY;
}

static uint32_t add_attention(stack *s, uint32_t from)
{
    const ms_value *values = s->values;
    ms_layer *layer = add(s, "attention", "attention", from);
    if (layer != NULL) {
        double own = values[ATTENTION_DROPOUT].f;
        ms_build_field(layer, "heads")->i = values[HEADS].i;
        ms_build_field(layer, "causal")->b = s->causal;
        ms_build_field(layer, "dropout")->f = own < 0 ? values[DROPOUT].f : own;
        ms_build_field(layer, "bias")->b = values[BIAS].b;
        ms_build_field(layer, "kv_heads")->i = values[KV_HEADS].i;
        ms_build_field(layer, "head_dim")->i = values[HEAD_DIM].i;
        ms_build_field(layer, "rotary")->b = is_rotary(values);
        ms_build_field(layer, "fused_qkv")->b =
            values[FUSED_QKV].i == FUSED_AUTO
                ? !is_rotary(values) && values[QK_NORM].i == 0
                : values[FUSED_QKV].i == FUSED_YES;
        ms_build_field(layer, "complex")->b =
            is_llama(values) && !is_compiled(s);
        ms_build_field(layer, "packed")->b = values[CODE].i == CODE_TORCHTUNE;
        ms_build_field(layer, "repeat_kv")->b = is_compiled(s);
        ms_build_field(layer, "qk_norm")->i = values[QK_NORM].i;
    }
    return newest(s);
}

/* LLaMA's: activation(gate(x)) * up(x). */
static uint32_t add_gate(stack *s, const char *type, uint32_t from, int64_t ffn)
{
    uint32_t gate = add_linear(s, "mlp.gate", from, ffn);
    if (is_llama(s->values) && !is_compiled(s)) {
        gate = add_simple(s, "silu", "mlp.silu", gate);
        type = "mul";
    }
    uint32_t up = add_linear(s, "mlp.up", from, ffn);
    if (add(s, type, "mlp.activation", gate) != NULL)
        s->failed |= !ms_build_edge(&s->build, up);
    return newest(s);
}

static uint32_t add_mlp(stack *s, uint32_t from)
{
    const ms_value *values = s->values;
    int64_t hidden = values[HIDDEN].i;
    int64_t ffn = values[FFN].i == 0 ? 4 * hidden : values[FFN].i;
    const char *activation = activations[values[ACTIVATION].i];
    uint32_t l;
    if (values[ACTIVATION].i >= FIRST_GATED)
        l = add_gate(s, activation, from, ffn);
    else
        l = add_simple(s, activation, "mlp.activation",
                       add_linear(s, "mlp.up", from, ffn));
    return add_linear(s, "mlp.down", l, hidden);
}

/* ---- the transformer ----------------------------------------------------- */

static int64_t padded_vocab(const ms_value *values)
{
    int64_t multiple = values[VOCAB_PAD_TO].i;
    return (values[VOCAB].i + multiple - 1) / multiple * multiple;
}

static uint32_t add_embeddings(stack *s)
{
    const ms_value *values = s->values;
    s->prefix = "embeddings.";
    uint32_t l =
        add_embedding(s, "tokens", padded_vocab(values), MS_IDS_TOKENS);
    if (values[TYPES].i > 0) { /* first, as in BERT's code */
        uint32_t types =
            add_embedding(s, "types", values[TYPES].i, MS_IDS_TYPES);
        l = add_sum(s, "add_types", l, types);
    }
    if (!is_rotary(values)) {
        uint32_t positions = add_embedding(s, "positions", values[POSITIONS].i,
                                           MS_IDS_POSITIONS);
        l = add_sum(s, "add", l, positions);
    }
    if (values[EMBEDDING_NORM].b)
        l = add_norm(s, "norm", l);
    return add_dropout(s, "dropout", l);
}

/* x + f(norm(x)): the norm is inside the residual branch. */
static uint32_t add_pre_norm_block(stack *s, uint32_t x)
{
    uint32_t l = add_norm(s, "norm1", x);
    l = add_dropout(s, "dropout1", add_attention(s, l));
    x = add_sum(s, "residual1", x, l);
    l = add_norm(s, "norm2", x);
    l = add_dropout(s, "dropout2", add_mlp(s, l));
    return add_sum(s, "residual2", x, l);
}

/* norm(x + f(x)). */
static uint32_t add_post_norm_block(stack *s, uint32_t x)
{
    uint32_t l = add_dropout(s, "dropout1", add_attention(s, x));
    l = add_sum(s, "residual1", x, l);
    x = add_norm(s, "norm1", l);
    l = add_dropout(s, "dropout2", add_mlp(s, x));
    l = add_sum(s, "residual2", x, l);
    return add_norm(s, "norm2", l);
}

static uint32_t add_blocks(stack *s, uint32_t x)
{
    for (int64_t i = 0; i < s->values[LAYERS].i && !s->failed; i++) {
        const char *name =
            ms_arena_format(s->build.arena, "layers.%" PRId64, i);
        s->block = name == NULL ? MS_NONE : ms_build_block(&s->build, name);
        s->prefix = ms_arena_format(s->build.arena, "layers.%" PRId64 ".", i);
        if (s->block == MS_NONE || s->prefix == NULL) {
            s->failed = true;
            return x;
        }
        x = s->values[NORM].i == NORM_PRE ? add_pre_norm_block(s, x)
                                          : add_post_norm_block(s, x);
    }
    return x;
}

static void add_end(stack *s, uint32_t x)
{
    const ms_value *values = s->values;
    s->prefix = "";
    s->block = MS_NONE;
    if (values[NORM].i == NORM_PRE)
        x = add_norm(s, "final_norm", x);
    if (values[POOLER].b) {
        x = add_simple(s, "select", "pooler.select", x);
        x = add_linear(s, "pooler.linear", x, values[HIDDEN].i);
        x = add_simple(s, "tanh", "pooler.tanh", x);
    }
    if (values[HEAD].i == HEAD_NONE) {
        add_simple(s, "mean", "loss", x);
        return;
    }
    x = add_linear(s, "head", x, padded_vocab(values));
    if (!s->failed) {
        ms_layer *head = &s->build.model->layers[x];
        ms_build_field(head, "bias")->b = false;
        if (values[TIED].b)
            ms_build_field(head, "tied")->s = "embeddings.tokens";
    }
    bool whole = !ms_headloss_takes_head(values[LOSS].i);
    if (is_llama(values) && whole) /* output(h).float() */
        x = add_simple(s, "cast", "logits", x);
    ms_layer *loss = add(s, "cross_entropy", "loss", x);
    if (loss == NULL)
        return;
    ms_build_field(loss, "upcast")->b = true;
    ms_build_field(loss, "kernel")->i = values[LOSS].i;
}

enum { NORM_TYPE_RMS = 1, ACTIVATION_SWIGLU = 4 };

static ms_err check_code(const ms_value *values, ms_fault *fault)
{
    bool fits = values[NORM_TYPE].i == NORM_TYPE_RMS && is_rotary(values) &&
                values[ACTIVATION].i == ACTIVATION_SWIGLU;
    if (!is_llama(values) || fits)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, NULL,
                   "it needs \"norm_type\" rms_norm, \"positions_type\" "
                   "rotary and \"activation\" swiglu",
                   "\"code\" llama is the code of another model");
}

/* Families know no file: the reader says where. */
static ms_err check(const ms_value *values, ms_fault *fault)
{
    int64_t kv_heads = values[KV_HEADS].i;
    if (kv_heads > 0 && values[HEADS].i % kv_heads != 0)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "each head of keys serves heads / kv_heads queries",
                       "\"heads\" (%" PRId64 ") is no multiple of "
                       "\"kv_heads\" (%" PRId64 ")",
                       values[HEADS].i, kv_heads);
    if (values[HEAD_DIM].i == 0 && values[HIDDEN].i % values[HEADS].i != 0)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "each head gets hidden / heads channels",
                       "\"hidden\" (%" PRId64 ") is no multiple of \"heads\" "
                       "(%" PRId64 ")",
                       values[HIDDEN].i, values[HEADS].i);
    if (values[LOSS].i > 0 && values[HEAD].i == HEAD_NONE)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "set \"head\" to \"lm\", or leave \"loss\" out",
                       "\"loss\" chooses a cross entropy, but without a head "
                       "there is none");
    MS_TRY(check_code(values, fault));
    if (values[POOLER].b && values[HEAD].i == HEAD_LM)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "set \"pooler\" to false or \"head\" to \"none\"",
                       "a pooler keeps one token, a language-model head "
                       "needs all");
    return MS_OK;
}

static ms_err build(const ms_value *values, bool causal, ms_arena *arena,
                    ms_model *model, ms_fault *fault)
{
    stack s = {.build = {.model = model, .arena = arena},
               .values = values,
               .block = MS_NONE,
               .causal = causal};
    MS_TRY(check(values, fault));
    model->tokens = true;
    model->sequence_input = true;
    if (is_rotary(values)) /* no table of positions says it */
        model->max_sequence = (uint64_t)values[POSITIONS].i;
    add_end(&s, add_blocks(&s, add_embeddings(&s)));
    return s.failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err build_decoder(const ms_value *values, ms_arena *arena,
                            ms_model *model, ms_fault *fault)
{
    return build(values, true, arena, model, fault);
}

static ms_err build_encoder(const ms_value *values, ms_arena *arena,
                            ms_model *model, ms_fault *fault)
{
    return build(values, false, arena, model, fault);
}

/* ---- states only --------------------------------------------------------- */

static ms_err build_parameters(const ms_value *values, ms_arena *arena,
                               ms_model *model, ms_fault *fault)
{
    ms_build builder = {.model = model, .arena = arena};
    uint32_t kind = ms_layer_find("parameters");
    assert(kind != MS_NONE);
    ms_layer *layer = ms_build_layer(&builder, "parameters", kind);
    if (layer == NULL)
        return ms_fail_nomem(fault);
    ms_build_field(layer, "count")->i = values[0].i;
    return MS_OK;
}

const ms_family ms_families[] = {
    {.name = "decoder",
     .summary = "transformer with causal attention (GPT, LLaMA)",
     .n_fields = N_FIELDS(decoder_fields),
     .fields = decoder_fields,
     .build = build_decoder},
    {.name = "encoder",
     .summary = "transformer with full attention (BERT)",
     .n_fields = N_FIELDS(encoder_fields),
     .fields = encoder_fields,
     .build = build_encoder},
    {.name = "parameters",
     .summary = "states only: parameters, gradients, optimizer state",
     .n_fields = N_FIELDS(parameters_fields),
     .fields = parameters_fields,
     .flat = true,
     .build = build_parameters},
};
const uint32_t ms_families_n = N_FIELDS(ms_families);
