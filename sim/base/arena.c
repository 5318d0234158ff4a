/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only malloc of the program.  An arena is a list of blocks, each twice the
 * size of the one before; take moves a mark forward in the current block.
 * reset moves the mark back to the first block and frees nothing, so that a
 * sweep of a thousand runs asks the system for memory as often as one run.
 *
 * What takes LONE_BYTES or more is alone in a block of its own, so that it can
 * grow without a copy left behind, and what is dropped goes back at once.  Lone
 * blocks stay so for life, or a reset would find them in pieces.
 *
 * Blocks of MAPS_BYTES or more are pages of the system's and not malloc's: they
 * leave no holes in its heap, growing moves pages and copies nothing, and what
 * must be zero is not written.  In a large arena smaller ones are, too: beside
 * what it holds fresh pages are little, and holes are much.  Huge pages are not
 * asked for: where memory is reclaimed behind the program, replays of 17
 * million ops took five times as long with them. */
#define _GNU_SOURCE /* mremap */
#include "sim/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

#if defined(MREMAP_MAYMOVE) && !defined(HAS_ASAN) /* which looks for leaks */
#define MAPS_BYTES ((size_t)32 << 20)
#define MAPS_SMALLER_BYTES ((size_t)2 << 20) /* with LARGE_BYTES in use */
#else
#define MAPS_BYTES SIZE_MAX
#define MAPS_SMALLER_BYTES SIZE_MAX
#endif
#define LARGE_BYTES ((size_t)64 << 20)

/* What is dropped waits, if it is smaller or the arena was reset before and so
 * will be again, for the next that takes as much: pages that come fresh each
 * time cost a run of a sweep ten times its own. */
#define GOES_BYTES ((size_t)16 << 20)
#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK_BYTES ((size_t)64 << 10)
#define DOUBLING_ENDS_BYTES ((size_t)256 << 20)
#define LONE_BYTES ((size_t)1 << 20)
#define SPOILT 0xdd

