/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The op tables: every backward formula can be run, and a graph whose sizes
 * contradict the shape rule of an op is refused. */
#include "graphs/aten/aten.h"
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/ops/ops.h"
#include "graphs/training.h"
#include "sim/base/files.h"
#include "sim/graph.h"
#include "sim/shape.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096

static ms_arena arena;

static void set_up(void)
{
    arena = (ms_arena){0};
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

/* ---- the tables ---------------------------------------------------------- */

static void check_rows(const ms_aten_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const ms_aten_row *row = &rows[i];
        ck_assert_msg(strlen(row->saves) % 2 == 0, "%s", row->op);
        if (row->rule != NULL && *row->makes != '\0')
            ck_assert_msg(ms_formula_is_sound(row->makes), "%s: %s", row->op,
                          row->makes);
        ck_assert_msg(row->rule != NULL || *row->makes == '\0', "%s", row->op);
    }
}

START_TEST(formulas_are_sound)
{
    check_rows(ms_atenpoint_rows, ms_atenpoint_n_rows);
    check_rows(ms_atenview_rows, ms_atenview_n_rows);
    check_rows(ms_atenmath_rows, ms_atenmath_n_rows);
    ck_assert(!ms_formula_is_sound(""));
    ck_assert(!ms_formula_is_sound("mul.g!"));
    ck_assert(!ms_formula_is_sound("0: mul.g"));
    ck_assert(!ms_formula_is_sound("0: mul.x!"));
    ck_assert(!ms_formula_is_sound("0: mul!"));
    ck_assert(!ms_formula_is_sound("0: mul.g! mul.g!"));
}
END_TEST

START_TEST(rows_are_found)
{
    ms_index index;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_atentable_open(&index, &arena, &fault), MS_OK);
    const struct {
        const char *op, *overload, *found;
    } rows[] = {
        {"mul", "Tensor", "mul"},
        {"mul_", "Tensor", "mul"},
        {"relu_", "default", "relu_"},
        {"max", "dim", "max"},
        {"max", "default", "max"},
        {"native_dropout", "masked", "native_dropout"},
        {"scatter_", "src", "scatter"},
        {"scatter", "reduce", NULL},
        {"nothing", "default", NULL},
        {"nothing_", "default", NULL},
        {"_", "default", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_aten_row *row =
            ms_atentable_find(&index, rows[i].op, rows[i].overload);
        if (rows[i].found == NULL)
            ck_assert_ptr_null(row);
        else
            ck_assert_str_eq(row->op, rows[i].found);
    }
    ck_assert_ptr_ne(ms_atentable_find(&index, "max", "dim"),
                     ms_atentable_find(&index, "max", "default"));
}
END_TEST

/* ---- shapes -------------------------------------------------------------- */

/* An op (or several that have one shape), the sizes of its inputs and outputs,
 * its arguments, and what is said of it; NULL: nothing is wrong. */
