/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_OPTIONS_H
#define MS_TOOLS_OPTIONS_H

/* The words of a command line, and the table of options that they are read by:
 * options_table.c has the rows, optionuses.c which a command has, options.c the
 * parser. */

#include "sim/base/base.h"

typedef enum ms_option_id {
    MS_OPTION_POLICY,
    MS_OPTION_PLUGIN,
    MS_OPTION_PAGE,
    MS_OPTION_FROM,
    MS_OPTION_DEVICE,
    MS_OPTION_SET,
    /* a short form of --set; the row says of which setting */
    MS_OPTION_SETTING,
    MS_OPTION_MEMORY,
    MS_OPTION_HOST_MEMORY,
    MS_OPTION_NVME,
    MS_OPTION_GPUS,
    MS_OPTION_GLOBAL_BATCH,
    MS_OPTION_WALL,
    MS_OPTION_CHECK,
    MS_OPTION_JSON,
    MS_OPTION_CSV,
    MS_OPTION_TRACE,
    MS_OPTION_PLOT,
    MS_OPTION_FIGURE,
    MS_OPTION_KEEP_SCRIPT,
    MS_OPTION_OUTPUT,
    MS_OPTION_GRID,
    MS_OPTION_FILTER,
    MS_OPTION_JOBS,
    MS_OPTION_SHARD,
    MS_OPTION_RESUME,
    MS_OPTION_MAX,
    MS_OPTION_GOAL,
    MS_OPTION_VARY,
    MS_OPTION_AXIS,   /* --x of a curve */
    MS_OPTION_VALUE,  /* --y of a curve */
    MS_OPTION_SERIES, /* a line for each of its values */
    MS_OPTION_TITLE,
    MS_OPTION_LABEL,
    MS_OPTION_VARIANT,
    MS_OPTION_DUMP,
    MS_OPTION_AS,
    MS_OPTION_PROGRAM,
    MS_OPTION_BOOK,
    MS_OPTION_ALL,
    MS_OPTION_WIDE,
    MS_OPTION_DOT,
    MS_OPTION_EXPLAIN,
    MS_OPTION_CHECKPOINT_ALL,
    MS_OPTION_BUDGET,
    MS_OPTION_AT,
    MS_OPTION_RANK,
    MS_OPTION_TOP,
    MS_OPTION_COLOR,
    MS_OPTION_QUIET,
    MS_OPTION_ALLOCATOR,
    MS_OPTION_STEPS,
    MS_OPTION_LENGTHS,
    MS_OPTION_ALLOCATORS,
    MS_OPTION_LEAKS,
    MS_OPTION_ANEW,
    MS_OPTION_SNAPSHOT,
    MS_OPTION_LIFETIMES,
    MS_OPTION_ALLOCATIONS,
    MS_OPTION_BASELINE,
    MS_OPTION_UPDATE,
    MS_OPTION_MARKDOWN,
    MS_OPTION_HELP,
    MS_OPTION_VERSION
} ms_option_id;

enum { /* bits of ms_option.commands; ms_command.bit */
       MS_FOR_TOP = 1u,
       MS_FOR_RUN = 2u,
       MS_FOR_INSPECT = 4u,
       MS_FOR_HELP = 8u,
       MS_FOR_EXPLAIN = 16u,
       MS_FOR_COMPARE = 32u,
       MS_FOR_SWEEP = 64u,
       MS_FOR_FIT = 128u,
       MS_FOR_PLOT = 256u,
       MS_FOR_COMPLETION = 512u,
       MS_FOR_SCHEMA = 1024u,
       MS_FOR_ALLOC = 2048u,
       MS_FOR_CALIBRATE = 4096u,
       MS_FOR_REPORT = 8192u,
       MS_FOR_CHECK = 16384u,
       MS_FOR_DIFF = 32768u
};

typedef enum ms_takes {
    MS_TAKES_NOTHING,
    MS_TAKES_VALUE,
    /* takes the next word only if that ends in one of `words` */
    MS_TAKES_OPTIONAL
} ms_takes;

/* What an option means to some of the commands. */
typedef struct ms_option_use {
    uint16_t commands; /* 0: no more uses */
    const char *help;
    const char *words; /* "a|b": the only values; of OPTIONAL: the endings */
    /* the option that it follows in the help of these commands; NULL: the one
     * before it in the table */
    const char *behind;
} ms_option_use;
#define MS_OPTION_USES 6u

/* One option, as a row: the parser, the help, the man page, completions and
 * tests walk the table. */
typedef struct ms_option {
    ms_option_id id;
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    ms_takes takes;
    const char *value;    /* what the help calls the value */
    const char *fallback; /* of OPTIONAL: the value when none is given */
    const char *setting;  /* of MS_OPTION_SETTING: the training field */
    ms_option_use uses[MS_OPTION_USES];
} ms_option;
extern const ms_option ms_options_table[];
extern const uint32_t ms_options_table_n;

typedef struct ms_given {
    const ms_option *option;
    const char *value; /* "" for an option that takes none */
} ms_given;

/* The options in the order given, then the operands. */
typedef struct ms_arguments {
    uint32_t n_given, n_operands;
    ms_given *given;
    const char **operands;
    /* by given option: the word that the user typed, up to '=' (NULL: a
     * letter); or NULL */
    const char **words;
    const char *from_json; /* what --from has read; NULL: it was not given */
} ms_arguments;

/* What the option means to a command; NULL: the command does not have it. */
const ms_option_use *ms_optionuses_of(const ms_option *option,
                                      uint16_t command);
/* The options of a command in the order of its help; returns how many. */
#define MS_OPTIONS_MOST 96u
uint32_t ms_optionuses_list(uint16_t command,
                            const ms_option *list[MS_OPTIONS_MOST]);
/* Reads options and operands in any order: "--opt=value", "--opt value", "-o
 * value", "-ovalue", "--"; no abbreviations. Faults: MS_EUSAGE, with the option
 * that was probably meant. */
ms_err ms_options_parse(uint16_t command, const char *const *words,
                        uint32_t n_words, ms_arena *arena,
                        ms_arguments *arguments, ms_fault *fault);
/* The value that was given last, or NULL. */
const char *ms_options_value(const ms_arguments *arguments, ms_option_id id);
/* Is word one of "a|b|c"? */
bool ms_options_one_of(const char *words, const char *word);
/* Does word end in one of ".a|.b", with something before it? */
bool ms_options_ends_in(const char *words, const char *word);
/* "a|b|c" as "a, b or c". */
void ms_options_words(const char *words, ms_text *text);

#endif
