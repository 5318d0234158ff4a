/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only malloc of the program.  An arena is a list of blocks, each twice the
 * size of the one before; take moves a mark forward in the current block.
 * reset moves the mark back to the first block and frees nothing, so that a
 * sweep of a thousand runs asks the system for memory as often as one run.
 *
 * A growing array of LONE_BYTES or more is alone in its block, so that the
 * next growth is a realloc: the system moves pages instead of copying them,
 * and no old copy stays behind. */
#include "sim/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address))
#endif

#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK_BYTES ((size_t)64 << 10)
#define DOUBLING_ENDS_BYTES ((size_t)256 << 20)
#define LONE_BYTES ((size_t)1 << 20)
#define SPOILT 0xdd

struct ms_block {
    ms_block *next;
    size_t capacity, used;
    bool lone; /* holds one growing array and is full */
    _Alignas(16) unsigned char bytes[];
};

static _Thread_local long fails_in;   /* mallocs until one fails; 0: never */
static _Thread_local long takes_left; /* until one fails; 0: never */
static _Thread_local bool moves_always;

long ms_arena_fail_after(long n)
{
    long left = fails_in;
    fails_in = n;
    return left;
}

long ms_arena_fail_take_after(long n)
{
    long left = takes_left;
    takes_left = n;
    return left;
}

void ms_arena_move_always(bool moves)
{
    moves_always = moves;
}

/* malloc for old == NULL. */
static ms_block *resize_block(ms_block *old, size_t capacity)
{
    size_t bytes;
    if (__builtin_add_overflow(capacity, sizeof(ms_block), &bytes))
        return NULL;
    if (fails_in > 0 && --fails_in == 0)
        return NULL;
    ms_block *block = realloc(old, bytes);
    if (block != NULL)
        block->capacity = capacity;
    return block;
}

static ms_block *append_block(ms_arena *arena, size_t capacity)
{
    ms_block **end = &arena->first;
    while (*end != NULL)
        end = &(*end)->next;
    ms_block *block = resize_block(NULL, capacity);
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->used = 0;
    block->lone = false;
    ASAN_POISON_MEMORY_REGION(block->bytes, capacity);
    *end = block;
    return block;
}

/* The first block after the mark that has room, or NULL. */
static ms_block *find_room(const ms_arena *arena, size_t bytes)
{
    ms_block *block = arena->current != NULL ? arena->current : arena->first;
    while (block != NULL && block->capacity - block->used < bytes)
        block = block->next;
    return block;
}

static ms_block *block_with_room(ms_arena *arena, size_t bytes)
{
    const ms_block *last = arena->current;
    ms_block *block = find_room(arena, bytes);
    if (block == NULL) {
        size_t capacity = FIRST_BLOCK_BYTES;
        if (last != NULL)
            capacity = last->capacity < DOUBLING_ENDS_BYTES
                           ? 2 * last->capacity
                           : DOUBLING_ENDS_BYTES;
        block = append_block(arena, bytes > capacity ? bytes : capacity);
    }
    if (block != NULL)
        arena->current = block;
    return block;
}

static bool within_limit(const ms_arena *arena, size_t bytes)
{
    if (takes_left > 0 && --takes_left == 0)
        return false;
    return arena->limit_bytes == 0 ||
           (arena->used_bytes <= arena->limit_bytes &&
            bytes <= arena->limit_bytes - arena->used_bytes);
}

