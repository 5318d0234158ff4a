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
    /* an integer that is not negative: bytes, ns, numbers of things */
    MS_KEY_COUNT,
    MS_KEY_INTEGER, /* an integer that may be negative */
    MS_KEY_NUMBER,  /* a number that is not negative */
    MS_KEY_BOOL,
    MS_KEY_TEXT,
    MS_KEY_WORD,    /* one of the words in `words` or `names` */
    MS_KEY_VERSION, /* the version of the document */
    MS_KEY_TEXTS,   /* an array of strings */
    MS_KEY_OBJECT,  /* an object whose keys are `of` */
    MS_KEY_OBJECTS, /* an array of such objects */
    MS_KEY_LEVELS,  /* an array of counts */
    MS_KEY_COUNTS,  /* an object with a count for each of `names` */
    /* an object with a count for each of `names` that is not 0 */
    MS_KEY_SOME,
    MS_KEY_NAMED, /* an object with an object for each of `names` */
    MS_KEY_TABLE  /* {"columns": [names], "rows": [[value, ...], ...]} */
} ms_key_type;

/* How a value is held in memory, and which value is printed as null. */
typedef enum ms_key_held {
    /* not in one piece (objects, arrays), or nowhere: `make` computes it */
    MS_HELD_NOT,
    MS_HELD_U64,   /* uint64_t; null: MS_NO_LEVEL */
    MS_HELD_SOME,  /* uint64_t; null: 0 */
    MS_HELD_U32,   /* uint32_t; null: MS_NONE */
    MS_HELD_U16,   /* uint16_t */
    MS_HELD_U8,    /* uint8_t; for a WORD it is an index into names */
    MS_HELD_ENUM,  /* an enum, which is an index into names */
    MS_HELD_I64,   /* int64_t */
    MS_HELD_BOOL,  /* bool */
    MS_HELD_FLOPS, /* a double that is printed as a whole number */
    MS_HELD_RATE,  /* a double; null: a negative one */
    MS_HELD_TEXT,  /* const char *; null: NULL */
    MS_HELD_CHARS, /* char[]: a text within the struct itself */
    /* const char *: JSON that is inserted unchanged; null: NULL */
    MS_HELD_JSON
} ms_key_held;

/* What the reader of a saved result does with a key. */
typedef enum ms_key_read {
    /* the reader takes it where it is there: later versions added it */
    MS_KEY_MAY,
    MS_KEY_MUST, /* the reader fails where it is missing */
    /* the reader leaves it: it follows from others, or code reads it */
    MS_KEY_SKIP
} ms_key_read;

/* The elements of an array in a struct: there are n of them, the first lies
 * at `first`, and each begins `stride` bytes behind the one before it. */
typedef struct ms_key_list {
    void *first;
    uint32_t n;
    size_t stride;
} ms_key_list;

/* An element of an array whose JSON was made before; json is NULL where it
 * was not. */
typedef struct ms_key_printed {
    const char *json;
    size_t length;
} ms_key_printed;

/* A column of a table. The value of row i lies `i * stride` bytes behind
 * first. */
typedef struct ms_key_column {
    const char *name;
    void *first; /* points to a uint64_t or to a const char * */
    size_t stride;
    bool is_text;
    bool is_hidden; /* not printed; saved tables may have it */
    bool must;      /* saved tables must have it */
} ms_key_column;

#define MS_KEY_COLUMNS_MOST 24u
typedef struct ms_key_columns {
    ms_key_column of[MS_KEY_COLUMNS_MOST];
    uint32_t n, n_rows;
    bool in_order; /* saved tables have all columns, in this order */
    uint32_t most; /* a saved table has at most so many rows; 0: any number */
} ms_key_columns;

