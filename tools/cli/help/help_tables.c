/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help that is made from the tables of policies, layers, families, settings,
 * models and devices. */

#include "graphs/device.h"
#include "graphs/field.h"
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/cli/help/help.h"
#include "tools/terminal/narrow.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INDENT 28u
#define MODEL_INDENT 19
#define VALUES_INDENT 6u

/* Adds "  name=VALUES", then the words beside it. */
static void put_row(const char *name, const char *values, const ms_text *words,
                    uint32_t indent, ms_text *text)
{
    const char *label = ms_arena_format(text->arena, "  %s%s%s", name,
                                        *values != '\0' ? "=" : "", values);
    if (label == NULL || words->failed)
        text->failed = true;
    else
        ms_screen_fill(text, indent, label, words->bytes);
}

/* "a|b|c", broken into lines where it is long. */
static const char *in_lines(const char *values, size_t column, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    size_t most = ms_screen_columns(STDOUT_FILENO) - 1u;
    if (column + strlen(values) < most)
        return values;
    for (;;) {
        size_t n = strcspn(values, "|");
        n += values[n] == '|';
        if (column + n > most) {
            ms_text_add(&text, "\n%*s", (int)VALUES_INDENT, "");
            column = VALUES_INDENT;
        }
        ms_text_put(&text, values, n);
        column += n;
        values += n;
        if (*values == '\0')
            return text.failed ? NULL : text.bytes;
    }
}

/* ---- policies ------------------------------------------------------------ */

/* Adds the default of a parameter, where it has one and its help does not say
 * it. */
static void put_default(const ms_param *param, ms_text *words)
{
    bool flag = param->low == 0 && param->high == 1;
    if (param->choice || strstr(param->help, "default") != NULL)
        return;
    if (param->type == MS_PARAM_INT && (flag || param->fallback > 0))
        ms_text_add(words, "; default %lld", (long long)param->fallback);
    if (param->type == MS_PARAM_WORD)
        ms_text_add(words, "; default %.*s", (int)strcspn(param->words, "|"),
                    param->words);
}

static const char *value_words(const ms_param *param)
{
    switch (param->type) {
    case MS_PARAM_WORD:
    case MS_PARAM_WORDS:
        return param->words;
    case MS_PARAM_NAMES:
        return "NAME/NAME";
    case MS_PARAM_NUMBERS:
        return "NUMBER";
    case MS_PARAM_INTS:
        return "N/N";
    case MS_PARAM_SIZE:
        return "SIZE";
    case MS_PARAM_FLAG:
        return "";
    default:
        return param->low == 0 && param->high == 1 ? "0|1" : "N";
    }
}

const char *ms_help_tables_param(const ms_param *param, ms_text *words)
{
    ms_text_add(words, "%s", param->help);
    put_default(param, words);
    if (param->bare)
        ms_text_add(words, " (\"%s=\" may be left out)", param->name);
    if (param->with != NULL)
        ms_text_add(words, " (only with %s)", param->with);
    return value_words(param);
}

static void put_param(const ms_param *param, ms_text *text)
{
    ms_text words = {.arena = text->arena};
    const char *values = ms_help_tables_param(param, &words);
    values = in_lines(values, strlen(param->name) + 3, text->arena);
    text->failed |= values == NULL;
    put_row(param->name, values != NULL ? values : "", &words, INDENT, text);
}

static void put_policy(const ms_policy *policy, ms_text *text)
{
    ms_text_add(text, "%s: %s\n", policy->name, policy->summary);
    for (uint32_t i = 0; i < policy->n_params; i++)
        put_param(&policy->params[i], text);
    if (policy->example != NULL)
        ms_text_add(text, "  example: --policy %s\n", policy->example);
}

#define HOST_INDENT 2u
static const char host_words[] =
    "save_on_cpu, te and torchtune take blocks of PyTorch's pinned allocator, "
    "powers of two that are kept for reuse; megatron such blocks by their "
    "bytes; with pin=0 it is pageable; all other swaps, and offload as in the "
    "papers, have pinned memory of their own, of just the bytes.  offload "
    "beside fsdp (FSDP2): a block for each weight, gradients as they come, "
    "moments pageable.  DeepSpeed's stages 1 and 2: a block for all gradients, "
    "one for all masters; its stage 3: one for all weights, one for 16-bit "
    "gradients, one for the fp32 gradients of each sub-group, those of its "
    "swappers for the disk, the rest pageable.  Megatron's: a block for each "
    "master and each gradient.";