static const struct {
    const char *ops, *in, *out, *args, *said;
} shapes[] = {
    {"isnan isinf isfinite logical_not signbit log10 tan asin acos erfc alias "
     "ones_like rand_like randn_like uniform_ normal_ random_ exponential_ "
     "argsort",
     "8,4", "8,5", "'T'", "make [8, 4]"},
    {"full_like randint_like clamp_max", "8,4", "8,5", "'T',1", "make [8, 4]"},
    {"gt le lt logical_and logical_or logical_xor bitwise_and bitwise_or "
     "bitwise_xor floor_divide fmin _prelu_kernel isin bucketize",
     "8,4;4", "8,5", "'T','T'", "make [8, 4]"},
    {"searchsorted", "9;8,4", "8,5", "'T','T'", "make [8, 4]"},
    {"argmax argmin any all count_nonzero", "8,4", "4", "'T',1", "make [8]"},
    {"rand randn", "", "8,5", "[8,4]", "make [8, 4]"},
    {"new_ones new_full", "2,16", "8,5", "'T',[8,4]", "make [8, 4]"},
    {"reshape", "2,16", "8,5", "'T',[8,4]", "has not the elements"},
    {"native_dropout", "8,4", "8,5;8,5", "'T',0.5,true", "make [8, 4]"},
    {"t_", "8,4", "8,4", "'T'", "make [4, 8]"},
    {"squeeze_", "8,1", "8,2", "'T',1", "has not the elements"},
    {"reflection_pad3d", "2,3,4,4,4", "2,3,4,4,4", "'T',[1,1,1,1,1,1]",
     "make [2, 3, 6, 6, 6]"},
    {"replication_pad1d", "2,3,4", "2,3,4", "'T',[1,1]", "make [2, 3, 6]"},
    {"_upsample_nearest_exact1d", "2,3,4", "2,4,8", "'T',null,[2.0]",
     "make [2, 3, 8]"},
    {"_upsample_nearest_exact3d upsample_trilinear3d", "2,3,4,4,4", "2,4,8,8,8",
     "'T',null,[2.0,2.0,2.0]", "make [2, 3, 8, 8, 8]"},
    {"cummin", "8,4", "8,5;8,5", "'T',1", "make [8, 4]"},
    {"cudnn_batch_norm", "2,3,4,4;3;3;3;3", "2,3,4,5;3;3;8",
     "'T','T','T','T','T',true,0.1,0.00001", "make [2, 3, 4, 4]"},
    {"_fused_rms_norm", "8,4;4", "8,5;8,1", "'T',[4],'T'", "make [8, 4]"},
    {"_scaled_dot_product_cudnn_attention "
     "_scaled_dot_product_flash_attention_for_cpu",
     "2,4,8,16;2,4,9,16;2,4,9,16", "2,4,8,8;2,4,8", "'T','T','T'",
     "make [2, 4, 8, 16]"},
    {"soft_margin_loss", "8,4;8,4", "5", "'T','T',1", "make"},
    {"multilabel_margin_loss_forward", "8,4;8,4", "5;8,4", "'T','T',1", "make"},
    {"relu", "8,4", "8,4", "'T'", NULL},
    {"relu", "8,4", "8,5", "'T'",
     "its output is [8, 5], but its inputs and arguments make [8, 4]"},
    {"add", "8,4;4", "8,4", "'T','T'", NULL},
    {"add", "8,1;1,4", "8,4", "'T','T'", NULL},
    {"add", "8,4;4", "8,1", "'T','T'", "make [8, 4]"},
    {"add", "8,4;3", "8,4", "'T','T'", "its inputs do not fit together"},
    {"add_", "8,4;4", "8,5", "'T','T'", "make [8, 4]"},
    {"unsqueeze_", "8,4", "8,1,4", "'T',1", NULL},
    {"mm", "8,4;4,3", "8,3", "'T','T'", NULL},
    {"mm", "8,4;4,3", "3,8", "'T','T'", "make [8, 3]"},
    {"mm", "8,4;5,3", "8,3", "'T','T'", "do not fit"},
    {"addmm", "3;8,4;4,3", "8,3", "'T','T','T'", NULL},
    {"addmm", "3;8,4;4,3", "8,4", "'T','T','T'", "make [8, 3]"},
    {"bmm", "2,8,4;2,4,3", "2,8,3", "'T','T'", NULL},
    {"bmm", "2,8,4;3,4,3", "2,8,3", "'T','T'", "do not fit"},
    {"mv", "8,4;4", "8", "'T','T'", NULL},
    {"mv", "8,4;4", "4", "'T','T'", "make [8]"},
    {"dot", "4;4", "", "'T','T'", NULL},
    {"dot", "4;4", "4", "'T','T'", "make []"},
    {"_scaled_dot_product_efficient_attention", "2,4,8,16;2,4,9,16;2,4,9,8",
     "2,4,8,8;2,4,8", "'T','T','T'", NULL},
    {"_scaled_dot_product_efficient_attention", "2,4,8,16;2,4,9,16;2,4,9,8",
     "2,4,8,16;2,4,8", "'T','T','T'", "make [2, 4, 8, 8]"},
    {"_scaled_dot_product_flash_attention", "2,4,8,16;2,4,9,15;2,4,9,16",
     "2,4,8,16;2,4,8", "'T','T','T'", "do not fit"},
    {"convolution", "2,3,8,8;5,3,3,3", "2,5,4,4",
     "'T','T',null,[2,2],[1,1],[1,1],false,[0,0],1", NULL},
    {"convolution", "2,3,8,8;5,3,3,3", "2,5,8,8",
     "'T','T',null,[2,2],[1,1],[1,1],false,[0,0],1", "make [2, 5, 4, 4]"},
    {"convolution", "2,4,8,8;6,2,3,3", "2,6,4,4",
     "'T','T',null,[1,1],[0,0],[2,2],false,[0,0],2", NULL},
    {"convolution", "2,4,8,8;6,2,3,3", "2,6,6,6",
     "'T','T',null,[1,1],[0,0],[1,1],false,[0,0],1", "do not fit"},
    {"convolution", "2,4,8,8;4,3,2,2", "2,3,16,16",
     "'T','T',null,[2,2],[0,0],[1,1],true,[0,0],1", NULL},
    {"convolution", "2,4,8;4,3,3", "2,3,18",
     "'T','T',null,[2],[0],[1],true,[1],1", NULL},
    {"max_pool2d_with_indices", "2,3,9,9", "2,3,4,4;2,3,4,4", "'T',[2,2],[2,2]",
     NULL},
    {"max_pool2d_with_indices", "2,3,9,9", "2,3,5,5;2,3,5,5",
     "'T',[2,2],[2,2],[0,0],[1,1],true", NULL},
    {"max_pool2d_with_indices", "2,3,9,9", "2,3,5,5;2,3,5,5", "'T',[2,2],[2,2]",
     "make [2, 3, 4, 4]"},
    {"avg_pool3d", "2,3,4,4,4", "2,3,2,2,2", "'T',2", NULL},
    {"_adaptive_avg_pool2d", "2,3,9,9", "2,3,7,7", "'T',[7,7]", NULL},
    {"_adaptive_avg_pool2d", "2,3,9,9", "2,3,6,7", "'T',[7,7]", "7, 7]"},
    {"upsample_nearest2d", "2,3,4,4", "2,3,8,8", "'T',null,[2.0,2.0]", NULL},
    {"upsample_nearest2d", "2,3,4,4", "2,4,8,8", "'T',null,[2.0,2.0]",
     "make [2, 3, 8, 8]"},
    {"mean", "8,4", "8", "'T',[-1]", NULL},
    {"mean", "8,4", "8,1", "'T',[-1],true", NULL},
    {"mean", "8,4", "4", "'T',[-1]", "make [8]"},
    {"mean", "8,4", "8", "'T',[2]", "no dimension of its input"},
    {"kthvalue", "8,4", "8;8", "'T',2", NULL},
    {"kthvalue", "8,4", "4;4", "'T',2", "make [8]"},
    {"topk", "8,4", "8,2;8,2", "'T',2", NULL},
    {"topk", "8,4", "8,3;8,3", "'T',2", "make [8, 2]"},
    {"mse_loss", "8,4;8,4", "", "'T','T'", NULL},
    {"mse_loss", "8,4;8,4", "8,4", "'T','T',0", NULL},
    {"mse_loss", "8,4;8,4", "8", "'T','T',0", "make [8, 4]"},
    {"cat", "8,4;8,3", "8,7", "['T','T'],1", NULL},
    {"cat", "8,4;8,3", "8,8", "['T','T'],1", "make [8, 7]"},
    {"cat", "8,4;7,3", "8,7", "['T','T'],1", "do not fit"},
    {"cat", "8,4;8,3", "8,7", "['T','T'],2", "no dimension"},
    {"stack", "8,4;8,4", "8,2,4", "['T','T'],1", NULL},
    {"stack", "8,4;8,4", "2,8,4", "['T','T'],1", "make [8, 2, 4]"},
    {"view", "8,4", "4,8", "'T',[4,8]", NULL},
    {"view", "8,4", "4,7", "'T',[4,7]", "not the elements"},
    {"transpose", "8,4", "4,8", "'T',0,1", NULL},
    {"transpose", "8,4", "8,4", "'T',0,1", "make [4, 8]"},
    {"permute", "8,4,2", "2,8,4", "'T',[2,0,1]", NULL},
    {"permute", "8,4,2", "2,8,4", "'T',[2,0,0]", "a dimension twice"},
    {"expand", "8,1", "2,8,4", "'T',[2,-1,4]", NULL},
    {"expand", "8,2", "8,4", "'T',[8,4]", "make [8, 2]"},
    {"slice", "8,4", "8,2", "'T',1,0,2", NULL},
    {"slice", "8,4", "8,2", "'T',1,0,9223372036854775807,2", NULL},
    {"slice", "8,4", "8,3", "'T',1,-2", "make [8, 2]"},
    {"slice", "8,4", "8,3", "'T',1,0,2,0", "step is not positive"},
    {"select", "8,4", "8", "'T',1,0", NULL},
    {"select", "8,4", "4", "'T',1,0", "make [8]"},
    {"split", "8,4", "8,3;8,1", "'T',3,1", NULL},
    {"split", "8,4", "8,2;8,2", "'T',3,1", "make [8, 3]"},
    {"split_with_sizes", "8,4", "8,3;8,1", "'T',[3,1],1", NULL},
    {"split_with_sizes", "8,4", "8,3", "'T',[3,1],1", "as many outputs"},
    {"unbind", "2,4", "4;4", "'T'", NULL},
    {"unbind", "3,4", "4;4", "'T'", "as many outputs"},
    {"embedding", "9,4;2,3", "2,3,4", "'T','T'", NULL},
    {"embedding", "9,4;2,3", "2,4", "'T','T'", "make [2, 3, 4]"},
    {"index_select", "8,4;3", "8,3", "'T',1,'T'", NULL},
    {"index_select", "8,4;3", "3,4", "'T',1,'T'", "make [8, 3]"},
    {"gather", "8,4;8,2", "8,2", "'T',1,'T'", NULL},
    {"gather", "8,4;8,2", "8,4", "'T',1,'T'", "make [8, 2]"},
    {"constant_pad_nd", "8,4", "9,8", "'T',[1,3,0,1]", NULL},
    {"constant_pad_nd", "8,4", "9,7", "'T',[1,3,0,1]", "make [9, 8]"},
    {"repeat", "8,4", "2,8,12", "'T',[2,1,3]", NULL},
    {"repeat", "8,4", "8,12", "'T',[2,1,3]", "make [2, 8, 12]"},
    {"glu", "8,4", "8,2", "'T'", NULL},
    {"glu", "8,4", "8,4", "'T'", "make [8, 2]"},
    {"diag_embed", "8,4", "8,4,4", "'T'", NULL},
    {"diag_embed", "8,4", "8,4", "'T'", "do not fit"},
};

