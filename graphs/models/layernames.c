/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/layernames.h"
#include "graphs/layertypes.h"
#include "sim/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_CANDIDATES 10000u /* names among which the nearest is searched */

/* A name of another layer, resolved when all layers are there. */
typedef struct ms_layernames_reference {
    uint32_t node; /* the JSON string */
    const char *word;
    uint32_t layer; /* the layer that refers to another */
    uint32_t edge;  /* the row of model->edges that is filled, or MS_NONE: a
                       field is */
    uint32_t field;
    const ms_scope *scope;
} reference;

static ms_err fail_expression(const ms_layernames *names, uint32_t node,
                              const ms_fault *why)
{
    return ms_json_fail(names->json, node, names->fault,
                        *why->hint != '\0' ? why->hint : NULL,
                        "a name cannot be \"%.100s\": %s",
                        names->json->nodes[node].value.s, why->what);
}

/* ---- making names -------------------------------------------------------- */

static ms_err check_name(const ms_layernames *names, uint32_t node)
{
    const char *name = names->json->nodes[node].value.s;
    if (names->json->nodes[node].kind != MS_JSON_STRING || *name == '\0')
        return ms_json_fail(names->json, node, names->fault, NULL,
                            "\"name\" must be a string with at least one "
                            "character");
    if (strlen(name) > MS_MAX_NAME)
        return ms_json_fail(names->json, node, names->fault, NULL,
                            "a name of more than %u bytes", MS_MAX_NAME);
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            return ms_json_fail(names->json, node, names->fault, NULL,
                                "a control character in a name");
    if (strcmp(name, "input") == 0)
        return ms_json_fail(names->json, node, names->fault,
                            "choose another name",
                            "\"input\" is the name of the model's input");
    return MS_OK;
}

/* Writes prefix.name, or name alone in the outermost scope, and returns the
 * length of that, at least MS_LAYERNAMES_FULL where it does not fit. */
static size_t join(const ms_scope *scope, const char *name,
                   char buffer[MS_LAYERNAMES_FULL])
{
    size_t start = scope->length == 0 ? 0 : scope->length + 1;
    size_t length = strlen(name);
    if (start + length >= MS_LAYERNAMES_FULL)
        return MS_LAYERNAMES_FULL;
    memcpy(buffer, scope->prefix, scope->length);
    if (start > 0)
        buffer[scope->length] = '.';
    memcpy(buffer + start, name, length + 1);
    return start + length;
}

bool ms_layernames_is_filled(const ms_layernames *names, uint32_t row)
{
    uint32_t node = ms_json_find(names->json, row, "name");
    return node != MS_NONE && names->json->nodes[node].kind == MS_JSON_STRING &&
           strchr(names->json->nodes[node].value.s, '{') != NULL;
}

/* The word of a node as it stands, or in buffer with {} filled in. */
static ms_err fill(const ms_layernames *names, uint32_t node,
                   const ms_scope *scope, char buffer[MS_LAYERNAMES_FULL],
                   const char **word)
{
    const char *text = names->json->nodes[node].value.s;
    ms_fault why;
    *word = text;
    if (strchr(text, '{') == NULL)
        return MS_OK;
    *word = buffer;
    return ms_numbers_fill(text, scope->variables, buffer, MS_LAYERNAMES_FULL,
                           &why) == MS_OK
               ? MS_OK
               : fail_expression(names, node, &why);
}

ms_err ms_layernames_make(const ms_layernames *names, uint32_t row,
                          const ms_scope *scope, const char *fallback,
                          const char *suffix, const char **name)
{
    char filled[MS_LAYERNAMES_FULL], full[MS_LAYERNAMES_FULL];
    const char *own = fallback;
    uint32_t node = ms_json_find(names->json, row, "name");
    if (node != MS_NONE) {
        MS_TRY(check_name(names, node));
        MS_TRY(fill(names, node, scope, filled, &own));
    }
    size_t length = join(scope, own, full);
    bool follows = suffix != NULL && !ms_layernames_is_filled(names, row);
    if (follows && length < sizeof full)
        length +=
            (size_t)snprintf(full + length, sizeof full - length, "%s", suffix);
    if (length >= sizeof full)
        return ms_json_fail(names->json, row, names->fault, NULL,
                            "a layer name of more than %u bytes with the "
                            "names of its blocks",
                            MS_LAYERNAMES_FULL);
    *name = ms_arena_text(names->arena, full, length);
    return *name == NULL ? ms_fail_nomem(names->fault) : MS_OK;
}

/* ---- labels -------------------------------------------------------------- */

