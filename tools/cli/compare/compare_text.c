/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints a comparison for people: a column for each variant, first its
 * values, then how they differ from the base, at the peaks and in each phase
 * of the step. */

#include "sim/names.h"
#include "tools/alive/alive.h"
#include "tools/cli/compare/compare.h"
#include "tools/job/settings.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LABEL_WIDTH 15u
#define CELL_WIDTH 13u
/* a row below this part of the peak or the step is left out */
#define LEAST_PART 5000u

/* The variants that are printed beside each other. */
typedef struct block {
    const ms_comparison *c;
    const ms_style *style;
    uint32_t from, to;
} block;

/* The text of a cell; row is an index into ms_compare_rows or a number of
 * the caller's; "": the cell is empty. */
typedef ms_label cell_of(const ms_comparison *c, uint32_t variant,
                         uint32_t row);

static const ms_variant *base_of(const ms_comparison *c)
{
    return &c->variants[c->base];
}

/* ---- heading ------------------------------------------------------------- */

static void put_model(const ms_variant *variant, ms_text *words)
{
    const char *model = variant->record.model;
    ms_text_put(words, model, strlen(model));
    ms_text_add(words, ", ");
}

static void put_setup(const ms_variant *variant, ms_text *words)
{
    ms_text_add(words, "%s parameters, %s",
                ms_quantity_count(variant->record.parameters).s,
                variant->setup);
}

static bool same_model(const ms_variant *a, const ms_variant *b)
{
    return strcmp(a->record.model, b->record.model) == 0 &&
           a->record.parameters == b->record.parameters;
}

static void put_between(ms_text *words)
{
    ms_text_add(words, "%s", words->length > 0 ? "; " : "");
}

/* Writes the variant's file, and its model, setup and device where they
 * differ from the base. */
static void put_own(const ms_variant *variant, const ms_variant *base,
                    ms_text *words)
{
    const char *file = variant->file;
    bool same = same_model(variant, base);
    if (file != NULL && strcmp(file, variant->name) != 0)
        ms_text_put(words, file, strlen(file));
    if (!same || strcmp(variant->setup, base->setup) != 0)
        put_between(words);
    if (!same && strstr(variant->name, variant->record.model) == NULL)
        put_model(variant, words);
    if (!same)
        put_setup(variant, words);
    else if (strcmp(variant->setup, base->setup) != 0)
        ms_text_add(words, "%s", variant->setup);
    if (strcmp(variant->device, base->device) == 0)
        return;
    put_between(words);
    ms_text_add(words, "%s", variant->device);
}

static void put_refusal(const ms_variant *variant, ms_text *words)
{
    const char *hint = variant->fault.hint;
    size_t length = strcspn(hint, "\n");
    ms_text_add(words, "%s: %s", ms_variants_status(variant), variant->refused);
    if (length > 0)
        ms_text_add(words, "; %.*s", (int)length, hint);
}

static void variant_line(const ms_comparison *c, uint32_t i, ms_text *text)
{
    const ms_variant *variant = &c->variants[i];
    ms_text words = {.arena = text->arena}, own = words;
    char label[16];
    ms_text_put(&words, variant->name, strlen(variant->name));
    if (variant->refused != NULL)
        put_refusal(variant, &own);
    else
        put_own(variant, base_of(c), &own);
    if (own.length > 0) {
        ms_text_add(&words, ": ");
        ms_text_put(&words, own.bytes, own.length);
    }
    words.failed |= own.failed;
    snprintf(label, sizeof label, "%u:", i + 1);
    ms_textlines_put(label, MS_TEXTLINES_INDENT, &words, text);
}

/* The policy that all variants have, if it is not part of their names. */
static const char *common_policy(const ms_comparison *c)
{
    const char *policy = base_of(c)->policy;
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->variants[i].policy, policy) != 0)
            return NULL;
    bool named = strcmp(base_of(c)->name, policy) == 0;
    return named || strcmp(policy, "none") == 0 ? NULL : policy;
}

