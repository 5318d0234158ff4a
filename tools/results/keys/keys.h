/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RESULTS_KEYS_H
#define MS_RESULTS_KEYS_H

/* One table of what memsim prints as JSON.  Each key of a document is one row:
 * its name, its type, its help, and where in which struct its value lies.  All
 * that deals with keys walks these rows:
 *
 *     keys_write.c   prints an object, or a row of CSV
 *     keys_read.c    reads a saved one back
 *     keys_table.c   prints and reads tables in it
 *     keys_order.c   the order in which keys are explained
 *     keys_help.c    memsim help json
 *     schema_write.c memsim schema
 *     keys_run.c, keys_rank.c, ...  the rows of what is read back
 *     (cli) compare_keys.c, alloc_keys.c, ...  those of other commands
 *
 * A worked example.  A report says how many allocations had to wait for the
 * disk.  The struct gets a member
 *
 *     uint64_t disk_waits;           in ms_report (sim), which measuring fills
 *
 * and the table of "memsim run" gets a row where the key is to be printed:
 *
 *     {.name = "disk_waits",
 *      .type = MS_KEY_COUNT,
 *      .optional = true,             results that were saved before lack it
 *      REPORT(U64, disk_waits),      .via, .held and .at: where it lies
 *      .help = "allocations that waited for the disk"},
 *
 * REPORT(U64, disk_waits) says: from the struct that is printed (ms_sheet)
 * follow the pointer `report`, there go to offsetof(ms_report, disk_waits),
 * there lies a uint64_t.  So
 *
 *     memsim run --json     prints  "disk_waits": 3
 *     memsim plot, compare  read it back into report->disk_waits; from an
 *                           older result it stays 0
 *     memsim schema result  lists {"description": "allocations that waited
 *                           for the disk", "type": "integer", "minimum": 0}
 *     memsim help json      lists disk_waits with its help
 *
 * and tests/schema.sh, which refuses keys that no row has and rows that are
 * never printed, passes.  What is no member of a struct is made by a function
 * (.make), and read back by whoever needs it. */

#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/results/keys/values.h"

typedef enum ms_key_type {
    MS_KEY_COUNT,   /* an integer from 0: bytes, ns, numbers of things */
    MS_KEY_INTEGER, /* that may be negative */
    MS_KEY_NUMBER,  /* not negative */
    MS_KEY_BOOL,
    MS_KEY_TEXT,
    MS_KEY_WORD,    /* one of words or names */
    MS_KEY_VERSION, /* of the document */
    MS_KEY_TEXTS,   /* an array of strings */
    MS_KEY_OBJECT,  /* of */
    MS_KEY_OBJECTS, /* an array of them */
    MS_KEY_LEVELS,  /* an array of COUNTs */
    MS_KEY_COUNTS,  /* an object with a COUNT for each of names */
    MS_KEY_SOME,    /* for some of names: those that are not 0 */
    MS_KEY_NAMED,   /* an object with an object for each of names */
    MS_KEY_TABLE    /* {"columns": [names], "rows": [[value, ...], ...]} */
} ms_key_type;

/* How a value lies in memory, and which value there is null in JSON. */
typedef enum ms_key_held {
    MS_HELD_NOT,   /* in parts: objects, arrays; or nowhere: see make */
    MS_HELD_U64,   /* uint64_t; null: MS_NO_LEVEL */
    MS_HELD_SOME,  /* uint64_t; null: 0 */
    MS_HELD_U32,   /* uint32_t; null: MS_NONE */
    MS_HELD_U8,    /* uint8_t; of a WORD: its index in names */
    MS_HELD_ENUM,  /* an enum, the index in names */
    MS_HELD_I64,   /* int64_t */
    MS_HELD_BOOL,  /* bool */
    MS_HELD_FLOPS, /* double, printed as a whole number */
    MS_HELD_RATE,  /* double; null: negative */
    MS_HELD_TEXT,  /* const char *; null: NULL */
    MS_HELD_CHARS, /* char[]: a text, in the struct itself */
    MS_HELD_JSON   /* const char *: JSON, spliced in as it is; null: NULL */
} ms_key_held;

/* What reading a saved result does with a key. */
typedef enum ms_key_read {
    MS_KEY_MAY,  /* takes it where it is there: what a later version added */
    MS_KEY_MUST, /* fails where it is not */
    MS_KEY_SKIP  /* leaves it: it follows from others, or code reads it */
} ms_key_read;

/* What an array in a struct is: n things, the first at first, stride apart. */
typedef struct ms_key_list {
    void *first;
    uint32_t n;
    size_t stride;
} ms_key_list;

