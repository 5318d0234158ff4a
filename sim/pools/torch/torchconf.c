/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PYTORCH_CUDA_ALLOC_CONF: its table and its reader (sim/pools/README.md
 * 13; what is refused is what c10/cuda/CUDAAllocatorConfig.cpp and, since 2.8,
 * c10/core/AllocatorConfig.cpp refuse).  PyTorch cuts the text into words at
 * the marks , : [ ] and passes over blanks; so does this. */
#include "sim/names.h"
#include "sim/pools/torch/torchpool.h"

#include <stdlib.h>
#include <string.h>

#define HINT "\"memsim help traces\" lists the options"
#define MOST_LENGTH 4096u
#define MOST_MIB (UINT64_MAX / TORCH_MIB)
#define V13 MS_TORCH_V1_13
#define V21 MS_TORCH_V2_1
#define V24 MS_TORCH_V2_4
#define V211 MS_TORCH_V2_11

enum {
    MAX_SPLIT,
    MAX_SLACK,
    LARGE_SEGMENT,
    BYPASS,
    DIVISIONS,
    THRESHOLD,
    FRACTION,
    EXPANDABLE,
    BACKEND,
    PINNED_ROUND,
    PINNED_CACHED,
    TRUTH, /* True or False without effect on the device's memory */
    THREADS
};

const char *const ms_torchconf_versions[] = {"1.13", "2.1", "2.4", "2.11"};

const ms_torchconf_row ms_torchconf_rows[] = {
    {"max_split_size_mb", "N", "larger blocks are not split", MAX_SPLIT, V13,
     V211},
    {"roundup_power2_divisions", "N|[MB:N,...,>:N]",
     "sizes round up to a part of a power of two; the list needs 2.1",
     DIVISIONS, V13, V211},
    {"roundup_bypass_threshold_mb", "N", "larger sizes are not rounded so",
     BYPASS, V13, V13},
    {"garbage_collection_threshold", "F",
     "part of the limit above which old blocks are freed", THRESHOLD, V13,
     V211},
    {"expandable_segments", "True|False",
     "segments that grow by pages instead of cudaMalloc", EXPANDABLE, V21,
     V211},
    {"large_segment_size_mb", "N",
     "segment of requests of 1 to 10 MiB, and page (default 20)", LARGE_SEGMENT,
     V211, V211},
    {"max_non_split_rounding_mb", "N",
     "how much larger a block over max_split_size may be (default 20)",
     MAX_SLACK, V211, V211},
    {"per_process_memory_fraction", "F", "limit, as a part of the device",
     FRACTION, V211, V211},
    {"backend", "native", "memsim has no other", BACKEND, V21, V211},
    {"release_lock_on_cudamalloc", "True|False", "changes no memory", TRUTH,
     V24, V211},
    {"pinned_use_cuda_host_register", "True|False", "changes no memory", TRUTH,
     V24, V211},
    {"pinned_num_register_threads", "N", "changes no memory", THREADS, V24,
     V211},
    {"pinned_max_round_threshold_mb", "N",
     "larger pinned host blocks are not rounded to a power of two",
     PINNED_ROUND, V211, V211},
    {"pinned_max_cached_size_mb", "N",
     "larger pinned host blocks are not kept when they are free", PINNED_CACHED,
     V211, V211},
    {"pinned_use_background_threads", "True|False", "changes no memory", TRUTH,
     V211, V211},
    {"graph_capture_record_stream_reuse", "True|False", "changes no memory",
     TRUTH, V211, V211},
};
const uint32_t ms_torchconf_n_rows =
    sizeof ms_torchconf_rows / sizeof ms_torchconf_rows[0];

void ms_torchconf_init(ms_torch_options *options)
{
    *options = (ms_torch_options){.max_split_bytes = UINT64_MAX,
                                  .max_slack_bytes = TORCH_LARGE_SEGMENT,
                                  .large_segment_bytes = TORCH_LARGE_SEGMENT,
                                  .bypass_bytes = UINT64_MAX};
}

/* ---- words --------------------------------------------------------------- */

typedef struct reader {
    const char *at, *where;
    const char *name; /* of the option that is being read */
    ms_torch_version version;
    ms_torch_options *options;
    ms_fault *fault;
    ms_err err;    /* why the text is refused */
    char word[64]; /* the current one; "" at the end */
} reader;

static bool is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

/* A word that does not fit here is longer than any that PyTorch knows. */
static void step(reader *r)
{
    size_t n = 0;
    while (*r->at == ' ')
        r->at++;
    if (is_mark(*r->at))
        r->word[n++] = *r->at++;
    else
        for (; *r->at != '\0' && !is_mark(*r->at); r->at++)
            if (*r->at != ' ' && n + 1 < sizeof r->word)
                r->word[n++] = *r->at;
    r->word[n] = '\0';
}