static void base_lines(const ms_comparison *c, const ms_style *style,
                       ms_text *text)
{
    const ms_variant *base = base_of(c);
    const char *policy = common_policy(c);
    ms_text model = {.arena = text->arena}, device = model, words = model;
    put_model(base, &model);
    put_setup(base, &model);
    ms_text_add(text, "%s", style->strong);
    ms_textlines_put("model:", MS_TEXTLINES_INDENT, &model, text);
    ms_text_add(text, "%s", style->plain);
    if (policy != NULL) {
        ms_text_put(&words, policy, strlen(policy));
        ms_textlines_put("policy:", MS_TEXTLINES_INDENT, &words, text);
    }
    ms_text_add(&device, "%s", base->device);
    ms_textlines_put("device:", MS_TEXTLINES_INDENT, &device, text);
}

/* The memories of a node that any variant uses: a bit for each ms_pool_kind. */
static unsigned pools_of(const ms_comparison *c)
{
    unsigned pools = 0;
    for (uint32_t i = 0; i < c->n; i++)
        for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++)
            pools |=
                (unsigned)(c->variants[i].refused == NULL &&
                           c->variants[i].record.report.far[pool].peak_bytes >
                               0)
                << pool;
    return pools;
}

static void heading(const ms_comparison *c, const ms_style *style,
                    ms_text *text)
{
    const ms_variant *base = base_of(c);
    ms_text defaults = {.arena = text->arena};
    base_lines(c, style, text);
    if (base->file == NULL) {
        if (!base->result.model.measured)
            ms_settings_defaults(&base->job, &base->result.training, &defaults);
        ms_settings_node_defaults(&base->job, pools_of(c), &defaults);
        ms_text_add(text, "%s", style->faint);
        if (defaults.length > 0)
            ms_textlines_put("defaults:", MS_TEXTLINES_INDENT, &defaults, text);
        ms_text_add(text, "%s", style->plain);
        ms_explain_text_unknown(base->result.graph, text);
    }
    for (uint32_t i = 0; i < c->n; i++)
        variant_line(c, i, text);
}

/* ---- rows ---------------------------------------------------------------- */

/* Writes a row; blanks behind the last cell are dropped. */
static void put_cells(const block *b, const char *label, cell_of *cell,
                      uint32_t row, bool refused_too, ms_text *text)
{
    ms_text cells = {.arena = text->arena};
    uint32_t blank = 0;
    ms_text_add(&cells, "%-*s", (int)LABEL_WIDTH, label);
    for (uint32_t i = b->from; i < b->to; i++) {
        bool shown = refused_too || b->c->variants[i].refused == NULL;
        ms_label words = shown ? cell(b->c, i, row) : (ms_label){""};
        blank += CELL_WIDTH;
        if (words.s[0] == '\0')
            continue;
        ms_screen_right(&cells, blank, words.s);
        blank = 0;
    }
    ms_text_add(&cells, "\n");
    text->failed |= cells.failed;
    ms_text_add(text, "%s", cells.failed ? "" : cells.bytes);
}

/* Writes a row whose cells are empty for refused variants. */
static void put_row(const block *b, const char *label, cell_of *cell,
                    uint32_t row, ms_text *text)
{
    put_cells(b, label, cell, row, false, text);
}

static void put_row_of_all(const block *b, cell_of *cell, ms_text *text)
{
    put_cells(b, "", cell, 0, true, text);
}

static ms_label number_cell(const ms_comparison *c, uint32_t variant,
                            uint32_t row)
{
    ms_label cell;
    (void)c, (void)row;
    snprintf(cell.s, sizeof cell.s, "%u", variant + 1);
    return cell;
}

/* A name that fits the column; longer names are never passed. */
static ms_label name_cell(const ms_comparison *c, uint32_t variant,
                          uint32_t row)
{
    ms_label cell;
    (void)row;
    ms_screen_safe(c->variants[variant].name, cell.s, sizeof cell.s);
    return cell;
}

static bool names_fit(const block *b)
{
    for (uint32_t i = b->from; i < b->to; i++)
        if (strlen(b->c->variants[i].name) >= CELL_WIDTH)
            return false;
    return true;
}