typedef struct ms_key {
    const char *name;
    ms_key_type type;
    bool null;     /* it is null where it does not apply */
    bool optional; /* it is left out where it does not apply */
    /* of OBJECT, OBJECTS, NAMED: the keys of the objects */
    const struct ms_keys *of;
    /* of OBJECTS: other keys that an element may have; NULL: none */
    const struct ms_keys *or_of;
    const char *words; /* of WORD: "a|b" */
    /* of WORD, COUNTS, SOME, NAMED: n_names of them, some of which may be
     * NULL */
    const char *const *names;
    uint32_t n_names;
    /* NULL: the row of the object explains it; "": the next row does */
    const char *help;
    /* Help and schema list the key just before this other one, wherever it
     * is printed; NULL: they list it where it is printed. */
    const char *before;
    /* The key, the elements of its array, and the closing bracket of the
     * array may each begin a line of their own, indented by so many spaces;
     * 0: they do not. */
    uint8_t line, element_line, end_line;

    /* Where the value lies: `at` bytes into the struct whose keys are
     * printed, or into another struct that a pointer in it leads to. `via`
     * is the offset of that pointer plus 1 (0: there is none); where the
     * pointer is NULL the value is null. list: the elements of an array, or
     * the members of an OBJECT whose keys come from the user; each member
     * begins with its name, a const char *, and has its value `at` bytes
     * from its start. */
    ms_key_held held;
    size_t via, at;
    ms_key_list (*list)(const void *of);
    /* where it is false the key is null or left out */
    bool (*there)(const void *of);
    /* where it is true the key is left out, even as null */
    bool (*left_out)(const void *of);
    /* what its cell of CSV says where it is not there; NULL: nothing */
    const char *absent;
    /* computes the value; MS_NO_LEVEL: null */
    uint64_t (*make)(const void *of);
    /* Of OBJECTS with or_of: the element as JSON that was made before, with
     * the keys `of`; without it the element is printed as the struct of
     * or_of. */
    const ms_key_printed *(*printed)(const void *element);
    void (*columns)(const void *of, const void *at, ms_key_columns *columns);

    /* How the key is read back. room: allocates what the value is read into,
     * such as the elements of an array or the rows of a table (for which
     * `of` is its own place). wrong: says what is wrong with the value that
     * was read, or NULL. row_wrong: says the same of row i of a table. */
    ms_key_read read;
    ms_err (*room)(const ms_values *values, uint32_t value, void *of);
    const char *(*wrong)(const void *of, const void *value);
    const char *(*row_wrong)(void *of, void *at, uint32_t i);
} ms_key;

/* An object, which is made from a struct of `size` bytes (0: the size is not
 * needed). more: gives row i of the keys that come from another table, and
 * is false when there are no more, or where memory lacks: then the key has no
 * name; they are printed before the key more_before (NULL: behind all others)
 * and listed last. any: a pattern; keys that match it come from the user. */
typedef struct ms_keys {
    const char *name;
    const ms_key *rows;
    uint32_t n;
    size_t size;
    bool (*more)(uint32_t i, ms_arena *arena, ms_key *key);
    const char *more_before;
    const char *any;
    bool last_line; /* the closing bracket begins a line */
    /* Functions of the reader for what rows cannot express: open runs before
     * the rows are read, close after it; NULL: there is nothing to do. */
    ms_err (*open)(const ms_values *values, uint32_t object, void *of);
    ms_err (*close)(const ms_values *values, uint32_t object, void *of);
} ms_keys;

/* ---- keys_write.c, keys_read.c, keys_order.c, keys_help.c ---------------- */

/* Prints the object that the struct at `of` is. */
void ms_keys_write(const ms_keys *keys, const void *of, ms_text *text);
/* Prints the members of the object from the key `first` on, each after a
 * comma: ', "name": value'. */
void ms_keys_write_from(const ms_keys *keys, const char *first, const void *of,
                        ms_text *text);
/* For CSV: the names of the keys from `first` to `last`, and their values,
 * each after a comma; what is null is empty. */
void ms_keys_write_names(const ms_keys *keys, const char *first,
                         const char *last, ms_text *text);
void ms_keys_write_cells(const ms_keys *keys, const char *first,
                         const char *last, const void *of, ms_text *text);
/* All keys as a table of CSV.  Its columns are planned once, in the arena
 * (false: out of memory), and the plan writes the line of their names and a
 * line of values for each struct.  `of` may be any of these structs, since all
 * of them leave out the same keys; or NULL where no key is ever left out. */
typedef struct ms_keys_plan {
    struct ms_keys_cell *cells;
    uint32_t n;
} ms_keys_plan;

bool ms_keys_write_plan(const ms_keys *keys, const void *of, ms_arena *arena,
                        ms_keys_plan *plan);
