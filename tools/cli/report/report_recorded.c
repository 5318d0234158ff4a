/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recorded memory snapshot of PyTorch as a variant of the page. */

#include "plots/page/htmlpage.h"
#include "sim/names.h"
#include "tools/cli/report/report.h"
#include "tools/recordings/recordedfile.h"
#include "tools/recordings/recordedlives.h"
#include "tools/terminal/quantity.h"

#include <stdlib.h>
#include <string.h>

/* What is alive at the peak and was asked for by one stack. */
typedef struct group {
    uint64_t bytes;
    uint32_t site, count; /* site: MS_NONE as n_sites */
    uint8_t category;
} group;

typedef struct recorded {
    const char *path;
    ms_arena *arena;
    ms_recording recording;
    ms_pagelives page;
    uint32_t peak_state, n_held;
    uint64_t peak_bytes, held_bytes;
    group *groups;
    uint32_t n_groups;
    uint32_t *group_of; /* by life */
} recorded;

static ms_err read_lives(recorded *r, ms_fault *fault)
{
    ms_pagelife *lives;
    MS_TRY(ms_recordedfile_read(r->path, r->arena, &r->recording, fault));
    MS_TRY(ms_recordedlives_find(&r->recording, r->arena, &lives, &r->page.n,
                                 &r->page.n_states, fault));
    r->page.lives = lives;
    r->page.words = r->recording.sites;
    r->page.n_words = r->recording.n_sites;
    if (r->page.n == 0)
        return ms_fail(fault, MS_EINPUT, r->path,
                       "did the recording begin before the first allocation?",
                       "there is nothing in it: no allocation");
    return MS_OK;
}

/* ---- the peak ------------------------------------------------------------ */