static ms_label status_cell(const ms_comparison *c, uint32_t variant,
                            uint32_t row)
{
    ms_label cell = {""};
    const ms_variant *it = &c->variants[variant];
    (void)row;
    if (it->refused != NULL)
        snprintf(cell.s, sizeof cell.s, "%s", ms_variants_status(it));
    return cell;
}

static bool any_refused(const block *b)
{
    for (uint32_t i = b->from; i < b->to; i++)
        if (b->c->variants[i].refused != NULL)
            return true;
    return false;
}

/* The largest peak or step time of all. Its unit serves every cell, so that
 * columns and rows compare, and values far below it are left out. */
static uint64_t scale_of(const ms_comparison *c, uint32_t row)
{
    uint32_t total =
        ms_compare_rows[row].is_time ? MS_COMPARE_STEP : MS_COMPARE_PEAK;
    uint64_t scale = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->variants[i].refused != NULL)
            continue;
        uint64_t value = ms_compare_values_of(&c->variants[i], total);
        scale = value > scale ? value : scale;
    }
    return scale;
}

static ms_label value_cell(const ms_comparison *c, uint32_t variant,
                           uint32_t row)
{
    uint64_t value = ms_compare_values_of(&c->variants[variant], row);
    uint64_t scale = scale_of(c, row);
    if (value == 0)
        return (ms_label){"-"};
    return ms_compare_rows[row].is_time ? ms_quantity_time_as(value, scale)
                                        : ms_quantity_size_as(value, scale);
}

static uint64_t host_bytes(const ms_comparison *c, uint32_t variant)
{
    const ms_variant *it = &c->variants[variant];
    return it->refused != NULL ? 0 : it->record.report.host_peak_bytes;
}

/* The peak of host memory of the rank shown. */
static ms_label host_cell(const ms_comparison *c, uint32_t variant,
                          uint32_t row)
{
    uint64_t bytes = host_bytes(c, variant);
    (void)row;
    return bytes == 0 ? (ms_label){"-"}
                      : ms_quantity_size_as(bytes, scale_of(c, 0));
}

static uint64_t host_reserved_bytes(const ms_comparison *c, uint32_t variant)
{
    const ms_variant *it = &c->variants[variant];
    return it->refused != NULL
               ? 0
               : it->record.report.far[MS_HOST_POOL].reserved_bytes;
}

static ms_label host_reserved_cell(const ms_comparison *c, uint32_t variant,
                                   uint32_t row)
{
    uint64_t bytes = host_reserved_bytes(c, variant);
    (void)row;
    return bytes == 0 ? (ms_label){"-"}
                      : ms_quantity_size_as(bytes, scale_of(c, 0));
}

/* Says whether a variant's pinned memory takes more than it asks for. */
static bool pins_host(const block *b)
{
    bool pins = false;
    for (uint32_t i = b->from; i < b->to; i++)
        pins |= host_reserved_bytes(b->c, i) > host_bytes(b->c, i);
    return pins;
}

static bool uses_host(const block *b)
{
    bool uses = false;
    for (uint32_t i = b->from; i < b->to; i++)
        uses |= host_bytes(b->c, i) > 0;
    return uses;
}

/* ---- differences --------------------------------------------------------- */

static uint64_t gap_of(const ms_comparison *c, uint32_t variant, uint32_t row,
                       bool *less)
{
    uint64_t first = ms_compare_values_of(base_of(c), row);
    uint64_t value = ms_compare_values_of(&c->variants[variant], row);
    *less = value < first;
    return *less ? first - value : value - first;
}

static ms_label difference_cell(const ms_comparison *c, uint32_t variant,
                                uint32_t row)
{
    bool less;
    uint64_t gap = gap_of(c, variant, row, &less);
    if (variant == c->base)
        return (ms_label){""};
    if (gap == 0)
        return (ms_label){"="};
    return ms_compare_cells_signed(less, "+",
                                   ms_compare_rows[row].is_time
                                       ? ms_quantity_time(gap)
                                       : ms_quantity_size(gap));
}

static ms_label percent_cell(const ms_comparison *c, uint32_t variant,
                             uint32_t row)
{
    bool less;
    uint64_t first = ms_compare_values_of(base_of(c), row);
    uint64_t gap = gap_of(c, variant, row, &less);
    ms_label cell = {""};
    if (gap > 0 && first > 0)
        snprintf(cell.s, sizeof cell.s, "%s%.1f %%", less ? "-" : "+",
                 100.0 * (double)gap / (double)first);
    return cell;
}