struct ms_block {
    ms_block *next;
    size_t capacity, used;
    bool lone;   /* holds one thing and is full, or (used 0) nothing */
    bool mapped; /* pages of the system's */
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

/* The bytes of a block for the system; 0: too many, or it is to fail. */
static size_t bytes_of(size_t capacity)
{
    size_t bytes;
    if (__builtin_add_overflow(capacity, sizeof(ms_block), &bytes))
        return 0;
    return fails_in > 0 && --fails_in == 0 ? 0 : bytes;
}

static bool maps(const ms_arena *arena, size_t capacity)
{
    return capacity >= MAPS_BYTES ||
           (capacity >= MAPS_SMALLER_BYTES && arena->used_bytes >= LARGE_BYTES);
}

static void *map_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static void *move_pages(void *pages, size_t was, size_t bytes)
{
#ifdef MREMAP_MAYMOVE
    pages = mremap(pages, was, bytes, MREMAP_MAYMOVE);
    return pages == MAP_FAILED ? NULL : pages;
#else
    (void)pages;
    (void)was;
    (void)bytes;
    return NULL;
#endif
}

static ms_block *new_block(size_t capacity, bool mapped, bool zeroed)
{
    size_t bytes = bytes_of(capacity);
    if (bytes == 0)
        return NULL;
    ms_block *block = mapped   ? map_pages(bytes)
                      : zeroed ? calloc(1, bytes)
                               : malloc(bytes);
    if (block != NULL)
        block->mapped = mapped;
    return block;
}

static ms_block *grow_block(ms_block *block, size_t capacity, bool mapped)
{
    size_t was = sizeof *block + block->capacity, bytes = bytes_of(capacity);
    if (bytes == 0)
        return NULL;
    if (block->mapped)
        return move_pages(block, was, bytes);
    if (!mapped)
        return realloc(block, bytes);
    ms_block *grown = map_pages(bytes);
    if (grown == NULL)
        return NULL;
    memcpy(grown, block, was);
    grown->mapped = true;
    free(block);
    return grown;
}

static void free_block(ms_block *block)
{
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
    if (block->mapped)
        munmap(block, sizeof *block + block->capacity);
    else
        free(block);
}

static ms_block *append_block(ms_arena *arena, size_t capacity, bool lone,
                              bool zeroed)
{
    ms_block **end = &arena->first;
    while (*end != NULL)
        end = &(*end)->next;
    ms_block *block = new_block(capacity, maps(arena, capacity), zeroed);
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->capacity = capacity;
    block->used = 0;
    block->lone = lone;
    ASAN_POISON_MEMORY_REGION(block->bytes, capacity);
    *end = block;
    return block;
}

/* The first shared block from the mark on that has room, or a new one. */
static ms_block *block_with_room(ms_arena *arena, size_t bytes)
{
    size_t capacity = FIRST_BLOCK_BYTES;
    ms_block *block = arena->current != NULL ? arena->current : arena->first;
    for (; block != NULL; block = block->next) {
        if (block->lone)
            continue;
        if (block->capacity - block->used >= bytes)
            break;
        capacity = block->capacity < DOUBLING_ENDS_BYTES ? 2 * block->capacity
                                                         : DOUBLING_ENDS_BYTES;
    }
    if (block == NULL)
        block = append_block(arena, bytes > capacity ? bytes : capacity, false,
                             false);
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

/* The smallest empty lone block that has room, or NULL. */
static ms_block *find_empty(const ms_arena *arena, size_t bytes)
{
    ms_block *found = NULL;
    for (ms_block *block = arena->first; block != NULL; block = block->next)
        if (block->lone && block->used == 0 && block->capacity >= bytes &&
            (found == NULL || block->capacity < found->capacity))
            found = block;
    return found;
}

/* A whole block for one thing: an empty one (after a reset) or a new one. */
static void *take_lone(ms_arena *arena, size_t bytes, bool zeroed)
{
    ms_block *block = find_empty(arena, bytes), *empty = block;
    if (!within_limit(arena, bytes))
        return NULL;
    if (block == NULL)
        block = append_block(arena, bytes, true, zeroed);
    if (block == NULL)
        return NULL;
    block->used = block->capacity;
    arena->used_bytes += block->capacity;
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->capacity);
    if (zeroed && empty != NULL)
        memset(block->bytes, 0, bytes);
    return block->bytes;
}

static void *take_shared(ms_arena *arena, size_t bytes, size_t rounded,
                         bool zeroed)
{
    if (!within_limit(arena, rounded))
        return NULL;
    ms_block *block = block_with_room(arena, rounded);
    if (block == NULL)
        return NULL;
    void *memory = block->bytes + block->used;
    block->used += rounded;
    arena->used_bytes += rounded;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    if (zeroed)
        memset(memory, 0, bytes);
    return memory;
}

static inline void *take(ms_arena *arena, size_t n, size_t size, bool zeroed)
{
    size_t bytes, rounded;
    if (__builtin_mul_overflow(n, size, &bytes) ||
        __builtin_add_overflow(bytes, ALIGNMENT - 1, &rounded))
        return NULL;
    rounded &= ~(ALIGNMENT - 1);
    if (rounded == 0)
        rounded = ALIGNMENT;
    return rounded < LONE_BYTES ? take_shared(arena, bytes, rounded, zeroed)
                                : take_lone(arena, rounded, zeroed);
}

void *ms_arena_take_raw(ms_arena *arena, size_t n, size_t size)
{
    return take(arena, n, size, false);
}

void *ms_arena_take(ms_arena *arena, size_t n, size_t size)
{
    return take(arena, n, size, true);
}

/* The link to the block of what lies alone, or NULL. */
static ms_block **find_lone(ms_arena *arena, const void *items)
{
    ms_block **link = &arena->first;
    while (*link != NULL && !((*link)->lone && (*link)->bytes == items))
        link = &(*link)->next;
    return *link != NULL ? link : NULL;
}

void ms_arena_drop(ms_arena *arena, void *items)
{
    ms_block **link = items == NULL ? NULL : find_lone(arena, items);
    if (link == NULL)
        return;
    ms_block *block = *link;
    arena->used_bytes -= block->used;
    if ((block->capacity < GOES_BYTES && !block->mapped) || arena->again) {
        block->used = 0;
        ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
        return;
    }
    *link = block->next;
    free_block(block);
}

/* ---- growing arrays ------------------------------------------------------ */

/* Into a block that an earlier run has left: pages that are there already. */
static void *move_to(ms_arena *arena, ms_block *from, ms_block *to)
{
    ASAN_UNPOISON_MEMORY_REGION(to->bytes, to->capacity);
    memcpy(to->bytes, from->bytes, from->capacity);
    to->used = to->capacity;
    from->used = 0;
    ASAN_POISON_MEMORY_REGION(from->bytes, from->capacity);
    arena->used_bytes += to->capacity - from->capacity;
    return to->bytes;
}

static void *resize_lone(ms_arena *arena, ms_block **link, size_t bytes)
{
    size_t was = (*link)->capacity;
    if (bytes <= was)
        return (*link)->bytes;
    if (!within_limit(arena, bytes - was))
        return NULL;
    ms_block *empty = find_empty(arena, bytes);
    if (empty != NULL)
        return move_to(arena, *link, empty);
    ms_block *block = grow_block(*link, bytes, maps(arena, bytes));
    if (block == NULL)
        return NULL;
    block->used = block->capacity = bytes;
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
    void *grown = take_lone(arena, bytes, false);
    if (grown != NULL && items != NULL)
        memcpy(grown, items, was);
    return grown;
}

void *ms_arena_grow_more(ms_arena *arena, void *items, uint32_t *capacity,
                         uint32_t need, size_t size)
{
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

void ms_arena_shrink(ms_arena *arena, void *items, uint32_t *capacity,
                     uint32_t need, size_t size)
{
    ms_block **link = items == NULL ? NULL : find_lone(arena, items);
    ms_block *block = link == NULL ? NULL : *link;
    size_t bytes = need * size;
    if (block == NULL || !block->mapped || bytes >= block->capacity)
        return;
    if (bytes == 0)
        bytes = size;
    size_t head = sizeof *block; /* to fewer pages it does not move */
    if (move_pages(block, head + block->capacity, head + bytes) == NULL)
        return;
    arena->used_bytes -= block->capacity - bytes;
    block->used = block->capacity = bytes;
    *capacity = (uint32_t)(bytes / size);
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
        ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
    }
    arena->current = NULL;
    arena->used_bytes = 0;
    arena->again = true;
}

void ms_arena_hand_over(ms_arena *from, ms_arena *to)
{
    ms_block **end = &to->first, **link = &from->first;
    while (*end != NULL)
        end = &(*end)->next;
    while (*link != NULL) {
        ms_block *block = *link;
        if (!block->lone) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        block->next = NULL;
        block->used = 0;
        ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
        *end = block;
        end = &block->next;
    }
}

void ms_arena_trim(ms_arena *arena)
{
    ms_block **link = &arena->first;
    while (*link != NULL) {
        ms_block *block = *link;
        if (!block->lone || block->used > 0) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        free_block(block);
    }
}

void ms_arena_free(ms_arena *arena)
{
    ms_block *block = arena->first;
    while (block != NULL) {
        ms_block *next = block->next;
        free_block(block);
        block = next;
    }
    arena->first = NULL;
    arena->current = NULL;
    arena->used_bytes = 0;
}