static ms_err find_peak(recorded *r, ms_fault *fault)
{
    uint32_t n = r->page.n_states;
    int64_t *change = ms_arena_take(r->arena, n + 2, sizeof *change);
    uint64_t level = 0;
    if (change == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < r->page.n; i++) {
        const ms_pagelife *life = &r->page.lives[i];
        change[life->from] += (int64_t)life->bytes;
        if (life->to != MS_NONE)
            change[life->to] -= (int64_t)life->bytes;
        r->n_held += life->held;
        r->held_bytes += life->held ? life->bytes : 0;
    }
    for (uint32_t s = 1; s <= n; s++) {
        level += (uint64_t)change[s];
        if (level > r->peak_bytes) {
            r->peak_bytes = level;
            r->peak_state = s;
        }
    }
    return MS_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static bool is_alive(const recorded *r, const ms_pagelife *life)
{
    return life->from <= r->peak_state &&
           (life->to == MS_NONE || life->to > r->peak_state);
}

static ms_err find_groups(recorded *r, ms_fault *fault)
{
    uint32_t n = r->recording.n_sites + 1;
    uint32_t *index = ms_arena_take(r->arena, n, sizeof *index);
    r->groups = ms_arena_take(r->arena, n, sizeof *r->groups);
    r->group_of = ms_arena_take(r->arena, r->page.n, sizeof *r->group_of);
    if (index == NULL || r->groups == NULL || r->group_of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        r->groups[i].site = i;
    for (uint32_t i = 0; i < r->page.n; i++) {
        const ms_pagelife *life = &r->page.lives[i];
        group *of = &r->groups[life->site == MS_NONE ? n - 1 : life->site];
        if (!is_alive(r, life))
            continue;
        of->bytes += life->bytes;
        of->count++;
        of->category = life->category;
    }
    qsort(r->groups, n, sizeof *r->groups, by_bytes);
    for (uint32_t g = 0; g < n; g++) {
        index[r->groups[g].site] = g;
        r->n_groups += r->groups[g].count > 0;
    }
    for (uint32_t i = 0; i < r->page.n; i++) {
        const ms_pagelife *life = &r->page.lives[i];
        uint32_t site = life->site == MS_NONE ? n - 1 : life->site;
        r->group_of[i] = is_alive(r, life) ? index[site] : MS_NONE;
    }
    r->page.group_of = r->group_of;
    return MS_OK;
}

/* ---- the object ---------------------------------------------------------- */

static void put_string(const char *key, const ms_text *value, ms_text *text)
{
    text->failed |= value->failed;
    ms_text_add(text, "\"%s\":", key);
    ms_text_json(text, value->failed ? "" : value->bytes);
    ms_text_add(text, ",");
}

static void put_words(const recorded *r, ms_text *text)
{
    ms_text title = {.arena = r->arena}, subtitle = title, verdict = title;
    const char *slash = strrchr(r->path, '/');
    ms_text_add(&title, "%s, recorded", slash != NULL ? slash + 1 : r->path);
    ms_text_add(&subtitle, "a memory snapshot of PyTorch; device %u, %s events",
                r->recording.device, ms_quantity_count(r->page.n_states).s);
    ms_text_add(&verdict, "%s allocated at most, by event %s",
                ms_quantity_size(r->peak_bytes).s,
                ms_quantity_count(r->peak_state).s);
    put_string("name", &title, text);
    put_string("title", &title, text);
    put_string("subtitle", &subtitle, text);
    put_string("verdict", &verdict, text);
}

static void put_facts(const recorded *r, ms_text *text)
{
    ms_text held = {.arena = r->arena};
    ms_text_add(&held, "%s blocks, %s", ms_quantity_count(r->n_held).s,
                ms_quantity_size(r->held_bytes).s);
    text->failed |= held.failed;
    ms_text_add(text,
                "\"numbers\":[[\"Peak allocated\",\"%s\"],"
                "[\"Allocations\",\"%s\"]],\"accuracy\":[],\"facts\":"
                "[[\"There at the start\",\"%s\"],[\"Read from\",",
                ms_quantity_size(r->peak_bytes).s,
                ms_quantity_count(r->page.n - r->n_held).s,
                held.failed ? "" : held.bytes);
    ms_text_json(text, r->path);
    ms_text_add(text, "]],");
}

static void put_group(const recorded *r, const group *of, ms_text *text)
{
    bool has_stack = of->site < r->recording.n_sites;
    ms_text why = {.arena = r->arena};
    ms_text_add(&why, "%u allocation%s of this stack", of->count,
                of->count > 1 ? "s" : "");
    text->failed |= why.failed;
    ms_text_add(text, "{\"bytes\":");
    ms_text_u64(text, of->bytes);
    ms_text_add(text, ",\"category\":\"%s\",\"name\":",
                of->category < MS_N_CATEGORIES ? ms_names_category[of->category]
                                               : "recorded");
    ms_text_json(text,
                 has_stack ? r->recording.sites[of->site] : "without a stack");
    ms_text_add(text, ",\"why\":");
    ms_text_json(text, why.failed ? "" : why.bytes);
    ms_text_add(text, ",\"less\":[]}");
}

static ms_err put_groups(const recorded *r, ms_report_page *page,
                         ms_fault *fault)
{
    page->groups =
        ms_arena_take(r->arena, r->n_groups + 1u, sizeof *page->groups);
    if (page->groups == NULL)
        return ms_fail_nomem(fault);
    page->n_groups = r->n_groups;
    for (uint32_t g = 0; g < r->n_groups; g++) {
        page->groups[g].arena = r->arena;
        put_group(r, &r->groups[g], &page->groups[g]);
    }
    return MS_OK;
}

ms_err ms_report_recorded_read(const char *path, ms_report_page *page,
                               ms_fault *fault)
{
    recorded r = {.path = path, .arena = page->arena};
    ms_text *text = &page->head, search = {.arena = page->arena};
    MS_TRY(read_lives(&r, fault));
    MS_TRY(find_peak(&r, fault));
    MS_TRY(find_groups(&r, fault));
    put_words(&r, text);
    ms_text_add(text,
                "\"refused\":null,\"fits\":null,\"usable_bytes\":0,"
                "\"command\":null,\"most_alive\":%u,",
                MS_REPORT_MOST_ALIVE);
    put_facts(&r, text);
    MS_TRY(put_groups(&r, page, fault));
    ms_text_add(&search,
                "memsim alloc %s --allocator torch --allocator "
                "torch,expandable_segments=True",
                path);
    ms_text_add(text, "\"whatif\":[],\"search\":");
    text->failed |= search.failed;
    ms_text_json(text, search.failed ? "" : search.bytes);
    page->lives = r.page;
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
