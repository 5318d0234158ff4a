/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The torch pool against PyTorch's own: every row, statistic, snapshot and
 * trace entry of the reference cases; every address, segment event and final
 * block of the recorded histories (truth/allocator). Static plans of the
 * same histories. */
#include "graphs/json/json.h"
#include "sim/base/files.h"
#include "sim/pools/history/alloctrace.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/alloc/alloc_keys.h"
#include "tools/cli/commands.h"
#include "tools/recordings/recordings.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define MOST_FILES 256

static ms_arena keep, trial;

/* ---- files --------------------------------------------------------------- */

static char *unpack(const char *path, size_t *length)
{
    char command[TESTS_PATH + 32], *bytes = NULL;
    uint32_t capacity = 0;
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    *length = 0;
    for (size_t n = 1; n > 0; *length += n) {
        bytes = ms_arena_grow(&keep, bytes, &capacity,
                              (uint32_t)*length + (1u << 16), 1);
        ck_assert_ptr_nonnull(bytes);
        n = fread(bytes + *length, 1, (1u << 16) - 1, pipe);
    }
    ck_assert_msg(pclose(pipe) == 0, "cannot unpack %s", path);
    bytes[*length] = '\0';
    return bytes;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* ---- JSON ---------------------------------------------------------------- */

static ms_json json;

static uint32_t member(uint32_t row, const char *key)
{
    uint32_t found = ms_json_find(&json, row, key);
    ck_assert_msg(found != MS_NONE, "no %s", key);
    return found;
}

static uint32_t next(uint32_t row)
{
    return json.nodes[row].next;
}

static const char *words(uint32_t row)
{
    ck_assert_int_eq(json.nodes[row].kind, MS_JSON_STRING);
    return json.nodes[row].value.s;
}

static int64_t number(uint32_t row)
{
    ck_assert_int_eq(json.nodes[row].kind, MS_JSON_INT);
    return json.nodes[row].value.i;
}

/* ---- one reference case -------------------------------------------------- */

typedef struct reference {
    const char *name;
    ms_allocplay play;
    uint32_t entry; /* the next entry of device_trace */
    uint64_t n_rows, n_entries, n_snapshots, n_stats;
    uint64_t wrong_rows, wrong_entries, wrong_snapshots, wrong_stats;
} reference;

static void check_entry(void *of, const ms_torch_entry *entry)
{
    reference *r = of;
    r->n_entries++;
    if (r->entry == MS_NONE) {
        r->wrong_entries++;
        return;
    }
    uint32_t at = ms_json_first(&json, r->entry);
    bool same = strcmp(words(at), ms_torch_actions[entry->action]) == 0;
    at = next(at);
    same &= number(at) == (int64_t)entry->address;
    at = next(at);
    same &= number(at) == (int64_t)entry->bytes;
    same &= number(next(at)) == (int64_t)entry->stream;
    if (!same && r->wrong_entries++ == 0)
        fprintf(stderr, "%s: entry %d: ours %s %llu %llu %llu\n", r->name,
                (int)r->n_entries - 1, ms_torch_actions[entry->action],
                (unsigned long long)entry->address,
                (unsigned long long)entry->bytes,
                (unsigned long long)entry->stream);
    r->entry = next(r->entry);
}

/* Writes a row as memsim alloc --csv does. */
static void put_line(const ms_allocplay *play, const ms_allocplay_row *row,
                     ms_text *text)
{
    ms_keys_plan csv;
    ms_allocplay_line line;
    ck_assert(ms_keys_write_plan(&ms_alloc_keys_line, NULL, &trial, &csv));
    ms_allocplay_tell(play, row, &line);
    ms_keys_write_line(&csv, &line, text);
}

static void check_row(reference *r, uint32_t expected,
                      const ms_allocplay_row *row)
{
    ms_text ours = {.arena = &trial}, truth = {.arena = &trial};
    put_line(&r->play, row, &ours);
    for (uint32_t at = ms_json_first(&json, expected); at != MS_NONE;
         at = next(at)) {
        if (json.nodes[at].kind == MS_JSON_STRING)
            ms_text_add(&truth, "%s", words(at));
        else
            ms_text_i64(&truth, number(at));
        ms_text_add(&truth, "%s", next(at) == MS_NONE ? "\n" : ",");
    }
    r->n_rows++;
    const char *why = differ_texts(r->name, ours.bytes, truth.bytes);
    if (why != NULL && r->wrong_rows++ == 0)
        fprintf(stderr, "row %d of %s\n", (int)r->n_rows - 1, why);
    ms_arena_reset(&trial);
}

static bool same_block(uint32_t node, const ms_torch_block_view *block)
{
    return number(member(node, "address")) == (int64_t)block->address &&
           number(member(node, "size")) == (int64_t)block->bytes &&
           number(member(node, "requested_size")) ==
               (int64_t)block->requested_bytes &&
           strcmp(words(member(node, "state")),
                  ms_torchview_states[block->state]) == 0;
}

static bool same_segment(uint32_t node, const ms_torch_segment_view *segment)
{
    const char *type = segment->small ? "small" : "large";
    uint32_t at = ms_json_first(&json, member(node, "blocks")), i = 0;
    uint32_t ranged = ms_json_find(&json, node, "is_expandable");
    bool same =
        number(member(node, "address")) == (int64_t)segment->address &&
        number(member(node, "total_size")) == (int64_t)segment->bytes &&
        number(member(node, "stream")) == (int64_t)segment->stream &&
        number(member(node, "allocated_size")) ==
            (int64_t)segment->allocated_bytes &&
        number(member(node, "active_size")) == (int64_t)segment->active_bytes &&
        number(member(node, "requested_size")) ==
            (int64_t)segment->requested_bytes &&
        strcmp(words(member(node, "segment_type")), type) == 0 &&
        (ranged == MS_NONE ||
         json.nodes[ranged].value.b == segment->expandable);
    for (; same && at != MS_NONE && i < segment->n_blocks; at = next(at), i++)
        same = same_block(at, &segment->blocks[i]);
    return same && at == MS_NONE && i == segment->n_blocks;
}

static void check_snapshot(reference *r, uint32_t list)
{
    ms_torch_snapshot ours;
    ms_fault fault = {0};
    ck_assert_int_eq(ms_torchview_snapshot(r->play.pool, &trial, &ours, &fault),
                     MS_OK);
    uint32_t i = 0, at = ms_json_first(&json, list);
    bool same = true;
    for (; same && at != MS_NONE && i < ours.n_segments; at = next(at), i++)
        same = same_segment(at, &ours.segments[i]);
    r->n_snapshots++;
    if ((!same || at != MS_NONE || i != ours.n_segments) &&
        r->wrong_snapshots++ == 0)
        fprintf(stderr, "%s: snapshot %d, segment %u\n", r->name,
                (int)r->n_snapshots - 1, i);
    ms_arena_reset(&trial);
}

static void check_stat(reference *r, uint32_t stats, const char *key,
                       const ms_torch_stat *ours)
{
    const uint64_t values[] = {ours->current, ours->peak, ours->allocated,
                               ours->freed};
    uint32_t i = 0, list = ms_json_find(&json, stats, key);
    if (list == MS_NONE)
        return;
    for (uint32_t at = ms_json_first(&json, list); at != MS_NONE;
         at = next(at)) {
        r->n_stats++;
        if (number(at) != (int64_t)values[i++] && r->wrong_stats++ == 0)
            fprintf(stderr, "%s: %s[%u]: truth %lld, ours %llu\n", r->name, key,
                    i - 1, (long long)number(at),
                    (unsigned long long)values[i - 1]);
    }
}

static void check_number(reference *r, uint32_t object, const char *key,
                         uint64_t ours)
{
    r->n_stats++;
    if (number(member(object, key)) != (int64_t)ours && r->wrong_stats++ == 0)
        fprintf(stderr, "%s: %s: truth %lld, ours %llu\n", r->name, key,
                (long long)number(member(object, key)),
                (unsigned long long)ours);
}

static void check_stats(reference *r)
{
    uint32_t list = member(0, "stats");
    ms_torch_stats stats;
    char key[64];
    ms_torchview_stats(r->play.pool, &stats);
    for (uint32_t m = 0; m < MS_TORCH_N_MEASURES; m++)
        for (uint32_t s = 0; s < MS_TORCH_N_SCOPES; s++) {
            snprintf(key, sizeof key, "%s.%s", ms_torchview_measures[m],
                     ms_torchview_scopes[s]);
            check_stat(r, list, key, &stats.of[m][s]);
        }
    check_stat(r, list, "oversize_allocations", &stats.oversize_allocations);
    check_stat(r, list, "oversize_segments", &stats.oversize_segments);
    check_number(r, list, "num_alloc_retries", stats.retries);
    check_number(r, list, "num_ooms", stats.ooms);
    check_number(r, list, "max_split_size", stats.max_split_bytes);
    check_number(r, member(0, "device"), "used", stats.device_used_bytes);
}

static void read_head(reference *r, ms_torch_setup *setup)
{
    ms_alloctext_head head = {.conf = "", .policy = -1, .version = -1};
    ms_fault fault = {0};
    ms_alloctrace_spot spot = {r->name, 0, 0};
    ms_alloctext_op op = {.key = "oracle", .value = words(member(0, "oracle"))};
    ck_assert_int_eq(ms_alloctext_header(&spot, &op, &keep, &head, &fault),
                     MS_OK);
    for (uint32_t at = ms_json_first(&json, member(0, "header")); at != MS_NONE;
         at = next(at)) {
        op = (ms_alloctext_op){.value = words(at)};
        snprintf(op.key, sizeof op.key, "%s", json.nodes[at].key);
        ck_assert_msg(ms_alloctext_header(&spot, &op, &keep, &head, &fault) ==
                          MS_OK,
                      "%s", fault.what);
    }
    ck_assert_int_ge(head.version, 0);
    ms_torch_setup_init(setup, head.total_bytes);
    setup->base_bytes = head.base_bytes;
    setup->version = (ms_torch_version)head.version;
    setup->policy =
        head.policy < 0 ? MS_TORCH_BUMP : (ms_torch_policy)head.policy;
    setup->log = check_entry;
    setup->log_of = r;
    ck_assert_msg(ms_torchconf_parse(head.conf, r->name, MS_EINPUT,
                                     setup->version, &setup->options,
                                     &fault) == MS_OK,
                  "%s: %s", r->name, fault.what);
}

static void play_ops(reference *r)
{
    uint32_t expected = ms_json_first(&json, member(0, "expect"));
    uint32_t snapshot = ms_json_first(&json, member(0, "snapshots"));
    ms_alloctrace_spot spot = {r->name, 0, 0};
    for (uint32_t at = ms_json_first(&json, member(0, "ops")); at != MS_NONE;
         at = next(at), expected = next(expected)) {
        ms_alloctext_op op;
        ms_allocplay_row row;
        ms_fault fault = {0};
        spot.line++;
        ms_err err =
            ms_alloctext_line(&spot, words(at), strlen(words(at)), &op, &fault);
        if (err == MS_OK)
            err = ms_allocplay_do(&r->play, &spot, &op, &row, &fault);
        ck_assert_msg(err == MS_OK, "%s, op %u: %s", r->name, r->play.line,
                      fault.what);
        check_row(r, expected, &row);
        const char *broken = ms_torchview_check(r->play.pool);
        ck_assert_msg(broken == NULL, "%s, op %u: %s", r->name, r->play.line,
                      broken);
        if (op.kind != 's')
            continue;
        check_snapshot(r, snapshot);
        snapshot = next(snapshot);
    }
}

static void check_reference(const char *path)
{
    size_t length;
    char *bytes = unpack(path, &length);
    ms_fault fault = {0};
    ms_torch_setup setup;
    reference r = {.name = base_name(path)};
    ck_assert_msg(ms_json_read(r.name, bytes, length, &keep, &json, &fault) ==
                      MS_OK,
                  "%s", fault.what);
    r.entry = ms_json_first(&json, member(0, "device_trace"));
    read_head(&r, &setup);
    ck_assert_int_eq(ms_allocplay_start(&r.play,
                                        &(ms_pool_setup){.torch = setup}, &keep,
                                        &fault),
                     MS_OK);
    play_ops(&r);
    check_snapshot(&r, member(0, "final_snapshot"));
    check_stats(&r);
    truth_compare("allocator", r.name, "rows", r.n_rows,
                  r.n_rows - r.wrong_rows);
    truth_compare("allocator", r.name, "trace entries",
                  json.nodes[member(0, "device_trace")].value.n,
                  r.n_entries - r.wrong_entries);
    truth_compare("allocator", r.name, "snapshots", r.n_snapshots,
                  r.n_snapshots - r.wrong_snapshots);
    truth_compare("allocator", r.name, "statistics", r.n_stats,
                  r.n_stats - r.wrong_stats);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* ---- recorded histories -------------------------------------------------- */

static void check_recorded(const char *path)
{
    size_t length;
    char *bytes = unpack(path, &length);
    const char *name = base_name(path);
    ms_fault fault = {0};
    ms_recording recording;
    ms_torch_setup setup;
    ms_allocfollow follow;
    ms_allocplay_row row;
    ck_assert_msg(ms_recording_read(name, bytes, length, &keep, &recording,
                                    &fault) == MS_OK,
                  "%s: %s", fault.where, fault.what);
    ms_torch_setup_init(&setup, UINT64_C(80) << 30);
    setup.policy = MS_TORCH_GIVEN;
    ck_assert_int_eq(ms_torchconf_parse(recording.conf, name, MS_EINPUT,
                                        setup.version, &setup.options, &fault),
                     MS_OK);
    ms_err err = ms_allocfollow_start(&follow, &recording,
                                      &(ms_pool_setup){.torch = setup}, false,
                                      &keep, &fault);
    for (bool more = true; err == MS_OK && more;)
        err = ms_allocfollow_do(&follow, &row, &more, &fault);
    if (err == MS_OK)
        err = ms_allocfollow_end(&follow, &keep, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
    if (follow.result.n_different > 0)
        fprintf(stderr, "%s: event %u: %s\n", name, follow.result.first,
                follow.result.what);
    truth_compare("allocator", name, "differences", 0,
                  follow.result.n_different);
    truth_compare("allocator", name, "events", recording.n_events,
                  follow.result.n_addresses);
    truth_compare("allocator", name, "segment events", recording.n_answers,
                  follow.result.n_answers);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* ---- copied cases: a trace and its rows ---------------------------------- */

static char *read_all(const char *path, size_t *length)
{
    char *bytes;
    ms_fault fault = {0};
    ck_assert_msg(
        ms_files_read(path, 1u << 24, &keep, &bytes, length, &fault) == MS_OK,
        "%s: %s", fault.where, fault.what);
    return bytes;
}

/* Ends the line at *at with a NUL and moves *at behind it. */
static char *cut_line(char **at)
{
    char *line = *at;
    size_t length = strcspn(line, "\n");
    ck_assert_msg(line[length] == '\n', "no end of line");
    line[length] = '\0';
    *at = line + length + 1;
    return line;
}

static void start_copied(reference *r, char **at)
{
    ms_alloctext_head head = {.conf = "", .policy = -1, .version = -1};
    ms_alloctext_op op;
    ms_torch_setup setup;
    ms_fault fault = {0};
    ms_alloctrace_spot spot = {r->name, 0, 0};
    ms_err err = MS_OK;
    while (err == MS_OK && **at == '#') {
        const char *line = cut_line(at);
        err = ms_alloctext_line(&spot, line, strlen(line), &op, &fault);
        if (err == MS_OK)
            err = ms_alloctext_header(&spot, &op, &keep, &head, &fault);
    }
    ms_torch_setup_init(&setup, head.total_bytes);
    setup.base_bytes = head.base_bytes;
    setup.version = (ms_torch_version)head.version;
    setup.policy =
        head.policy < 0 ? MS_TORCH_BUMP : (ms_torch_policy)head.policy;
    if (err == MS_OK)
        err = ms_torchconf_parse(head.conf, r->name, MS_EINPUT, setup.version,
                                 &setup.options, &fault);
    if (err == MS_OK)
        err = ms_allocplay_start(&r->play, &(ms_pool_setup){.torch = setup},
                                 &keep, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", r->name, fault.what);
}

static void check_copied(const char *path)
{
    size_t length;
    char csv[TESTS_PATH];
    reference r = {.name = base_name(path)};
    char *ops = read_all(path, &length);
    snprintf(csv, sizeof csv, "%s", path);
    strcpy(strrchr(csv, '.'), ".csv");
    char *rows = read_all(csv, &length);
    cut_line(&rows); /* the first line has the names of the columns */
    start_copied(&r, &ops);
    ms_alloctrace_spot spot = {r.name, 0, 0};
    for (; *ops != '\0'; r.n_rows++) {
        ms_alloctext_op op;
        ms_allocplay_row row;
        ms_fault fault = {0};
        ms_text ours = {.arena = &trial};
        const char *line = cut_line(&ops), *truth = cut_line(&rows);
        spot.line++;
        ms_err err = ms_alloctext_line(&spot, line, strlen(line), &op, &fault);
        if (err == MS_OK)
            err = ms_allocplay_do(&r.play, &spot, &op, &row, &fault);
        ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
        put_line(&r.play, &row, &ours);
        ours.bytes[ours.length - 1] = '\0';
        const char *why = differ_texts(r.name, ours.bytes, truth);
        if (why != NULL && r.wrong_rows++ == 0)
            fprintf(stderr, "row %d of %s\n", (int)r.n_rows, why);
        ms_arena_reset(&trial);
    }
    truth_compare("allocator", r.name, "rows, copied", r.n_rows,
                  r.n_rows - r.wrong_rows);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* ---- all ----------------------------------------------------------------- */

static void each(const char *pattern, void (*check)(const char *path))
{
    glob_t found;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    truth_begin();
    for (size_t i = 0; i < found.gl_pathc; i++)
        check(found.gl_pathv[i]);
    globfree(&found);
    truth_end();
}

static void each_truth(const char *folder, void (*check)(const char *path))
{
    char path[TESTS_PATH], pattern[TESTS_PATH + 16];
    if (!tests_truth(folder, path))
        return;
    snprintf(pattern, sizeof pattern, "%s/*_*.json.gz", path);
    each(pattern, check);
}

START_TEST(copied_cases)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/allocator/rand_*.txt", path);
    each(path, check_copied);
}
END_TEST

START_TEST(reference_cases_row_by_row)
{
    each_truth("allocator/reference", check_reference);
}
END_TEST

START_TEST(recorded_histories)
{
    each_truth("allocator/recorded", check_recorded);
}
END_TEST

/* ---- recorded steps, planned --------------------------------------------- */

static uint64_t reserved_by_torch(const ms_recording *recording)
{
    ms_fault fault = {0};
    ms_pool_setup setup = {0};
    ms_torch_setup *torch = &setup.torch;
    ms_allocfollow follow;
    ms_allocplay_row row;
    ms_torch_setup_init(torch, UINT64_C(80) << 30);
    torch->policy = MS_TORCH_GIVEN;
    ck_assert_int_eq(ms_torchconf_parse(recording->conf, "conf", MS_EINPUT,
                                        torch->version, &torch->options,
                                        &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_allocfollow_start(&follow, recording, &setup, false, &keep, &fault),
        MS_OK);
    for (bool more = true; more;)
        ck_assert_int_eq(ms_allocfollow_do(&follow, &row, &more, &fault),
                         MS_OK);
    return ms_torchview_peak(follow.play.pool, MS_TORCH_RESERVED_BYTES);
}

static uint64_t height_by(const ms_placement_list *list, ms_placement_rule rule)
{
    uint64_t height;
    ms_fault fault = {0};
    uint64_t *offsets = ms_arena_take(&keep, list->n, sizeof *offsets);
    ck_assert_ptr_nonnull(offsets);
    ck_assert_int_eq(ms_placement_greedy(list->buffers, list->n, rule, offsets,
                                         &height, &fault),
                     MS_OK);
    return height;
}

static void check_plans(const truth_table *table, uint32_t row,
                        const char *path)
{
    ms_fault fault = {0};
    ms_placement_list list;
    ms_alloc_source source;
    const char *trace, *name = truth_cell(table, row, "case");
    uint64_t bound;
    ck_assert_int_eq(ms_alloc_lives_read(path, &keep, &trace, &list, &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_placement_bound(list.buffers, list.n, &keep, &bound, &fault), MS_OK);
    truth_compare("plans", name, "buffers", truth_number(table, row, "n"),
                  list.n);
    truth_compare("plans", name, "peak live bytes",
                  truth_number(table, row, "peak_live_rounded"), bound);
    truth_compare("plans", name, "greedy by size, bytes",
                  truth_number(table, row, "size_firstfit"),
                  height_by(&list, MS_PLACEMENT_SIZE));
    truth_compare("plans", name, "online best fit, bytes",
                  truth_number(table, row, "start_bestfit"),
                  height_by(&list, MS_PLACEMENT_START_BEST));
    ck_assert_int_eq(ms_alloc_read_open(&source, path, &keep, &fault), MS_OK);
    truth_compare("plans", name, "torch's peak reserved bytes",
                  truth_number(table, row, "torch_peak_reserved"),
                  reserved_by_torch(&source.recording));
    ms_alloc_read_close(&source);
}

START_TEST(recorded_steps_planned)
{
    char path[TESTS_PATH], plain[] = "/tmp/memsim-plan-XXXXXX";
    char command[TESTS_PATH + 160];
    truth_table table;
    truth_begin();
    truth_read_here("placement/recorded.tsv", &table);
    if (tests_truth("allocator/recorded", path)) {
        int file = mkstemp(plain);
        ck_assert_int_ge(file, 0);
        close(file);
        snprintf(command, sizeof command, "gzip -dc '%s/%s.json.gz' > '%s'",
                 path, truth_cell(&table, (uint32_t)_i, "case"), plain);
        ck_assert_int_eq(system(command), 0);
        check_plans(&table, (uint32_t)_i, plain);
        unlink(plain);
    }
    truth_end();
    ms_arena_free(&keep);
}
END_TEST

Suite *suite_allocator(void)
{
    Suite *suite = suite_create("allocator");
    TCase *tcase = tcase_create("allocator");
    tcase_add_test(tcase, copied_cases);
    tcase_add_test(tcase, reference_cases_row_by_row);
    tcase_add_test(tcase, recorded_histories);
    tcase_add_loop_test(tcase, recorded_steps_planned, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite;
}