void ms_keys_write_header(const ms_keys_plan *plan, ms_text *text);
void ms_keys_write_line(const ms_keys_plan *plan, const void *of,
                        ms_text *text);
/* Fills the struct at `of`, which must be zeroed, from an object of saved
 * JSON. */
ms_err ms_keys_read(const ms_values *values, uint32_t object,
                    const ms_keys *keys, void *of);
/* The same for one key, which must be there, even if reading leaves it. */
ms_err ms_keys_read_one(const ms_values *values, uint32_t object,
                        const ms_keys *keys, const char *name, void *of);
/* Row i of the keys in the order in which help and schema list them; false:
 * there are no more, or memory lacks: then key->name is NULL. */
bool ms_keys_order(const ms_keys *keys, uint32_t i, ms_arena *arena,
                   ms_key *key);

/* Lists the keys that have help; those of nested objects as
 * "peak.by_category". */
void ms_keys_help(const ms_keys *keys, ms_text *text);

/* ---- keys_table.c -------------------------------------------------------- */

/* Prints the table that lies at `at`. */
void ms_keys_table_write(const ms_key *key, const void *of, const void *at,
                         ms_text *text);
ms_err ms_keys_table_read(const ms_values *values, uint32_t object,
                          const ms_key *key, void *of, void *at);

/* ---- keys_room.c: functions for .room of a row
 * ---------------------------- */

/* Allocates n things, of which there may be `most` at most, and sets *place. */
ms_err ms_keys_room_take(const ms_values *values, uint32_t value, uint32_t n,
                         uint32_t most, size_t size, void *place);
/* The same for the rows of a table; *n becomes their number. */
ms_err ms_keys_room_rows(const ms_values *values, uint32_t value, uint32_t most,
                         size_t size, uint32_t *n, void *place);

/* ---- short forms of rows ------------------------------------------------- */

#define MS_KEYS_N(table) (sizeof(table) / sizeof((table)[0]))
#define MS_KEYS_OBJECT(called, table)                                          \
    {                                                                          \
        .name = (called), .rows = (table), .n = MS_KEYS_N(table)               \
    }
/* The same for a struct that lies in arrays of other structs. */
#define MS_KEYS_STRUCT(called, table, type)                                    \
    {                                                                          \
        .name = (called), .rows = (table), .n = MS_KEYS_N(table),              \
        .size = sizeof(type)                                                   \
    }
/* Where a value lies: the kind without MS_HELD_, the struct, the member. */
#define MS_KEYS_AT(kind, type, member)                                         \
    .held = MS_HELD_##kind, .at = offsetof(type, member)
#define MS_KEYS_VIA(type, member) .via = (1 + offsetof(type, member))
/* A row of a type: its name, and what else the row says. */
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

/* What --from has read, in documents of commands that have it; there: whether
 * it was given. */
#define MS_KEYS_FROM(struct, function)                                         \
    {                                                                          \
        .name = "from", .type = MS_KEY_OBJECT, .optional = true,               \
        MS_KEYS_AT(JSON, struct, from_json), MS_KEYS_SKIP,                     \
        .of = &ms_keys_from, .there = (function),                              \
        .help = "with --from: files (path, format), command that was "         \
                "understood, told, warnings, in words"                         \
    }

#define MS_KEYS_VERSION                                                        \
    {                                                                          \
        .name = "schema_version", .type = MS_KEY_VERSION                       \
    }

extern const ms_keys ms_keys_run, ms_keys_row;
/* The object that stands in the place of a run that could not be simulated. */
extern const ms_keys ms_keys_run_refused;
/* The objects within the object of a run: */
extern const ms_keys ms_keys_rank;      /* of "ranks" */
extern const ms_keys ms_keys_pool;      /* "pool" */
extern const ms_keys ms_keys_settings;  /* "settings" */
extern const ms_keys ms_keys_from;      /* "from" (keys_from.c) */
extern const ms_keys ms_keys_overheads; /* "overheads" */
extern const ms_keys ms_keys_optimum;   /* "optimum" */
extern const ms_keys ms_keys_timeline;  /* "timeline" of a run */
extern const ms_keys ms_keys_drawn;     /* of its "ranks" */
extern const ms_keys ms_keys_addresses; /* "addresses" of a timeline */

#endif