static bool stands(const reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

static ms_err fail_expected(const reader *r, const char *what)
{
    return ms_fail(r->fault, r->err, r->where, HINT,
                   "option \"%s\": expected %s, not \"%s\"", r->name, what,
                   *r->word == '\0' ? "the end" : r->word);
}

static ms_err demand(reader *r, const char *mark)
{
    char what[8] = {'"', mark[0], '"', '\0'};
    if (!stands(r, mark))
        return fail_expected(r, what);
    step(r);
    return MS_OK;
}

/* PyTorch's stoi ignores what follows the number; here it is refused. */
static ms_err read_whole(reader *r, uint64_t *n)
{
    const char *c = r->word;
    *n = 0;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(*n, UINT64_C(10), n) ||
            __builtin_add_overflow(*n, (uint64_t)(*c - '0'), n))
            return fail_expected(r, "a smaller number");
    if (c == r->word || *c != '\0')
        return fail_expected(r, "a whole number");
    return MS_OK;
}

static ms_err read_real(reader *r, double *f)
{
    char *end = r->word;
    if (strspn(r->word, "0123456789.eE+-") == strlen(r->word))
        *f = strtod(r->word, &end);
    if (end == r->word || *end != '\0')
        return fail_expected(r, "a number");
    return MS_OK;
}

static ms_err read_truth(reader *r, bool *value)
{
    if (!stands(r, "True") && !stands(r, "False"))
        return fail_expected(r, "True or False");
    *value = stands(r, "True");
    return MS_OK;
}

