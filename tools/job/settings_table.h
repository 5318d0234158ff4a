/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SETTINGS_TABLE_H
#define MS_TOOLS_SETTINGS_TABLE_H

/* The table of a job's settings: what a user can say of a job beside the fields
 * of training (ms_training_fields) and of the model, one row each.
 *
 *     settings.c         options, and keys with values, to a job
 *     settings_json.c    "settings" of a result
 *     grid.c, filter.c   keys of --grid, --filter and --variant
 *     keys_run.c         the schema of "settings"
 *     candidates.c       completions of --grid
 *     help_texts.c       memsim help grid
 *     changewords.c      the option that says a change
 *
 * all walk these rows.  A new setting is a row here, a member of ms_job and its
 * option:
 *
 *     const ms_setting *row = ms_settings_table_find("host_memory");
 *     MS_TRY(row->read(row, "512GiB", &arena, &job, fault));
 *     row->write(row, &job, &arena)                  "549755813888"
 */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/options/options.h"

typedef enum ms_setting_type {
    MS_SETTING_TEXT,
    MS_SETTING_COUNT, /* 0: not given */
    MS_SETTING_BYTES, /* 0: not given; read with a unit */
    MS_SETTING_WORD,  /* one of words */
    MS_SETTING_BOOL
} ms_setting_type;

/* Whether "settings" of a result has the key. */
typedef enum ms_setting_json {
    MS_SETTING_UNTOLD, /* the result has it elsewhere, or not at all */
    MS_SETTING_ALWAYS,
    MS_SETTING_OR_NULL, /* null where it is not given */
    MS_SETTING_IF_SAID
} ms_setting_json;

typedef struct ms_setting ms_setting;
struct ms_setting {
    const char *key; /* in grids, variants and JSON: "host_memory" */
    const char *flag;
    ms_option_id option;
    ms_setting_type type;
    const char *words;   /* of a WORD: "a|b" */
    const char *value;   /* of a grid: what stands for it in completions, as
                            in the table of options; NULL: nothing */
    const char *help;    /* of a grid's key, in completions */
    const char *noun;    /* of a COUNT, in messages: "steps" */
    const char *example; /* "e.g. --nvme 4TiB" */
    /* "policies": its values in a grid may have commas; NULL: they may not */
    const char *many;
    /* offsets in ms_job; given_at: of a bool; 0: there is none */
    size_t at, given_at;
    uint64_t most; /* of a COUNT: the largest value; the least is 1 */
    ms_setting_json json;
    /* the value that older results without the key had; NULL: none lack it */
    const char *before;
    bool is_wide;    /* of a COUNT: a uint64_t, not a uint32_t */
    bool in_grid;    /* it may be a key of --grid, --filter, --variant */
    bool has_ranges; /* values in a grid may be ranges: 1..64*2 */
    bool has_lists;  /* each value in a grid is a list with commas */
    bool is_late;    /* a graph does not depend on it; on policies, few do */
    bool joins;      /* given again, it joins the value before */
    bool is_bare;    /* names of variants have its value without the key */
    /* Sets the value; value and arena must last as long as job. MS_EUSAGE. */
    ms_err (*read)(const ms_setting *row, const char *value, ms_arena *arena,
                   ms_job *job, ms_fault *fault);
    /* The job's value as `read` takes it. NULL: it is not given, or (of TEXT)
     * out of memory. */
    const char *(*write)(const ms_setting *row, const ms_job *job,
                         ms_arena *arena);
};

extern const ms_setting ms_settings_table[];
extern const uint32_t ms_settings_table_n;

/* The row of a key or of an option's name, or NULL. */
const ms_setting *ms_settings_table_find(const char *key);
const ms_setting *ms_settings_table_option(ms_option_id id);

#endif