void ms_help_tables_policies(ms_text *text)
{
    ms_textlines_prose(
        "A policy is NAME[:ARGUMENT,...], an argument a word or "
        "KEY=VALUE; lists inside a\nvalue join with /.  Policies "
        "join with + or by repeating --policy.\n"
        "--plugin FILE adds one of your own.\n\n",
        text);
    ms_screen_fill(text, HOST_INDENT, "Host memory:", host_words);
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        ms_text_add(text, "\n");
        put_policy(ms_registry_row(i), text);
    }
}

/* ---- fields of layers, families and training ----------------------------- */

static void values_of(const ms_field *field, char *values, size_t size)
{
    switch (field->type) {
    case MS_INT:
        snprintf(values, size, "N");
        break;
    case MS_FLOAT:
        snprintf(values, size, "X");
        break;
    case MS_BOOL:
        snprintf(values, size, "true|false");
        break;
    case MS_WORD:
        snprintf(values, size, "%s", field->words);
        break;
    case MS_NAME:
        snprintf(values, size, "LAYER");
        break;
    case MS_INTS:
        snprintf(values, size, "[N, ...]");
        break;
    case MS_TEXT:
        snprintf(values, size, "TEXT");
        break;
    }
}

static void put_word_at(const char *words, int64_t index, ms_text *text)
{
    for (; index > 0 && strchr(words, '|') != NULL; index--)
        words = strchr(words, '|') + 1;
    ms_text_put(text, words, strcspn(words, "|"));
}

static void put_fallback(const ms_field *field, ms_text *text)
{
    if (field->required)
        ms_text_add(text, ", required");
    if (field->required || strstr(field->help, "; default") != NULL)
        return;
    switch (field->type) {
    case MS_INT:
        ms_text_add(text, ", default %lld", (long long)field->fallback.i);
        break;
    case MS_FLOAT:
        ms_text_add(text, ", default %g", field->fallback.f);
        break;
    case MS_BOOL:
        ms_text_add(text, ", default %s", field->fallback.b ? "true" : "false");
        break;
    case MS_WORD:
        ms_text_add(text, ", default ");
        put_word_at(field->words, field->fallback.i, text);
        break;
    case MS_NAME:
    case MS_INTS:
    case MS_TEXT:
        ms_text_add(text, ", optional");
        break;
    }
}

static void put_fields(const ms_field *fields, uint32_t n, ms_text *text)
{
    for (uint32_t i = 0; i < n; i++) {
        char values[512];
        ms_text words = {.arena = text->arena};
        values_of(&fields[i], values, sizeof values);
        ms_text_add(&words, "%s", fields[i].help);
        put_fallback(&fields[i], &words);
        const char *name = fields[i].name;
        if (fields[i].group != NULL)
            name = ms_arena_format(text->arena, "%s.%s", fields[i].group, name);
        text->failed |= name == NULL;
        name = name != NULL ? name : "";
        const char *lines = in_lines(values, strlen(name) + 3, text->arena);
        text->failed |= lines == NULL;
        put_row(name, lines != NULL ? lines : "", &words, INDENT, text);
    }
}

static void put_layer(const ms_layer_kind *kind, ms_text *text)
{
    ms_text_add(text, "%s: %s", kind->type, kind->summary);
    if (kind->max_inputs == MS_ANY_INPUTS)
        ms_text_add(text, " (%u or more inputs)", kind->min_inputs);
    else if (kind->min_inputs < kind->max_inputs)
        ms_text_add(text, " (%u to %u inputs)", kind->min_inputs,
                    kind->max_inputs);
    else if (kind->min_inputs > 1)
        ms_text_add(text, " (%u inputs)", kind->min_inputs);
    ms_text_add(text, "\n");
    put_fields(kind->fields, kind->n_fields, text);
}

void ms_help_tables_layers(ms_text *text)
{
    ms_textlines_prose("Layer types of a model file.  Every layer may have a "
                       "\"name\" and \"inputs\".\n",
                       text);
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++) {
        ms_text_add(text, "\n");
        put_layer(&ms_layer_kinds[i], text);
    }
}

static void put_family(const ms_family *family, ms_text *text)
{
    ms_text_add(text, "%s: %s\n", family->name, family->summary);
    ms_text_add(text, family->flat ? "  keys beside \"family\":\n"
                                   : "  keys of \"config\":\n");
    put_fields(family->fields, family->n_fields, text);
}

