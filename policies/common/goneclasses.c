/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/goneclasses.h"

#define COLUMNS 6u

size_t ms_goneclasses_size(uint32_t n)
{
    size_t rows = (size_t)n + 2; /* two more: rows of an even number of words */
    return rows / 2 * 2 * (sizeof(int64_t) + COLUMNS * sizeof(uint32_t));
}

void ms_goneclasses_open(ms_goneclasses *classes, void *memory, uint32_t n)
{
    size_t rows = ((size_t)n + 2) / 2 * 2;
    classes->n = n;
    classes->sum_ns = memory;
    classes->class_of = (uint32_t *)(classes->sum_ns + rows);
    classes->next = classes->class_of + rows;
    classes->back = classes->next + rows;
    classes->first = classes->back + rows;
    classes->size = classes->first + rows;
    classes->free = classes->size + rows;
}

/* The item is put before all others of the class. */
static void put(ms_goneclasses *c, uint32_t item, uint32_t class)
{
    uint32_t behind = c->first[class];
    c->class_of[item] = class;
    c->next[item] = behind;
    c->back[item] = 0;
    if (behind != 0)
        c->back[behind] = item;
    c->first[class] = item;
    c->size[class]++;
}

static void drop_class(ms_goneclasses *c, uint32_t class)
{
    c->first[class] = c->size[class] = 0;
    c->free[c->n_free++] = class;
}

void ms_goneclasses_join(ms_goneclasses *classes, uint32_t item, uint64_t ns)
{
    uint32_t class = classes->n_free > 0 ? classes->free[--classes->n_free]
                                         : ++classes->n_named;
    classes->sum_ns[class] = (int64_t)ns;
    put(classes, item + 1, class);
}

void ms_goneclasses_merge(ms_goneclasses *classes, uint32_t a, uint32_t b)
{
    uint32_t to = classes->class_of[a + 1], from = classes->class_of[b + 1];
    if (to == from)
        return;
    if (classes->size[to] < classes->size[from]) {
        uint32_t other = to;
        to = from;
        from = other;
    }
    classes->sum_ns[to] += classes->sum_ns[from];
    for (uint32_t item = classes->first[from], next; item != 0; item = next) {
        next = classes->next[item];
        put(classes, item, to);
    }
    drop_class(classes, from);
}

void ms_goneclasses_leave(ms_goneclasses *classes, uint32_t item, uint64_t ns)
{
    uint32_t i = item + 1, class = classes->class_of[i];
    uint32_t next = classes->next[i], back = classes->back[i];
    if (back != 0)
        classes->next[back] = next;
    else
        classes->first[class] = next;
    if (next != 0)
        classes->back[next] = back;
    classes->class_of[i] = 0;
    classes->sum_ns[class] -= (int64_t)ns;
    if (--classes->size[class] == 0)
        drop_class(classes, class);
}