/* Makes the index twice as large. */
static ms_err grow_index(ms_layernames *names)
{
    uint32_t n = names->n_labels;
    if (n > 0 && n < names->index.capacity / 2)
        return MS_OK;
    MS_TRY(ms_index_make(&names->index, n > 0 ? 2 * n : names->expected,
                         names->scratch, names->fault));
    for (uint32_t i = 0; i < n; i++)
        ms_index_add(&names->index, names->labels[i].name, i);
    return MS_OK;
}

/* Two layers may have one name where "when" leaves the first out: its label
 * becomes that of the second. */
ms_err ms_layernames_add(ms_layernames *names, uint32_t row, const char *name,
                         uint32_t input, uint32_t *label)
{
    MS_TRY(grow_index(names));
    names->labels =
        ms_arena_grow(names->scratch, names->labels, &names->labels_capacity,
                      names->n_labels + 1, sizeof *names->labels);
    if (names->labels == NULL)
        return ms_fail_nomem(names->fault);
    uint32_t self = names->n_labels++;
    names->labels[self] = (ms_label){.name = name,
                                     .line = names->json->nodes[row].line,
                                     .input = input,
                                     .output = input,
                                     .first_part = MS_NONE,
                                     .last_part = MS_NONE,
                                     .next_part = MS_NONE};
    uint32_t first = ms_index_add(&names->index, name, self);
    *label = first;
    if (first == self)
        return MS_OK;
    if (names->labels[first].left_out) {
        names->labels[first] = names->labels[--names->n_labels];
        return MS_OK;
    }
    return ms_json_fail(names->json, row, names->fault,
                        "give one of them another \"name\"",
                        "two layers are called \"%s\" (the first in line "
                        "%" PRIu32 ")",
                        name, names->labels[first].line);
}

ms_err ms_layernames_leave_out(ms_layernames *names, uint32_t row,
                               const char *name, uint32_t input)
{
    uint32_t label;
    if (names->n_labels > 0 && ms_index_find(&names->index, name) != MS_NONE)
        return MS_OK;
    MS_TRY(ms_layernames_add(names, row, name, input, &label));
    names->labels[label].left_out = true;
    return MS_OK;
}

ms_err ms_layernames_add_blocks(ms_layernames *names, uint32_t row,
                                const char *name, uint32_t input,
                                uint32_t *label)
{
    *label = names->n_labels > 0 ? ms_index_find(&names->index, name) : MS_NONE;
    if (*label != MS_NONE && names->labels[*label].first_part != MS_NONE)
        return MS_OK;
    return ms_layernames_add(names, row, name, input, label);
}

void ms_layernames_add_part(ms_layernames *names, uint32_t group, uint32_t part)
{
    ms_label *whole = &names->labels[group];
    if (whole->last_part == MS_NONE)
        whole->first_part = part;
    else
        names->labels[whole->last_part].next_part = part;
    whole->last_part = part;
}

/* Finds the label of a word, or MS_NONE. */
static uint32_t find(const ms_layernames *names, const char *word,
                     const ms_scope *scope)
{
    char full[MS_LAYERNAMES_FULL];
    uint32_t found = MS_NONE;
    for (; scope != NULL && found == MS_NONE; scope = scope->outer)
        if (join(scope, word, full) < sizeof full)
            found = ms_index_find(&names->index, full);
    return found;
}

/* ---- faults -------------------------------------------------------------- */

/* Finds the nearest name, as it could be written in this scope. */
static const char *nearest(const ms_layernames *names, const ms_scope *scope,
                           const char *word)
{
    const char **words =
        ms_arena_take(names->scratch, MAX_CANDIDATES, sizeof *words);
    uint32_t n = 0;
    if (words == NULL)
        return NULL;
    words[n++] = "input";
    for (uint32_t i = 0; i < names->n_labels && n < MAX_CANDIDATES; i++) {
        const char *name = names->labels[i].name;
        if (scope->length > 0 &&
            strncmp(name, scope->prefix, scope->length) == 0 &&
            name[scope->length] == '.')
            name += scope->length + 1;
        words[n++] = name;
    }
    return ms_names_nearest(word, words, n);
}

static ms_err fail_reference(const ms_layernames *names, uint32_t node,
                             const ms_scope *scope, const char *word)
{
    char hint[MS_LAYERNAMES_FULL] = "see memsim inspect for all names";
    const char *near = nearest(names, scope, word);
    if (near != NULL)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    return ms_json_fail(names->json, node, names->fault, hint,
                        "there is no layer \"%s\"", word);
}

static ms_err fail_silent(const ms_layernames *names, uint32_t node,
                          const char *word)
{
    return ms_json_fail(names->json, node, names->fault, NULL,
                        "layer \"%s\" has no output", word);
}

