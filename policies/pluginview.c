/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of plugin.h by which a victim is found. */
#include "policies/pluginstep.h"
#include "sim/graph.h"
#include "sim/online.h"

const void *ms_pluginview_setup(const ms_pluginview *view)
{
    return view->setup;
}

void *ms_pluginview_memory(const ms_pluginview *view)
{
    return view->memory;
}

uint32_t ms_pluginview_n_here(const ms_pluginview *view)
{
    return view->n_here;
}

uint32_t ms_pluginview_here(const ms_pluginview *view, uint32_t i)
{
    return i < view->n_here ? view->here[i] : MS_PLUGIN_NONE;
}

uint64_t ms_pluginview_bytes(const ms_pluginview *view, uint32_t storage)
{
    const ms_graph *graph = view->of->graph;
    return storage < graph->n_storages ? graph->storage_bytes[storage] : 0;
}

bool ms_pluginview_is_gone(const ms_pluginview *view, uint32_t storage)
{
    return storage < view->of->graph->n_storages &&
           ms_online_gone(view->of, storage);
}

uint64_t ms_pluginview_level(const ms_pluginview *view)
{
    return view->of->level_bytes;
}

uint64_t ms_pluginview_missing(const ms_pluginview *view)
{
    return view->of->missing_bytes;
}

uint64_t ms_pluginview_now_ns(const ms_pluginview *view)
{
    return view->of->now_ns;
}

uint64_t ms_pluginview_used_ns(const ms_pluginview *view, uint32_t storage)
{
    return storage < view->of->graph->n_storages ? view->of->used_ns[storage]
                                                 : 0;
}