static bool is_power(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* ---- values -------------------------------------------------------------- */

static ms_err read_mib(reader *r, uint64_t least_mib, uint64_t *bytes)
{
    uint64_t n;
    MS_TRY(read_whole(r, &n));
    if (n < least_mib)
        return ms_fail(r->fault, r->err, r->where, HINT,
                       "option \"%s\": %u is too small, PyTorch %s takes %u "
                       "or more",
                       r->name, (unsigned)n, ms_torchconf_versions[r->version],
                       (unsigned)least_mib);
    *bytes = (n < MOST_MIB ? n : MOST_MIB) * TORCH_MIB;
    return MS_OK;
}

static ms_err read_division(reader *r, bool list, uint32_t *divisions)
{
    uint64_t n;
    MS_TRY(read_whole(r, &n));
    bool zero = n == 0 && list && r->version >= V24;
    if ((!is_power(n) && !zero) || n > UINT32_MAX)
        return ms_fail(r->fault, r->err, r->where, HINT,
                       "option \"%s\": \"%s\" is not a power of two", r->name,
                       r->word);
    *divisions = (uint32_t)n;
    return MS_OK;
}

static void fill(ms_torch_options *options, uint32_t from, uint32_t end,
                 uint32_t divisions)
{
    for (uint32_t i = from; i < end; i++)
        options->divisions[i] = divisions;
}

/* One pair of the list; the first fills all intervals below it, ">" those from
 * the last key's on. */
static ms_err read_pair(reader *r, bool first, uint32_t *last)
{
    bool rest = stands(r, ">");
    uint64_t key = 1;
    uint32_t divisions, interval;
    if (!rest)
        MS_TRY(read_whole(r, &key));
    if (!is_power(key))
        return fail_expected(r, "a power of two");
    step(r);
    MS_TRY(demand(r, ":"));
    MS_TRY(read_division(r, true, &divisions));
    step(r);
    if (rest) {
        fill(r->options, *last, MS_TORCH_INTERVALS, divisions);
        return MS_OK;
    }
    interval = 63 - (uint32_t)__builtin_clzll(key);
    if (interval >= MS_TORCH_INTERVALS)
        interval = MS_TORCH_INTERVALS - 1;
    if (first)
        fill(r->options, 0, interval, divisions);
    r->options->divisions[interval] = divisions;
    *last = interval;
    return MS_OK;
}

static ms_err read_divisions(reader *r)
{
    uint32_t divisions, last = 0;
    if (!stands(r, "[") || r->version < V21) {
        MS_TRY(read_division(r, false, &divisions));
        fill(r->options, 0, MS_TORCH_INTERVALS, divisions);
        return MS_OK;
    }
    step(r);
    for (bool first = true; !stands(r, "]"); first = false) {
        if (!first)
            MS_TRY(demand(r, ","));
        MS_TRY(read_pair(r, first, &last));
    }
    return MS_OK;
}

static ms_err read_threshold(reader *r)
{
    double f;
    MS_TRY(read_real(r, &f));
    if (!(f > 0 && f < 1))
        return fail_expected(r, "a number between 0 and 1");
    r->options->gc_threshold = f;
    return MS_OK;
}

static ms_err read_fraction(reader *r)
{
    double f;
    MS_TRY(read_real(r, &f));
    if (!(f >= 0 && f <= 1))
        return fail_expected(r, "a number from 0 to 1");
    r->options->fraction = f;
    return MS_OK;
}

static ms_err read_backend(reader *r)
{
    if (stands(r, "cudaMallocAsync"))
        return ms_fail(r->fault, r->err, r->where,
                       "leave it out: memsim has the native one",
                       "option \"backend\": cudaMallocAsync is CUDA's own "
                       "allocator, which is not simulated");
    return stands(r, "native") ? MS_OK : fail_expected(r, "native");
}

static ms_err read_threads(reader *r)
{
    uint64_t n;
    MS_TRY(read_whole(r, &n));
    return is_power(n) && n <= 128 ? MS_OK
                                   : fail_expected(r, "1, 2, 4, ... or 128");
}

static ms_err read_value(reader *r, uint8_t kind)
{
    ms_torch_options *options = r->options;
    bool ignored;
    switch (kind) {
    case MAX_SPLIT:
        return read_mib(r, r->version <= V24 ? 21 : 20,
                        &options->max_split_bytes);
    case MAX_SLACK:
        return read_mib(r, 20, &options->max_slack_bytes);
    case LARGE_SEGMENT: /* PyTorch takes 2 and more */
        return read_mib(r, 10, &options->large_segment_bytes);
    case BYPASS:
        return read_mib(r, 1, &options->bypass_bytes);
    case PINNED_ROUND:
        return read_mib(r, 1, &options->pinned.max_round_bytes);
    case PINNED_CACHED:
        return read_mib(r, 1, &options->pinned.max_cached_bytes);
    case DIVISIONS:
        return read_divisions(r);
    case THRESHOLD:
        return read_threshold(r);
    case FRACTION:
        return read_fraction(r);
    case EXPANDABLE:
        return read_truth(r, &options->expandable);
    case BACKEND:
        return read_backend(r);
    case THREADS:
        return read_threads(r);
    default:
        return read_truth(r, &ignored);
    }
}

/* ---- options ------------------------------------------------------------- */

/* Options of PyTorch of mid-2026, newer than the newest rules modelled here. */
static const char *const newer[] = {"throw_on_cudamalloc_oom",
                                    "expandable_segments_reserve"};

static ms_err fail_newer(const reader *r)
{
    return ms_fail(r->fault, r->err, r->where,
                   "leave it out: its effect is not simulated",
                   "option \"%s\" is of a later PyTorch than %s, the newest "
                   "whose allocator memsim has",
                   r->word, ms_torchconf_versions[MS_TORCH_N_VERSIONS - 1]);
}

static ms_err fail_name(const reader *r)
{
    const char *names[16], *hint = NULL;
    char words[96];
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
        if (stands(r, newer[i]))
            return fail_newer(r);
    for (; n < ms_torchconf_n_rows && n < 16; n++)
        names[n] = ms_torchconf_rows[n].name;
    const char *near = ms_names_nearest(r->word, names, n);
    if (near != NULL) {
        strcpy(words, "did you mean \"");
        strcat(words, near);
        strcat(words, "\"?");
        hint = words;
    }
    return ms_fail(r->fault, r->err, r->where, hint != NULL ? hint : HINT,
                   "PyTorch has no allocator option \"%s\"", r->word);
}

static ms_err fail_version(const reader *r, const ms_torchconf_row *row)
{
    char hint[64] = "leave it out, or take the rules of version=";
    strcat(hint, ms_torchconf_versions[row->since]);
    return ms_fail(r->fault, r->err, r->where, hint,
                   "PyTorch %s has no allocator option \"%s\": it is of %s to "
                   "%s",
                   ms_torchconf_versions[r->version], row->name,
                   ms_torchconf_versions[row->since],
                   ms_torchconf_versions[row->until]);
}

static ms_err read_option(reader *r)
{
    for (uint32_t i = 0; i < ms_torchconf_n_rows; i++) {
        const ms_torchconf_row *row = &ms_torchconf_rows[i];
        if (!stands(r, row->name))
            continue;
        if (r->version < row->since || r->version > row->until)
            return fail_version(r, row);
        r->name = row->name;
        step(r);
        MS_TRY(demand(r, ":"));
        MS_TRY(read_value(r, row->kind));
        step(r);
        return MS_OK;
    }
    return fail_name(r);
}

ms_err ms_torchconf_parse(const char *conf, const char *where, ms_err err,
                          ms_torch_version version, ms_torch_options *options,
                          ms_fault *fault)
{
    reader r = {.at = conf,
                .where = where,
                .err = err,
                .version = version,
                .options = options,
                .fault = fault};
    if (strlen(conf) > MOST_LENGTH)
        return ms_fail(fault, r.err, where, "give fewer options",
                       "allocator options over %u bytes", MOST_LENGTH);
    step(&r);
    while (*r.word != '\0') {
        MS_TRY(read_option(&r));
        if (*r.word != '\0')
            MS_TRY(demand(&r, ","));
    }
    if (version == V211 && options->max_split_bytes < UINT64_MAX &&
        options->max_split_bytes < options->large_segment_bytes)
        return ms_fail(fault, r.err, where,
                       "raise it, or lower large_segment_size_mb",
                       "option \"max_split_size_mb\" is below "
                       "large_segment_size_mb");
    return MS_OK;
}

ms_err ms_torchconf_change(const char *conf, const char *where,
                           ms_torch_version version, ms_torch_options *options,
                           ms_fault *fault)
{
    options->max_split_bytes = UINT64_MAX;
    options->gc_threshold = 0;
    fill(options, 0, MS_TORCH_INTERVALS, 0);
    return ms_torchconf_parse(conf, where, MS_EINPUT, version, options, fault);
}