/* It has no page. */
static void put_chain(ms_text *text)
{
    ms_textlines_prose(MS_CHAINFILE_FAMILY ": stages that were measured (an "
                                           "example: memsim help files)\n"
                                           "  keys beside \"family\":\n",
                       text);
    put_fields(ms_chainfile_fields, MS_CHAINFILE_FIELDS, text);
    ms_textlines_prose("  stages=[...]              in their order, the loss "
                       "the last; each has the keys\n"
                       "                            of a layer \"stage\" "
                       "(memsim help stage)\n",
                       text);
}

static void put_dag(ms_text *text)
{
    ms_textlines_prose(MS_DAGFILE_FAMILY
                       ": nodes that were measured, gradients "
                       "among them (an example: memsim help "
                       "files)\n"
                       "  keys beside \"family\":\n"
                       "  nodes=[...]               in any "
                       "order; keys of each:\n"
                       "    id=NAME                 or a "
                       "whole number\n",
                       text);
    for (uint32_t i = 0; i < MS_DAGFILE_FIELDS; i++)
        ms_text_add(text, "    %-23s %s\n", ms_dagfile_fields[i].name,
                    ms_dagfile_fields[i].help);
    ms_textlines_prose("    deps=[ID, ...]          the nodes that it reads\n",
                       text);
}

void ms_help_tables_families(ms_text *text)
{
    uint32_t n;
    const ms_family *families = ms_familypage_all(text->arena, &n);
    text->failed |= families == NULL;
    ms_textlines_prose("Families of a model file.  --set model.KEY=VALUE "
                       "changes a key for one run.\n",
                       text);
    for (uint32_t i = 0; i < n; i++) {
        ms_text_add(text, "\n");
        put_family(&families[i], text);
    }
    ms_text_add(text, "\n");
    put_chain(text);
    ms_text_add(text, "\n");
    put_dag(text);
}

void ms_help_tables_training(ms_text *text)
{
    ms_textlines_prose("Training settings: --set training.KEY=VALUE "
                       "(\"training.\" may be left out).\n\n",
                       text);
    put_fields(ms_training_fields, ms_training_n_fields, text);
}

/* ---- frameworks ---------------------------------------------------------- */

static const ms_field *training_field(const char *name)
{
    uint32_t row = 0;
    while (strcmp(ms_training_fields[row].name, name) != 0)
        row++;
    return &ms_training_fields[row];
}

static void put_difference(const ms_framework_row *row, ms_text *text)
{
    ms_text_add(text, "\n%s\n", row->what);
    for (uint32_t f = 0; f < MS_N_FRAMEWORKS;) {
        ms_text label = {.arena = text->arena}, words = {.arena = text->arena};
        ms_text_add(&words, "%s", row->rule[f]);
        put_word_at(training_field("framework")->words, f, &label);
        while (++f < MS_N_FRAMEWORKS && row->rule[f] == NULL) {
            ms_text_add(&label, ", ");
            put_word_at(training_field("framework")->words, f, &label);
        }
        text->failed |= label.failed;
        put_row(label.failed ? "" : label.bytes, "", &words, INDENT, text);
    }
    ms_text source = {.arena = text->arena};
    ms_text_add(&source, "%s", row->source);
    put_row("from", "", &source, INDENT, text);
}

void ms_help_tables_frameworks(ms_text *text)
{
    ms_textlines_prose(
        "What --framework changes; everything else is the same in "
        "all.  torch-2 is the\nnewest, torch-2.0 stands for 2.0 "
        "to 2.3.\n",
        text);
    for (uint32_t i = 0; i < ms_frameworks_n; i++)
        put_difference(&ms_frameworks_rows[i], text);
}

/* ---- precisions ---------------------------------------------------------- */

void ms_help_tables_precisions(ms_text *text)
{
    const ms_field *field = training_field("precision");
    ms_textlines_prose(
        "Bytes per parameter with Adam (--precision NAME), of linear "
        "layers but the head;\nbelow it the others', where they "
        "differ.\n\n",
        text);
    size_t from = text->length;
    ms_statebytes_describe(text);
    ms_narrow_table(text, from);
    ms_text_add(text, "\n");
    for (uint32_t i = 0; i <= MS_MSAMP_O3; i++) {
        ms_text label = {.arena = text->arena}, words = {.arena = text->arena};
        put_word_at(field->words, i, &label);
        ms_text_add(&words, "%s", ms_precisions_help(i));
        text->failed |= label.failed;
        put_row(label.failed ? "" : label.bytes, "", &words, INDENT, text);
    }
    ms_textlines_prose(
        "\nIn fp8 (fp8, fp8-primary, mxfp8, msamp-*) linear layers "
        "keep their inputs for\nbackward in 1 byte; norms, "
        "attention, embeddings and the head stay in 16 bits.\n"
        "Each layer quantizes what it reads: three that read one "
        "tensor keep three\ncopies, mxfp8-torchao the tensor "
        "itself, once.  Scales of mxfp8 add 1/32 byte\nan "
        "element.\n--set fp8.recipe and fp8.weights: memsim help "
        "training.\n",
        text);
}

