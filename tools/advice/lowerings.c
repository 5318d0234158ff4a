/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/advice/lowerings.h"

#include <string.h>

/* All graphs together; the last one stays however large it is. */
#define MOST_BYTES (UINT64_C(128) << 20)

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

bool ms_lowerings_are_same(const ms_training *training, const ms_shape *shape,
                           const ms_result *tried)
{
    return same_bytes(training, &tried->training, sizeof *training) &&
           same_bytes(shape, &tried->shape, sizeof *shape);
}

static bool is_for(const ms_lowering *it, const ms_job *job,
                   const ms_result *tried)
{
    return it->graph != NULL && it->device == job->device &&
           ms_lowerings_are_same(&it->training, &it->shape, tried);
}

static void drop(ms_lowering *it)
{
    ms_arena_free(&it->arena);
    *it = (ms_lowering){0};
}

static bool is_older(const ms_lowering *it, const ms_lowering *than)
{
    return than == NULL || it->used < than->used;
}

/* A free place, or that of the graph that was used longest ago. */
static ms_lowering *take_place(ms_lowerings *kept)
{
    for (;;) {
        ms_lowering *oldest = NULL, *found = NULL;
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < MS_LOWERINGS_MOST; i++) {
            ms_lowering *it = &kept->of[i];
            bytes += it->arena.used_bytes;
            if (it->graph == NULL)
                found = it;
            else if (is_older(it, oldest))
                oldest = it;
        }
        if (found != NULL && bytes <= MOST_BYTES)
            return found;
        drop(oldest);
    }
}

ms_err ms_lowerings_graph(ms_lowerings *kept, const ms_job *job,
                          ms_result *tried, ms_fault *fault)
{
    for (uint32_t i = 0; i < MS_LOWERINGS_MOST; i++)
        if (is_for(&kept->of[i], job, tried)) {
            kept->of[i].used = ++kept->uses;
            tried->graph = kept->of[i].graph;
            return MS_OK;
        }
    ms_lowering *it = take_place(kept);
    it->device = job->device;
    it->training = tried->training;
    it->shape = tried->shape;
    ms_err err = ms_jobway_graph(job, &it->arena, tried, fault);
    if (err != MS_OK) {
        drop(it);
        return err;
    }
    it->used = ++kept->uses;
    it->graph = tried->graph;
    return MS_OK;
}

void ms_lowerings_free(ms_lowerings *kept)
{
    for (uint32_t i = 0; i < MS_LOWERINGS_MOST; i++)
        drop(&kept->of[i]);
}