/* An element of an array that was printed already; json NULL: it was not. */
typedef struct ms_key_printed {
    const char *json;
    size_t length;
} ms_key_printed;

/* A column of a table: of row i its value is `i * stride` behind first. */
typedef struct ms_key_column {
    const char *name;
    void *first; /* a uint64_t, or a const char * */
    size_t stride;
    bool is_text;
    bool
        is_hidden; /* not printed, as it says nothing; saved ones may have it */
    bool must;     /* saved tables have it */
} ms_key_column;

#define MS_KEY_COLUMNS_MOST 24u
typedef struct ms_key_columns {
    ms_key_column of[MS_KEY_COLUMNS_MOST];
    uint32_t n, n_rows;
    bool in_order; /* saved tables have them all, in this order, and at most */
    uint32_t most; /* so many rows; 0: any number */
} ms_key_columns;

typedef struct ms_key {
    const char *name;
    ms_key_type type;
    bool null;                   /* where it does not apply */
    bool optional;               /* or left out there */
    const struct ms_keys *of;    /* OBJECT, OBJECTS, NAMED */
    const struct ms_keys *or_of; /* OBJECTS: or such ones; NULL: none */
    const char *words;           /* WORD: "a|b" */
    const char *const *names;    /* WORD, COUNTS, SOME, NAMED: n_names, some may
                                    be NULL */
    uint32_t n_names;
    const char *help; /* NULL: the object's row tells of it; "": as the next */
    const char *before; /* help and schema list it just before that key, not
                           where it is printed; NULL: they do not */
    /* The key, the elements of its array, and what closes the array each begin
     * a line, indented by so many spaces; 0: they do not. */
    uint8_t line, element_line, end_line;

    /* Where the value lies: `at` bytes into the struct whose keys are printed,
     * or into the one that a pointer in it leads to, which begins with its byte
     * number `via`, from 1 (0: there is none); a pointer that is NULL: null.
     * list: the elements of an array; or the members of an OBJECT whose keys
     * come from the user: each begins with its name, a const char *, and
     * `at` bytes into it its value lies. */
    ms_key_held held;
    size_t via, at;
    ms_key_list (*list)(const void *of);
    bool (*there)(const void *of);    /* else it is null or left out */
    bool (*left_out)(const void *of); /* it is not even null */
    uint64_t (*make)(const void *of); /* MS_NO_LEVEL: null */
    /* OBJECTS with or_of: an element as `of` has it, printed already; else the
     * element is the struct of or_of. */
    const ms_key_printed *(*printed)(const void *element);
    void (*columns)(const void *of, const void *at, ms_key_columns *columns);

    /* And how it is read back.  room: what must be there before it is read, of
     * an array its elements, of a table its rows (then `of` is its own place);
     * wrong: what is wrong with the value that was read, or NULL; row_wrong:
     * the same of row i of a table. */
    ms_key_read read;
    ms_err (*room)(const ms_values *values, uint32_t value, void *of);
    const char *(*wrong)(const void *of, const void *value);
    const char *(*row_wrong)(void *of, void *at, uint32_t i);
} ms_key;

/* An object, of a struct of `size` bytes (0: not asked for).  more: row i of
 * those that come from another table, false when there are no more, which are
 * printed before the key more_before (NULL: behind all) and listed last; any:
 * a pattern; keys like it come from the user. */
typedef struct ms_keys {
    const char *name;
    const ms_key *rows;
    uint32_t n;
    size_t size;
    bool (*more)(uint32_t i, ms_arena *arena, ms_key *key);
    const char *more_before;
    const char *any;
    bool last_line; /* what closes it begins a line */
    /* Reading: what is read before its rows and looked at behind them, where
     * rows do not say enough; NULL: nothing. */
    ms_err (*open)(const ms_values *values, uint32_t object, void *of);
    ms_err (*close)(const ms_values *values, uint32_t object, void *of);
} ms_keys;

/* ---- keys_write.c, keys_read.c, keys_order.c, keys_help.c ---------------- */

/* Prints the object that the struct at `of` is. */
void ms_keys_write(const ms_keys *keys, const void *of, ms_text *text);
/* Its members from the key `first` on, each after another: ', "name": value'.
 */
void ms_keys_write_from(const ms_keys *keys, const char *first, const void *of,
                        ms_text *text);
/* In CSV, each behind a comma: the names of the keys from `first` to `last`,
 * and their values; what is null is empty. */
void ms_keys_write_names(const ms_keys *keys, const char *first,
                         const char *last, ms_text *text);
void ms_keys_write_cells(const ms_keys *keys, const char *first,
                         const char *last, const void *of, ms_text *text);