/* ---- models and devices -------------------------------------------------- */

void ms_help_tables_models(ms_text *text)
{
    ms_textlines_prose("Built-in models, with or without \".json\".  A path "
                       "with a slash is always a file.\nmemsim inspect NAME "
                       "--dump model prints one to edit.\n",
                       text);
    for (uint32_t i = 0; i < ms_builtin_n_models; i++) {
        const char *group = ms_builtin_models[i].group;
        ms_text words = {.arena = text->arena};
        if (i == 0 || strcmp(group, ms_builtin_models[i - 1].group) != 0)
            ms_text_add(text, "\n%s\n", group);
        ms_text_add(&words, "%s", ms_builtin_models[i].summary);
        put_row(ms_builtin_models[i].name, "", &words, MODEL_INDENT, text);
    }
}

#define DEVICE_ROW "  %-15s %-6s %6s %4s %6s %4s %6s %4s %5s %4s %9s\n"

static void put_device(const ms_device *device, ms_text *text)
{
    char cell[9][32];
    const double rates[] = {(double)device->memory_bytes / (1 << 30),
                            device->hbm_bytes_per_s / 1e9,
                            device->half_flops / 1e12,
                            device->gpus_per_node,
                            device->nvlink_bytes_per_s / 1e9,
                            device->h2d_bytes_per_s / 1e9,
                            device->network_bytes_per_s / 1e9,
                            device->dram_bytes_per_s / 1e9};
    static const int digits[] = {2, 0, 1, 0, 0, 0, 2, 0};
    for (uint32_t i = 0; i < 8; i++)
        snprintf(cell[i], sizeof cell[i], "%.*f", digits[i], rates[i]);
    snprintf(cell[8], sizeof cell[8], "%.3g/%.3g",
             device->nvme_read_bytes_per_s / 1e9,
             device->nvme_write_bytes_per_s / 1e9);
    ms_text_add(text, DEVICE_ROW, device->name, device->alias, cell[0], cell[1],
                cell[2], cell[3], rates[4] > 0 ? cell[4] : "-", cell[5],
                cell[6], cell[7], cell[8]);
}

#define NODE_INDENT 32u

/* A size in GiB, or "-" where it is not known. */
static void put_gib(uint64_t bytes, char *cell, size_t size)
{
    snprintf(cell, size, "-");
    if (bytes > 0)
        snprintf(cell, size, "%llu", (unsigned long long)(bytes >> 30));
}

static void put_node(const ms_device *device, ms_text *text)
{
    char host[24], disk[24], label[80];
    put_gib(device->host_memory_bytes, host, sizeof host);
    put_gib(device->nvme_bytes, disk, sizeof disk);
    snprintf(label, sizeof label, "  %-15s %5s %6s", device->name, host, disk);
    ms_screen_fill(text, NODE_INDENT, label, device->host_memory_source);
}

static void put_known(void (*put)(const ms_device *, ms_text *), uint32_t row,
                      ms_text *text)
{
    const ms_device *device = ms_devicerows_at(row);
    if (device != NULL)
        put(device, text);
    else
        text->failed = true;
}

