/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_BASE_H
#define MS_SIM_BASE_H

/* The part of sim/ that knows nothing of simulation: faults, arenas,
 * texts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS_VERSION "0.1.0"
#define MS_NONE UINT32_MAX

/* ---- fail.c: errors ------------------------------------------------------ */

/* Values are gapped by the exit status they lead to (`memsim help exit`). */
typedef enum ms_err {
    MS_OK = 0,
    MS_EUSAGE = 20,     /* bad option or policy spelling: exit 2 */
    MS_EINPUT = 30,     /* bad model, program or data file: exit 3 */
    MS_ESYSTEM = 40,    /* the operating system said no: exit 4 */
    MS_ENOMEM = 41,     /* out of host memory: exit 4 */
    MS_EPROGRAM = 50,   /* an external program is missing or failed: exit 5 */
    MS_EINFEASIBLE = 60 /* no plan satisfies the request: exit 6 */
} ms_err;

/* What went wrong, in three parts: where, what, what to do next.  The first
 * failure wins: a filled fault is never overwritten.  source and caret
 * (column from 0, -1 for none) quote the offending line of input. */
typedef struct ms_fault {
    ms_err err;
    int caret;
    char where[256];
    char what[512];
    char hint[384];
    char source[200];
} ms_fault;

/* Fills the fault (where and hint may be NULL) and returns err. */
ms_err ms_fail(ms_fault *fault, ms_err err, const char *where, const char *hint,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
ms_err ms_fail_nomem(ms_fault *fault);
/* Does err say no to the job (usage, input, infeasible)?  The other statuses
 * come from the host machine and tell nothing about the job. */
bool ms_fail_is_refusal(ms_err err);
/* For a trial on the side that has a fault of its own: where the job is
 * refused, MS_OK is returned and the refusal forgotten; any other error is
 * returned and fills the fault. */
ms_err ms_fail_but_refusal(ms_err err, const ms_fault *own, ms_fault *fault);

/* A place in a text that the user wrote. */
typedef struct ms_quote {
    const char *name, *bytes; /* name: the file's */
    size_t length, offset;
} ms_quote;

/* The same with where = "name:line:column" and the line quoted. */
ms_err ms_fail_at(ms_fault *fault, ms_err err, const ms_quote *at,
                  const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Only quotes: fills source and caret.  Call it before ms_fail; it leaves a
 * filled fault alone. */
void ms_fail_quote(ms_fault *fault, const char *bytes, size_t length,
                   size_t offset);

#define MS_TRY(call)                                                           \
    do {                                                                       \
        ms_err try_err_ = (call);                                              \
        if (try_err_ != MS_OK)                                                 \
            return try_err_;                                                   \
    } while (0)

/* ---- arena.c: memory ----------------------------------------------------- */

/* Two arenas with names that say how long: keep (a model's life) and trial
 * (reset for each run of a sweep).  Nothing must be freed singly.  take returns
 * zeroed memory, take_raw uninitialised memory, both aligned to 16 bytes;
 * NULL on overflow of n * size or exhaustion.  reset keeps the blocks. */
typedef struct ms_block ms_block;
typedef struct ms_arena {
    ms_block *first, *current;
    uint64_t limit_bytes; /* 0: no limit; else take fails beyond it */
    uint64_t used_bytes;
    bool again; /* it was reset */
} ms_arena;

void *ms_arena_take(ms_arena *arena, size_t n, size_t size);
void *ms_arena_take_raw(ms_arena *arena, size_t n, size_t size);
/* Grows an array of *capacity items to at least need items (doubling); the
 * old copy must not be used any more.  NULL when out of memory. */
void *ms_arena_grow_more(ms_arena *arena, void *items, uint32_t *capacity,
                         uint32_t need, size_t size);
/* The same of one that may have room for them, as it most often has. */
static inline void *ms_arena_grow(ms_arena *arena, void *items,
                                  uint32_t *capacity, uint32_t need,
                                  size_t size)
{
    return items != NULL && need <= *capacity
               ? items
               : ms_arena_grow_more(arena, items, capacity, need, size);
}
/* An array that has grown needs no more than so many items: of one of some MiB
 * the rest goes back to the system.  It stays where it is. */
void ms_arena_shrink(ms_arena *arena, void *items, uint32_t *capacity,
                     uint32_t need, size_t size);
/* What take or grow gave is not used any more: of a MiB or more the arena gives
 * it to the next that takes as much; what is very large goes back to the system
 * unless the arena was reset before; what is smaller stays.  For what is large
 * and done with long before its arena is; NULL: nothing to do. */
void ms_arena_drop(ms_arena *arena, void *items);
char *ms_arena_text(ms_arena *arena, const char *text, size_t length);
char *ms_arena_format(ms_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ms_arena_reset(ms_arena *arena);
/* What lies alone in a block goes from an arena that is done with, and is freed
 * next, to another as room for what that takes; what the other has not taken by
 * then goes back to the system with ms_arena_trim. */
void ms_arena_hand_over(ms_arena *from, ms_arena *to);
void ms_arena_trim(ms_arena *arena);
void ms_arena_free(ms_arena *arena);
/* For tests: the n-th malloc, or taking of memory, from now on this thread
 * fails (0: off).  They return what was left of the n before. */
long ms_arena_fail_after(long n);
long ms_arena_fail_take_after(long n);
/* For tests: arrays grow by an eighth, and each growth moves the array and
 * spoils the old copy, so that a stale pointer to it shows. */
void ms_arena_move_always(bool moves);

/* ---- text.c: growing texts ----------------------------------------------- */

/* A growing text in an arena.  On out of memory, failed is set and later
 * appends do nothing: check once at the end. */
typedef struct ms_text {
    ms_arena *arena;
    char *bytes; /* NUL-terminated once something was appended */
    uint32_t length, capacity;
    bool failed;
} ms_text;

void ms_text_add(ms_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ms_text_put(ms_text *text, const char *bytes, size_t length);
void ms_text_u64(ms_text *text, uint64_t value);
void ms_text_i64(ms_text *text, int64_t value);
/* A JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void ms_text_json(ms_text *text, const char *string);
/* The length of the valid UTF-8 character at string, 0 if there is none. */
size_t ms_text_character(const char *string);
/* "%.6g" whatever the locale; "null" for what is no number. */
void ms_text_double(ms_text *text, double value);
/* The same with as many digits as it takes to read the value back. */
void ms_text_exact(ms_text *text, double value);

#endif