void *ms_arena_take_raw(ms_arena *arena, size_t n, size_t size)
{
    size_t bytes, rounded;
    if (__builtin_mul_overflow(n, size, &bytes) ||
        __builtin_add_overflow(bytes, ALIGNMENT - 1, &rounded))
        return NULL;
    rounded &= ~(ALIGNMENT - 1);
    if (rounded == 0)
        rounded = ALIGNMENT;
    if (!within_limit(arena, rounded))
        return NULL;
    ms_block *block = block_with_room(arena, rounded);
    if (block == NULL)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += rounded;
    arena->used_bytes += rounded;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

void *ms_arena_take(ms_arena *arena, size_t n, size_t size)
{
    void *memory = ms_arena_take_raw(arena, n, size);
    if (memory != NULL)
        memset(memory, 0, n * size);
    return memory;
}

/* ---- growing arrays ------------------------------------------------------ */

/* The link to the block of a lone array, or NULL. */
static ms_block **find_lone(ms_arena *arena, const void *items)
{
    ms_block **link = &arena->first;
    while (*link != NULL && !((*link)->lone && (*link)->bytes == items))
        link = &(*link)->next;
    return *link != NULL ? link : NULL;
}

/* A whole block for one array: an empty one (after a reset) or a new one. */
static void *take_lone(ms_arena *arena, size_t bytes)
{
    ms_block *block = find_room(arena, bytes);
    while (block != NULL && (block->used > 0 || block->capacity < bytes))
        block = block->next;
    if (!within_limit(arena, bytes))
        return NULL;
    if (block == NULL)
        block = append_block(arena, bytes);
    if (block == NULL)
        return NULL;
    block->lone = true;
    block->used = block->capacity;
    arena->used_bytes += block->capacity;
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
    return block->bytes;
}

static void *resize_lone(ms_arena *arena, ms_block **link, size_t bytes)
{
    size_t was = (*link)->capacity;
    if (bytes <= was)
        return (*link)->bytes;
    if (!within_limit(arena, bytes - was))
        return NULL;
    ms_block *block = resize_block(*link, bytes);
    if (block == NULL)
        return NULL;
    block->used = block->capacity;
    arena->used_bytes += bytes - was;
    *link = block;
    return block->bytes;
}

static void *grow_small(ms_arena *arena, void *items, size_t was, size_t bytes)
{
    void *grown = ms_arena_take_raw(arena, bytes, 1);
    if (grown != NULL && items != NULL)
        memcpy(grown, items, was);
    if (grown != NULL && items != NULL && moves_always) {
        memset(items, SPOILT, was);
        ASAN_POISON_MEMORY_REGION(items, was);
    }
    return grown;
}

static void *grow_large(ms_arena *arena, void *items, size_t was, size_t bytes)
{
    ms_block **link = items == NULL ? NULL : find_lone(arena, items);
    if (link != NULL)
        return resize_lone(arena, link, bytes);
    void *grown = take_lone(arena, bytes);
    if (grown != NULL && items != NULL)
        memcpy(grown, items, was);
    return grown;
}

void *ms_arena_grow(ms_arena *arena, void *items, uint32_t *capacity,
                    uint32_t need, size_t size)
{
    if (items != NULL && need <= *capacity)
        return items;
    uint64_t wanted = items == NULL ? 16 : 2 * (uint64_t)*capacity;
    if (moves_always)
        wanted = need + (uint64_t)need / 8;
    if (wanted < need)
        wanted = need;
    if (wanted > UINT32_MAX)
        wanted = UINT32_MAX;
    size_t bytes, was = items == NULL ? 0 : (size_t)*capacity * size;
    if (__builtin_mul_overflow((size_t)wanted, size, &bytes))
        return NULL;
    void *grown = bytes < LONE_BYTES || moves_always
                      ? grow_small(arena, items, was, bytes)
                      : grow_large(arena, items, was, bytes);
    if (grown != NULL)
        *capacity = (uint32_t)wanted;
    return grown;
}

char *ms_arena_text(ms_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = ms_arena_take_raw(arena, length + 1, 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *ms_arena_format(ms_arena *arena, const char *format, ...)
{
    char most[128]; /* of what is ever formatted fits: once is enough */
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(most, sizeof most, format, args);
    va_end(args);
    char *text = NULL;
    if (length >= 0)
        text = ms_arena_take_raw(arena, (size_t)length + 1, 1);
    if (text != NULL && (size_t)length < sizeof most)
        memcpy(text, most, (size_t)length + 1);
    else if (text != NULL)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void ms_arena_reset(ms_arena *arena)
{
    for (ms_block *block = arena->first; block != NULL; block = block->next) {
        block->used = 0;
        block->lone = false;
        ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
    }
    arena->current = arena->first;
    arena->used_bytes = 0;
}

void ms_arena_free(ms_arena *arena)
{
    ms_block *block = arena->first;
    while (block != NULL) {
        ms_block *next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
        free(block);
        block = next;
    }
    arena->first = NULL;
    arena->current = NULL;
    arena->used_bytes = 0;
}