typedef struct writer {
    char text[MOST];
    size_t n;
} writer;

static void put(writer *w, const char *text)
{
    for (; *text != '\0' && w->n + 1 < MOST; text++)
        w->text[w->n++] = *text == '\'' ? '"' : *text;
    w->text[w->n] = '\0';
}

static void put_number(writer *w, const char *before, uint64_t n)
{
    char text[64];
    snprintf(text, sizeof text, "%s%llu", before, (unsigned long long)n);
    put(w, text);
}

/* Sizes such as "8,4", their product and strides as of a dense tensor. */
static uint32_t parse(const char *sizes, uint64_t size[8], uint64_t *elements)
{
    uint32_t n = 0;
    *elements = 1;
    while (*sizes != '\0' && *sizes != ';') {
        char *end;
        size[n] = strtoull(sizes, &end, 10);
        *elements *= size[n++];
        sizes = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* The rows of one tensor, whose storage has the same number. */
static void put_tensor(writer *storages, writer *tensors, uint32_t id,
                       const char *sizes, const char *kind)
{
    uint64_t size[8], elements, stride = 1;
    uint32_t n = parse(sizes, size, &elements);
    put_number(storages, id > 0 ? ",[" : "[", id);
    put_number(storages, ",", 4 * elements);
    put(storages, kind);
    put_number(tensors, id > 0 ? ",[" : "[", id);
    put_number(tensors, ",", id);
    put(tensors, ",[");
    for (uint32_t d = 0; d < n; d++)
        put_number(tensors, d > 0 ? "," : "", size[d]);
    put(tensors, "],'float32',[");
    for (uint32_t d = 0; d < n; d++) {
        stride = elements;
        for (uint32_t e = 0; e <= d; e++)
            stride /= size[e];
        put_number(tensors, d > 0 ? "," : "", stride);
    }
    put(tensors, "],0]");
}

static const char *next_sizes(const char *sizes)
{
    const char *end = strchr(sizes, ';');
    return end != NULL ? end + 1 : NULL;
}

/* The graph of one op of the row and the sum of its first output, the loss. */
static void write_graph(size_t row, const char *op, writer *graph)
{
    writer storages = {0}, tensors = {0}, in = {0}, out = {0};
    uint32_t id = 0, first;
    for (const char *s = shapes[row].in; s != NULL; s = next_sizes(s)) {
        put_number(&in, id > 0 ? "," : "", id);
        put_tensor(&storages, &tensors, id++, s, ",'param','w']");
    }
    first = id;
    for (const char *s = shapes[row].out; s != NULL; s = next_sizes(s)) {
        put_number(&out, id > first ? "," : "", id);
        put_tensor(&storages, &tensors, id++, s, ",'act','']");
    }
    put_tensor(&storages, &tensors, id, "", ",'act','']");
    put(graph, "{'format':'op graph','loss_start':1,'storages':[");
    put(graph, storages.text);
    put(graph, "],'tensors':[");
    put(graph, tensors.text);
    put(graph, "],'nodes':[\n{'op':'aten.");
    put(graph, op);
    put(graph, "','args':[");
    put(graph, shapes[row].args);
    put(graph, "],'in':[");
    put(graph, in.text);
    put(graph, "],'out':[");
    put(graph, out.text);
    put_number(graph, "]},{'op':'aten.sum','args':['T'],'in':[", first);
    put_number(graph, "],'out':[", id);
    put(graph, "]}]}");
}

static ms_err lower(const char *json, ms_fault *fault)
{
    ms_model model;
    ms_training training;
    ms_graph graph;
    ms_training_init(&training);
    MS_TRY(ms_read_model_bytes("op", json, strlen(json), NULL, 0, &arena,
                               &model, fault));
    MS_TRY(ms_resolve_training(&training, &model, fault));
    MS_TRY(ms_dag_order(&model, &arena, fault));
    ms_shape shape = {.micro_batches = 1, .data_ranks = 1};
    return ms_lower(&model, &training, ms_devicerows_at(0), &shape, &arena,
                    &graph, fault);
}

static void check_shape(size_t row, const char *op)
{
    writer graph = {0};
    ms_fault fault = {0};
    const char *said = shapes[row].said;
    write_graph(row, op, &graph);
    ms_err err = lower(graph.text, &fault);
    if (said == NULL) {
        ck_assert_msg(err == MS_OK, "%s %s: %s", op, shapes[row].args,
                      fault.what);
        return;
    }
    ck_assert_msg(err == MS_EINPUT && strstr(fault.what, said), "%s %s: %s", op,
                  shapes[row].args, fault.what);
    ck_assert_msg(strncmp(fault.what, "node 0, op aten.", 16) == 0, "%s",
                  fault.what);
    ck_assert_str_eq(fault.where, "op:2:1"); /* of the node */
}

/* The next word of *words; false: there is none. */
static bool next_word(const char **words, char word[64])
{
    size_t n = strcspn(*words, " ");
    snprintf(word, 64, "%.*s", (int)n, *words);
    *words += n + strspn(*words + n, " ");
    return n > 0;
}

START_TEST(shapes_are_checked)
{
    char op[64];
    for (size_t row = 0; row < sizeof shapes / sizeof *shapes; row++)
        for (const char *ops = shapes[row].ops; next_word(&ops, op);)
            check_shape(row, op);
}
END_TEST

/* ---- no row untried ------------------------------------------------------ */

/* The op graphs whose steps PyTorch ran. */
static const char *const measured[] = {
    "rules.jsonl",
    "nets.jsonl",
    "torch.jsonl",
    "opgraphs.jsonl",
    "graphs/basics.graph.json",
    "graphs/kait.graph.json",
    "graphs/mlp8x1024_b64_drop.graph.json",
    "graphs/mlp8x1024_b64_gelu.graph.json",
    "graphs/resnet18_b2.graph.json",
    "graphs/unet32_b1.graph.json",
};
#define N_MEASURED (sizeof measured / sizeof *measured)

static bool is_measured(const char *op, char *const *texts)
{
    static const char *const forms[] = {
        "\"op\":\"aten.%s\"", "\"op\": \"aten.%s\"", "\"op\":\"aten.%s_\"",
        "\"op\": \"aten.%s_\""};
    char wanted[96];
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        for (size_t i = 0; i < N_MEASURED; i++) {
            snprintf(wanted, sizeof wanted, forms[form], op);
            if (strstr(texts[i], wanted) != NULL)
                return true;
        }
    return false;
}

static bool is_shaped(const char *wanted)
{
    char op[64];
    for (size_t row = 0; row < sizeof shapes / sizeof *shapes; row++)
        for (const char *ops = shapes[row].ops; next_word(&ops, op);)
            if (strcmp(op, wanted) == 0)
                return true;
    return false;
}

static void check_tried(const ms_aten_row *rows, uint32_t n, char *const *texts)
{
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg((rows[i].rule == NULL && rows[i].shape == NULL) ||
                          is_shaped(rows[i].op) ||
                          is_measured(rows[i].op, texts),
                      "%s: no op graph of tests/truth has it, nor the table "
                      "\"shapes\" above",
                      rows[i].op);
}

/* A new row comes with its truth, or with a shape that it refuses. */
START_TEST(every_row_is_tried)
{
    char *texts[N_MEASURED], path[TESTS_PATH], relative[64];
    ms_fault fault = {0};
    size_t length;
    for (size_t i = 0; i < N_MEASURED; i++) {
        snprintf(relative, sizeof relative, "tests/truth/%s", measured[i]);
        tests_source(relative, path);
        ck_assert_int_eq(
            ms_files_read(path, 1 << 26, &arena, &texts[i], &length, &fault),
            MS_OK);
    }
    check_tried(ms_atenpoint_rows, ms_atenpoint_n_rows, texts);
    check_tried(ms_atenview_rows, ms_atenview_n_rows, texts);
    check_tried(ms_atenmath_rows, ms_atenmath_n_rows, texts);
}
END_TEST

Suite *suite_aten(void)
{
    Suite *suite = suite_create("aten");
    TCase *tcase = tcase_create("aten");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, formulas_are_sound);
    tcase_add_test(tcase, rows_are_found);
    tcase_add_test(tcase, shapes_are_checked);
    tcase_add_test(tcase, every_row_is_tried);
    suite_add_tcase(suite, tcase);
    return suite;
}