/* Says whether a row is worth printing, for its values or its differences. */
static bool counts(const block *b, uint32_t row, bool difference)
{
    bool less;
    for (uint32_t i = b->from; i < b->to; i++) {
        if (b->c->variants[i].refused != NULL)
            continue;
        uint64_t bytes = difference
                             ? gap_of(b->c, i, row, &less)
                             : ms_compare_values_of(&b->c->variants[i], row);
        if (bytes > scale_of(b->c, row) / LEAST_PART)
            return true;
    }
    return false;
}

static bool is_total(uint32_t row)
{
    return row == MS_COMPARE_PEAK || row == MS_COMPARE_STEP;
}

/* ---- pools --------------------------------------------------------------- */

static bool tells(const block *b, cell_of *cell, uint32_t row)
{
    for (uint32_t i = b->from; i < b->to; i++)
        if (b->c->variants[i].refused == NULL &&
            strcmp(cell(b->c, i, row).s, "-") != 0)
            return true;
    return false;
}

static void put_pools(const block *b, ms_text *text)
{
    if (!ms_compare_pools_tell(b->c))
        return;
    uint32_t steps = ms_compare_pools_steps(b->c);
    bool any = false;
    for (uint32_t row = 0; row < ms_compare_pools_n_rows; row++) {
        if (!tells(b, ms_compare_pools_cell, row))
            continue;
        ms_text_add(text, any ? "" : "\npool:\n");
        any = true;
        put_row(b, ms_compare_pools_rows[row].label, ms_compare_pools_cell, row,
                text);
    }
    for (uint32_t step = 1; any && step <= steps; step++) {
        if (step == 1)
            ms_text_add(text, "\nreserved, step by step:\n");
        put_row(b, ms_compare_pools_label(b->c, step).s,
                ms_compare_pools_step_cell, step, text);
    }
}

/* ---- the table ----------------------------------------------------------- */

/* Writes the end of the times and, if links move anything, the rows on that. */
static void put_tail(const block *b, ms_text *text)
{
    bool any = uses_host(b);
    put_row(b, "tokens/s", ms_compare_cells_tokens, 0, text);
    put_row(b, "error up to", ms_compare_cells_error, 0, text);
    for (uint32_t row = MS_COMPARE_MOVED; row < MS_COMPARE_IN_TIME; row++)
        any |= counts(b, row, false);
    if (any)
        ms_text_add(text, "\nmoved:\n");
    if (uses_host(b))
        put_row(b, "host memory", host_cell, 0, text);
    if (pins_host(b))
        put_row(b, "  reserved", host_reserved_cell, 0, text);
}

static void put_columns(const block *b, ms_text *text)
{
    ms_text_add(text, "%s", b->style->strong);
    put_row_of_all(b, number_cell, text);
    if (names_fit(b))
        put_row_of_all(b, name_cell, text);
    ms_text_add(text, "%s", b->style->plain);
    if (!any_refused(b))
        return;
    ms_text_add(text, "%s", b->style->bad);
    put_row_of_all(b, status_cell, text);
    ms_text_add(text, "%s", b->style->plain);
}

static void put_verdict(const block *b, ms_text *text)
{
    put_row(b, "fits", ms_compare_cells_fits, 0, text);
    put_row(b, "headroom", ms_compare_cells_headroom, 0, text);
    if (ms_compare_cells_short(b->c, MS_HOST_POOL))
        put_row(b, "  of the host", ms_compare_cells_host_room, 0, text);
    if (ms_compare_cells_short(b->c, MS_NVME_POOL))
        put_row(b, "  of the disk", ms_compare_cells_disk_room, 0, text);
    if (ms_compare_cells_differ(b->c))
        put_row(b, "capacity", ms_compare_cells_capacity, 0, text);
}

static void put_strong(const block *b, const char *label, uint32_t row,
                       ms_text *text)
{
    ms_text_add(text, "%s", b->style->strong);
    put_row(b, label, value_cell, row, text);
    ms_text_add(text, "%s", b->style->plain);
}