void ms_help_tables_devices(ms_text *text)
{
    size_t from = text->length;
    ms_text_add(text, DEVICE_ROW, "name", "alias", "GiB", "HBM", "TFLOP",
                "node", "NVLink", "PCIe", "net", "DRAM", "NVMe");
    for (uint32_t i = 0; i < ms_devices_n; i++)
        put_known(put_device, i, text);
    ms_narrow_table(text, from);
    ms_textlines_prose(
        "\nGiB is what the driver shows to PyTorch (--memory SIZE sets "
        "another), TFLOP\n16-bit products per second, dense; node is how many "
        "GPUs it has.  Rates are in\nGB/s, per GPU and direction: HBM, NVLink "
        "(or xGMI), PCIe (or C2C; copies to the\ndevice), network; DRAM and "
        "NVMe (read/write) are of a node.\n\n"
        "What the ranks of a node share, in GiB: host memory (--host-memory "
        "SIZE sets\nanother), disk (--nvme); -: not known, nothing exceeds "
        "it:\n\n",
        text);
    for (uint32_t i = 0; i < ms_devices_n; i++)
        put_known(put_node, i, text);
    ms_textlines_prose(
        "\nAnother machine: --device FILE.json, for example\n\n"
        "  {\"like\": \"h100\", \"gpus_per_node\": 4, \"network_gbps\": 25}\n\n"
        "Its keys (those of \"like\" where not given; without it, the "
        "defaults):\n\n",
        text);
    put_fields(ms_devicefile_fields, ms_devicefile_n_fields, text);
    put_fields(ms_devicefile_node_fields, ms_devicefile_n_node_fields, text);
    ms_textlines_prose(
        "\n\"name\" and \"source\" say what it is; \"KEY_source\" as in "
        "graphs/devices/ where a\nnumber is from.  \"allreduce_curves\" is "
        "measured bus bandwidth by size, as\nnccl-tests prints it:\n\n"
        "  [{\"ranks\": 8, \"kib\": [1024, 65536], \"gbps\": [40, 350]}]\n\n"
        "It decides for just so many GPUs; else NCCL's own model does.  "
        "\"collective_curves\"\nhas those of other collectives, each with "
        "\"collective\": all-gather,\nreduce-scatter, broadcast, all-to-all or "
        "send.  "
        "\"memory_curves\" is\nthe rate of bytes read and written, by kind of "
        "kernel (pointwise, norm, softmax,\nreduction, lookup, optimizer, "
        "copy):\n\n"
        "  [{\"kind\": \"norm\", \"kib\": [512, 65536], \"gbps\": [900, "
        "2400]}]\n\n"
        "memsim calibrate writes such a file from a profiler's trace.\n",
        text);
}

/* ---- one of them --------------------------------------------------------- */

bool ms_help_tables_one(const char *name, ms_text *text)
{
    for (uint32_t i = 0; i < ms_registry_n(); i++)
        if (strcmp(ms_registry_row(i)->name, name) == 0) {
            put_policy(ms_registry_row(i), text);
            return true;
        }
    uint32_t n;
    const ms_family *families = ms_familypage_all(text->arena, &n);
    text->failed |= families == NULL;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(families[i].name, name) == 0) {
            put_family(&families[i], text);
            return true;
        }
    if (strcmp(name, MS_CHAINFILE_FAMILY) == 0) {
        put_chain(text);
        return true;
    }
    if (strcmp(name, MS_DAGFILE_FAMILY) == 0) {
        put_dag(text);
        return true;
    }
    uint32_t kind = ms_layer_find(name);
    if (kind != MS_NONE)
        put_layer(&ms_layer_kinds[kind], text);
    return kind != MS_NONE;
}

uint32_t ms_help_tables_names(const char **names, uint32_t room)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_registry_n() && n < room; i++)
        names[n++] = ms_registry_row(i)->name;
    if (n < room)
        names[n++] = MS_CHAINFILE_FAMILY;
    if (n < room)
        names[n++] = MS_DAGFILE_FAMILY;
    for (uint32_t i = 0; ms_familypage_name(i) != NULL && n < room; i++)
        names[n++] = ms_familypage_name(i);
    for (uint32_t i = 0; i < ms_layer_n_kinds && n < room; i++)
        names[n++] = ms_layer_kinds[i].type;
    return n;
}

void ms_help_tables_ops(ms_text *text)
{
    ms_textlines_prose(
        "Ops of an op graph (\"aten.\" left out): the autograd node, what it "
        "saves, the\nshape of the first output, and what backward allocates, "
        "in order.  An op in place\nthat is not listed (mul_) is the one "
        "without the _; it saves a clone of what it\noverwrites.\n\n"
        "Backward, for each input by number: kernels and what they make, like "
        "the incoming\ngradient (g), input N of the node (iN) or saved tensor "
        "N (sN), of 1 byte (b) or\nint64 (l) each.  ! is the gradient of the "
        "input, ~ scratch of the kernel, the rest\ntemporary; pass! hands the "
        "incoming gradient on.\n\n"
        "Under autocast: lower, fp32 inputs are cast down; fp32, 16-bit inputs "
        "are cast up;\nfp32 out, 16 bits are read and fp32 is written; else "
        "the widest dtype of the inputs.\n\n",
        text);
    ms_atentable_describe(text);
    ms_textlines_prose("\nAn op that is not listed is refused.  "
                       "--set graph.unknown_op=conservative takes\nall its "
                       "inputs and outputs as saved; a row of the tables in "
                       "graphs/aten says\nwhat it really saves.\n",
                       text);
}