/* All keys as a table of CSV: the line of their names, and one of values; of:
 * for the names, any of the lines, which are alike in what is left out. */
void ms_keys_write_header(const ms_keys *keys, const void *of, ms_text *text);
void ms_keys_write_line(const ms_keys *keys, const void *of, ms_text *text);
/* Fills the struct at `of`, zeroed before, from an object of saved JSON. */
ms_err ms_keys_read(const ms_values *values, uint32_t object,
                    const ms_keys *keys, void *of);
/* The same of one key, which must be there, even if reading leaves it. */
ms_err ms_keys_read_one(const ms_values *values, uint32_t object,
                        const ms_keys *keys, const char *name, void *of);
/* Row i of keys, as help and schema list them; false: there are no more. */
bool ms_keys_order(const ms_keys *keys, uint32_t i, ms_arena *arena,
                   ms_key *key);

/* The keys that have help, those of objects as "peak.by_category". */
void ms_keys_help(const ms_keys *keys, ms_text *text);

/* ---- keys_table.c -------------------------------------------------------- */

/* The table whose place is `at`. */
void ms_keys_table_write(const ms_key *key, const void *of, const void *at,
                         ms_text *text);
ms_err ms_keys_table_read(const ms_values *values, uint32_t object,
                          const ms_key *key, void *of, void *at);

/* ---- keys_room.c: for .room of a row ------------------------------------- */

/* Room for n things, of which there may be `most`; *place gets it. */
ms_err ms_keys_room_take(const ms_values *values, uint32_t value, uint32_t n,
                         uint32_t most, size_t size, void *place);
/* The same for the rows of a table, *n of them. */
ms_err ms_keys_room_rows(const ms_values *values, uint32_t value, uint32_t most,
                         size_t size, uint32_t *n, void *place);

/* ---- short forms of rows ------------------------------------------------- */

#define MS_KEYS_N(table) (sizeof(table) / sizeof((table)[0]))
#define MS_KEYS_OBJECT(called, table)                                          \
    {                                                                          \
        .name = (called), .rows = (table), .n = MS_KEYS_N(table)               \
    }
/* The same of a struct that others hold arrays of. */
#define MS_KEYS_STRUCT(called, table, type)                                    \
    {                                                                          \
        .name = (called), .rows = (table), .n = MS_KEYS_N(table),              \
        .size = sizeof(type)                                                   \
    }
/* Where it lies: the kind without MS_HELD_, struct, member. */
#define MS_KEYS_AT(kind, type, member)                                         \
    .held = MS_HELD_##kind, .at = offsetof(type, member)
#define MS_KEYS_VIA(type, member) .via = (1 + offsetof(type, member))
/* A name and what else the row says of it. */
#define MS_KEYS_COUNT(...)                                                     \
    {                                                                          \
        .type = MS_KEY_COUNT, .name = __VA_ARGS__                              \
    }
#define MS_KEYS_COUNT_OR_NULL(...)                                             \
    {                                                                          \
        .type = MS_KEY_COUNT, .null = true, .name = __VA_ARGS__                \
    }
#define MS_KEYS_TEXT(...)                                                      \
    {                                                                          \
        .type = MS_KEY_TEXT, .name = __VA_ARGS__                               \
    }
#define MS_KEYS_TEXT_OR_NULL(...)                                              \
    {                                                                          \
        .type = MS_KEY_TEXT, .null = true, .name = __VA_ARGS__                 \
    }
#define MS_KEYS_CATEGORIES                                                     \
    .type = MS_KEY_COUNTS, .names = ms_names_category,                         \
    .n_names = MS_N_CATEGORIES
#define MS_KEYS_MUST .read = MS_KEY_MUST
#define MS_KEYS_SKIP .read = MS_KEY_SKIP

#define MS_KEYS_VERSION                                                        \
    {                                                                          \
        .name = "schema_version", .type = MS_KEY_VERSION                       \
    }

extern const ms_keys ms_keys_run, ms_keys_row;
/* In the place of a run that could not be simulated. */
extern const ms_keys ms_keys_run_refused;
/* And parts of them: */
extern const ms_keys ms_keys_rank;          /* of "ranks" */
extern const ms_keys ms_keys_pool;          /* "pool" */
extern const ms_keys ms_keys_settings;      /* "settings" */
extern const ms_keys ms_keys_run_overheads; /* "overheads" */
extern const ms_keys ms_keys_timeline;      /* "timeline" of a run */
extern const ms_keys ms_keys_drawn;         /* of its "ranks" */
extern const ms_keys ms_keys_addresses;     /* "addresses" of a timeline */

#endif