/* What users see of a device comes first: what is reserved, if there is a
 * pool. */
static void put_peaks(const block *b, ms_text *text)
{
    bool pooled = false;
    for (uint32_t i = b->from; i < b->to; i++)
        pooled |= ms_compare_pools_rank(&b->c->variants[i]) != NULL;
    if (pooled) {
        put_strong(b, "reserved", MS_COMPARE_RESERVED, text);
        put_verdict(b, text);
    }
    put_strong(b, pooled ? "allocated" : "peak", MS_COMPARE_PEAK, text);
    put_row(b, "in", ms_compare_cells_phase, 0, text);
    if (pooled)
        return;
    put_verdict(b, text);
    put_row(b, "reserved", value_cell, MS_COMPARE_RESERVED, text);
}

static void put_values(const block *b, ms_text *text)
{
    put_columns(b, text);
    put_peaks(b, text);
    for (uint32_t row = MS_COMPARE_PHASES; row < MS_COMPARE_IN_TIME; row++) {
        if (row == MS_COMPARE_HELD)
            ms_text_add(text, "\nat the peak:\n");
        if (row == MS_COMPARE_STEP) {
            put_pools(b, text);
            ms_text_add(text, "\n");
        }
        if (row == MS_COMPARE_MOVED)
            put_tail(b, text);
        if (!is_total(row) && !counts(b, row, false))
            continue;
        ms_text_add(text, "%s", is_total(row) ? b->style->strong : "");
        put_row(b, ms_compare_rows[row].label, value_cell, row, text);
        ms_text_add(text, "%s", is_total(row) ? b->style->plain : "");
    }
}

static bool is_phase(uint32_t row)
{
    return row >= MS_COMPARE_PHASES && row < MS_COMPARE_HELD;
}

static void put_differences(const block *b, ms_text *text)
{
    bool any = false;
    for (uint32_t row = 0; row < MS_COMPARE_IN_TIME; row++) {
        if (is_phase(row) || !counts(b, row, true))
            continue;
        if (!any)
            ms_text_add(text, "\nagainst %u:\n", b->c->base + 1);
        any = true;
        put_row(b, ms_compare_rows[row].label, difference_cell, row, text);
        if (is_total(row))
            put_row(b, "", percent_cell, row, text);
    }
    if (!any)
        ms_text_add(text, "\nno difference from %u\n", b->c->base + 1);
}

/* For each phase writes how its peak differs, then how the categories at the
 * peak differ: those may change even where the peak does not. */
static void put_in_time(const block *b, ms_text *text)
{
    bool any = false;
    for (uint32_t phase = 0; phase < MS_N_PHASES; phase++) {
        uint32_t first = MS_COMPARE_IN_TIME + phase * MS_N_CATEGORIES;
        bool head = false;
        for (uint32_t row = first; row < first + MS_N_CATEGORIES; row++) {
            if (!counts(b, row, true))
                continue;
            if (!any)
                ms_text_add(text,
                            "\nagainst %u, when each phase stands "
                            "highest:\n",
                            b->c->base + 1);
            if (!head)
                put_row(b, ms_names_phase[phase], difference_cell,
                        MS_COMPARE_PHASES + phase, text);
            any = head = true;
            put_row(b, ms_compare_rows[row].label, difference_cell, row, text);
        }
    }
}

void ms_compare_text_write(const ms_comparison *c, const ms_style *style,
                           ms_text *text)
{
    uint32_t n = (ms_screen_columns(STDOUT_FILENO) - LABEL_WIDTH) / CELL_WIDTH;
    heading(c, style, text);
    for (uint32_t from = 0; from < c->n; from += n) {
        uint32_t to = c->n - from > n ? from + n : c->n;
        block b = {.c = c, .style = style, .from = from, .to = to};
        ms_text_add(text, "\n");
        put_values(&b, text);
        put_differences(&b, text);
        put_in_time(&b, text);
    }
    ms_compare_fastest_write(c, text);
    if (c->explain)
        ms_compare_tensors_write(c, style, text);
    ms_compare_pools_write(c, text);
}
