/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/selective/oplists.h"
#include "sim/graph.h"
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

#define MOST 128u
#define MOST_NAMES 256u

/* "torch.ops.aten.mm.default" as "aten::mm". */
static void spell(const char *at, size_t length, char name[MOST])
{
    static const char prefix[] = "torch.ops.";
    size_t n = 0, dots = 0;
    if (length > sizeof prefix && memcmp(at, prefix, sizeof prefix - 1) == 0) {
        at += sizeof prefix - 1;
        length -= sizeof prefix - 1;
    }
    for (size_t i = 0; i < length && n + 3 < MOST; i++) {
        dots += at[i] == '.';
        if (dots == 2)
            break;
        if (at[i] == '.')
            name[n++] = ':';
        name[n++] = at[i] == '.' ? ':' : at[i];
    }
    name[n] = '\0';
}

/* The names of forward's ops, each once, as far as there is room. */
static uint32_t list_names(const ms_graph *graph, const char **names)
{
    uint32_t n = 0, end = graph->forward_at[graph->n_units];
    for (uint32_t op = 0; op < end && n < MOST_NAMES; op++) {
        uint32_t i = 0;
        while (i < n && strcmp(names[i], graph->op_name[op]) != 0)
            i++;
        if (i == n)
            names[n++] = graph->op_name[op];
    }
    return n;
}

static ms_err refuse(const ms_graph *graph, const char *name, const char *where,
                     ms_fault *fault)
{
    const char *names[MOST_NAMES];
    char hint[192];
    uint32_t n = list_names(graph, names);
    const char *nearest = ms_names_nearest(name, names, n);
    if (nearest != NULL)
        snprintf(hint, sizeof hint, "did you mean %.100s?", nearest);
    else
        snprintf(hint, sizeof hint,
                 "memsim run MODEL --dump graph lists its ops");
    return ms_fail(fault, MS_EUSAGE, where, hint,
                   "the model's forward runs no op %s", name);
}

ms_err ms_oplists_find(const ms_graph *graph, const char *list,
                       const char *where, ms_arena *arena, uint8_t **listed,
                       ms_fault *fault)
{
    uint32_t end = graph->forward_at[graph->n_units];
    *listed = ms_arena_take(arena, end + 1u, 1);
    if (*listed == NULL)
        return ms_fail_nomem(fault);
    for (bool more = true; more;) {
        char name[MOST];
        bool found = false;
        size_t length = strcspn(list, "/");
        spell(list, length, name);
        for (uint32_t op = 0; op < end; op++)
            if (strcmp(name, graph->op_name[op]) == 0) {
                (*listed)[op] = 1;
                found = true;
            }
        if (!found)
            return refuse(graph, name, where, fault);
        more = list[length] != '\0';
        list += length + more;
    }
    return MS_OK;
}