/* ---- what words stand for ------------------------------------------------ */

/* Returns the length of the word before the ending, or 0 where it does not end
 * so. */
static size_t length_before(const char *word, const char *ending)
{
    size_t n = strlen(word), m = strlen(ending);
    return n > m && strcmp(word + n - m, ending) == 0 ? n - m : 0;
}

/* Finds the label of the word's first length characters. */
static uint32_t find_before(const ms_layernames *names, const char *word,
                            size_t length, const ms_scope *scope)
{
    char group[MS_LAYERNAMES_FULL];
    snprintf(group, sizeof group, "%.*s", (int)length, word);
    return find(names, group, scope);
}

static ms_err find_word(const ms_layernames *names, uint32_t node,
                        const ms_scope *scope, const char *word,
                        uint32_t *layer)
{
    if (strcmp(word, "input") == 0) {
        *layer = scope->input;
        return MS_OK;
    }
    size_t reads = length_before(word, ".input");
    uint32_t label = reads > 0 ? find_before(names, word, reads, scope)
                               : find(names, word, scope);
    if (label == MS_NONE)
        return fail_reference(names, node, scope, word);
    const ms_label *found = &names->labels[label];
    if (reads == 0 && found->silent)
        return fail_silent(names, node, word);
    *layer = reads > 0 ? found->input : found->output;
    return MS_OK;
}

ms_err ms_layernames_find(const ms_layernames *names, uint32_t node,
                          const ms_scope *scope, uint32_t *layer)
{
    char filled[MS_LAYERNAMES_FULL];
    const char *word;
    MS_TRY(fill(names, node, scope, filled, &word));
    return find_word(names, node, scope, word, layer);
}

ms_err ms_layernames_find_parts(const ms_layernames *names, uint32_t node,
                                const ms_scope *scope, bool *is_parts,
                                uint32_t *label)
{
    char filled[MS_LAYERNAMES_FULL];
    const char *word;
    MS_TRY(fill(names, node, scope, filled, &word));
    size_t length = length_before(word, ".*");
    *is_parts = length > 0;
    if (!*is_parts)
        return MS_OK;
    *label = find_before(names, word, length, scope);
    if (*label != MS_NONE)
        return MS_OK;
    char *group = ms_arena_text(names->scratch, word, length);
    return group == NULL ? ms_fail_nomem(names->fault)
                         : fail_reference(names, node, scope, group);
}

ms_err ms_layernames_defer(ms_layernames *names, uint32_t node,
                           const ms_scope *scope, uint32_t edge, uint32_t field)
{
    char filled[MS_LAYERNAMES_FULL];
    const char *kept;
    MS_TRY(fill(names, node, scope, filled, &kept));
    if (kept == filled)
        kept = ms_arena_text(names->scratch, filled, strlen(filled));
    names->references = ms_arena_grow(
        names->scratch, names->references, &names->references_capacity,
        names->n_references + 1, sizeof *names->references);
    if (names->references == NULL || kept == NULL)
        return ms_fail_nomem(names->fault);
    names->references[names->n_references++] =
        (reference){.node = node,
                    .word = kept,
                    .layer = names->model->n_layers - 1,
                    .edge = edge,
                    .field = field,
                    .scope = scope};
    return MS_OK;
}

/* Others may share the fields of the layer as they are. */
static ms_err set_field(const ms_layernames *names, const reference *from,
                        const char *name)
{
    ms_layer *layer = &names->model->layers[from->layer];
    size_t n = layer->kind->n_fields;
    ms_value *own = ms_arena_take_raw(names->arena, n, sizeof *own);
    if (own == NULL)
        return ms_fail_nomem(names->fault);
    memcpy(own, layer->field, n * sizeof *own);
    own[from->field].s = name;
    layer->field = own;
    return MS_OK;
}

static ms_err resolve(const ms_layernames *names, const reference *from)
{
    ms_model *model = names->model;
    uint32_t layer = MS_NONE;
    if (from->edge != MS_NONE)
        return find_word(names, from->node, from->scope, from->word,
                         &model->edges[from->edge]);
    uint32_t label = find(names, from->word, from->scope);
    if (label != MS_NONE)
        layer = names->labels[label].output;
    if (layer == MS_NONE)
        return fail_reference(names, from->node, from->scope, from->word);
    return set_field(names, from, model->layers[layer].name);
}

ms_err ms_layernames_resolve(ms_layernames *names)
{
    for (uint32_t i = 0; i < names->n_references; i++)
        MS_TRY(resolve(names, &names->references[i]));
    return MS_OK;
}
