/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_H
#define MS_TOOLS_H

/* tools/ is the hall: the memsim command line.  It alone prints and exits.
 *
 * One run of the program, in the order of the calls:
 *
 *     options.c   words to arguments, by one table
 *     pluginfile.c the policies of --plugin join the registry
 *     settings.c  arguments to a job
 *     pipeline.c  a job to results: the whole way through the house
 *     summary.c, inspect.c, ... results to text
 *     screen.c    text to standard output; complain.c: faults to stderr
 *
 * The pipeline prints nothing and can be called as it is:
 *
 *     ms_arena keep = {0}, trial = {0};
 *     ms_job job;
 *     ms_result result;
 *     ms_settings_init(&job);
 *     job.model = "gpt2";
 *     MS_TRY(ms_spec_parse("checkpoint:sqrt", &keep, &job.spec, fault));
 *     MS_TRY(ms_pipeline_run(&job, &keep, &trial, &result, fault));
 *     peak = result.report.ranks[result.report.worst].peak.allocated_bytes;
 *     ms_arena_free(&trial);
 *     ms_arena_free(&keep);
 */

#include "graphs/graphs.h"
#include "plots/plots.h"
#include "policies/common/policy.h"
#include "sim/pools/steps/pooled.h"

/* ---- quantity.c: numbers with units -------------------------------------- */

/* Reads "12.5ms", "3us", "1.2s" in the same way; a unit is needed. */
ms_err ms_quantity_ns(const char *text, const char *where, uint64_t *t_ns,
                      ms_fault *fault);

/* The digits at text; end: behind them.  False: 2^64 or more. */
bool ms_quantity_whole(const char *text, uint64_t *number, char **end);
/* MS_EUSAGE where the size of a device, a host or a disk is a number without
 * unit that cannot be bytes: "80" is 80GiB. */
ms_err ms_quantity_unit(const char *text, const char *where, ms_fault *fault);

/* A short text by value, so that it can stand in an argument list:
 * ms_text_add(text, "%s", ms_quantity_size(bytes).s). */
typedef struct ms_label {
    char s[32];
} ms_label;
ms_label ms_quantity_size(uint64_t bytes); /* "79.65 GiB", "512 bytes" */
ms_label ms_quantity_time(uint64_t t_ns);  /* "4.12 s", "722.0 ms" */
/* In the unit that `like` has, for numbers that stand side by side:
 * "0.06 GiB", "<0.01 GiB"; "0.95 s". */
ms_label ms_quantity_size_as(uint64_t bytes, uint64_t like);
ms_label ms_quantity_time_as(uint64_t t_ns, uint64_t like);
ms_label ms_quantity_count(uint64_t n);   /* "174,604,259,328" */
ms_label ms_quantity_short(uint64_t n);   /* "174.6B", "7.50B", "812" */
ms_label ms_quantity_flops(double flops); /* "3.21 TFLOP" */

/* ---- options_table.c, options.c: the table of options, its parser -------- */

typedef enum ms_option_id {
    MS_OPTION_POLICY,
    MS_OPTION_PLUGIN,
    MS_OPTION_PAGE,
    MS_OPTION_DEVICE,
    MS_OPTION_SET,
    MS_OPTION_SETTING, /* a shorthand of --set; the row says of which */
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
    MS_OPTION_AXIS,   /* of a curve: its x */
    MS_OPTION_VALUE,  /* its y */
    MS_OPTION_SERIES, /* a line for each of its values */
    MS_OPTION_TITLE,
    MS_OPTION_LABEL,
    MS_OPTION_VARIANT,
    MS_OPTION_DUMP,
    MS_OPTION_PROGRAM,
    MS_OPTION_BOOK,
    MS_OPTION_ALL,
    MS_OPTION_WIDE,
    MS_OPTION_DOT,
    MS_OPTION_EXPLAIN,
    MS_OPTION_AT,
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
    MS_OPTION_HELP,
    MS_OPTION_VERSION
} ms_option_id;

enum { /* ms_option.commands, ms_command.bit */
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
       MS_FOR_ALLOC = 2048u
};

typedef enum ms_takes {
    MS_TAKES_NOTHING,
    MS_TAKES_VALUE,
    MS_TAKES_OPTIONAL /* the next word only if it ends in one of words */
} ms_takes;

/* What an option is to some of the commands. */
typedef struct ms_option_use {
    uint16_t commands; /* 0: no more */
    const char *help;
    const char *words;  /* "a|b": the only values; OPTIONAL: the endings */
    const char *behind; /* the option that it follows in the help of these
                           commands; NULL: as in the table */
} ms_option_use;
#define MS_OPTION_USES 6u

/* One option as data, a row each: parser, help, man page, completions and tests
 * walk them. */
typedef struct ms_option {
    ms_option_id id;
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    ms_takes takes;
    const char *value;    /* what help calls the value */
    const char *fallback; /* OPTIONAL: the value when none is given */
    const char *setting;  /* MS_OPTION_SETTING: the training field */
    ms_option_use uses[MS_OPTION_USES];
} ms_option;
extern const ms_option ms_options_table[];
extern const uint32_t ms_options_table_n;

typedef struct ms_given {
    const ms_option *option;
    const char *value; /* "" for an option that takes nothing */
} ms_given;

/* Options in the order given, then what is left. */
typedef struct ms_arguments {
    uint32_t n_given, n_operands;
    ms_given *given;
    const char **operands;
    const char **words; /* of given: what the user calls it, up to '=' (NULL: a
                           letter); or NULL */
} ms_arguments;

/* What the option is to a command; NULL: the command has it not. */
const ms_option_use *ms_options_table_use(const ms_option *option,
                                          uint16_t command);
/* The options of a command in the order of its help; n of them. */
#define MS_OPTIONS_MOST 96u
uint32_t ms_options_table_list(uint16_t command,
                               const ms_option *list[MS_OPTIONS_MOST]);
/* Options and operands in any order, "--opt=value", "--opt value", "-o value",
 * "-ovalue", "--"; no abbreviations.  Faults: MS_EUSAGE with did-you-mean. */
ms_err ms_options_parse(uint16_t command, const char *const *words,
                        uint32_t n_words, ms_arena *arena,
                        ms_arguments *arguments, ms_fault *fault);
/* The last value given, or NULL. */
const char *ms_options_value(const ms_arguments *arguments, ms_option_id id);
/* Is word one of "a|b|c"? */
bool ms_options_one_of(const char *words, const char *word);
/* Does word end in one of ".a|.b", with something before it? */
bool ms_options_ends_in(const char *words, const char *word);
/* "a|b|c" as "a, b or c". */
void ms_options_words(const char *words, ms_text *text);

/* ---- pluginfile.c: policies from shared libraries ------------------------ */

/* Loads each --plugin, for the rest of the process, and adds its policy to the
 * registry.  To be called once, before policies are parsed.  Faults:
 * MS_ESYSTEM, the file cannot be read; MS_EINPUT, it is no plugin of ours. */
ms_err ms_pluginfile_load(const ms_arguments *arguments, ms_arena *arena,
                          ms_fault *fault);

/* ---- allocator.c: memory pools by name ----------------------------------- */

typedef struct ms_allocator {
    const char *spec;     /* as given: "torch,expandable_segments=True" */
    bool exact;           /* no pool; what follows is for others */
    ms_heap_options heap; /* kind; what follows is for torch but policy */
    const char *conf;     /* of it, as PYTORCH_CUDA_ALLOC_CONF */
    int version, policy;  /* of it; -1: not said */
    double fraction;      /* of it; 0: not said */
} ms_allocator;
/* Faults: MS_EUSAGE, the word that is wrong.  conf is not read yet. */
ms_err ms_allocator_read(const char *spec, ms_arena *arena,
                         ms_allocator *allocator, ms_fault *fault);
/* Its spec; "exact" of NULL. */
const char *ms_allocator_name(const ms_allocator *allocator);
/* The pool of a step: version where it is not said, conf read. */
ms_err ms_allocator_setup(const ms_allocator *allocator,
                          ms_torch_version version, ms_pooled_setup *setup,
                          ms_fault *fault);
#define MS_ALLOCATOR_MOST_STEPS 100u

/* ---- pipeline.c: the whole way through the house ------------------------- */

/* What a user asks for. */
typedef struct ms_job {
    const char *model; /* as ms_read_model takes it */
    const ms_override *overrides;
    uint32_t n_overrides;
    ms_training training; /* before ms_resolve_training */
    const ms_device *device;
    bool device_given;
    uint64_t memory_bytes;                  /* 0: the device's */
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: the device's */
    uint32_t gpus;         /* that train side by side; 0: not said */
    uint64_t global_batch; /* samples of the job's step, divided among its data
                              ranks; 0: not said, each has training.batch */
    ms_spec spec;
    const char **plugins; /* files of --plugin, loaded; n_plugins */
    uint32_t n_plugins;
    const char *program; /* a program in text form instead of the policies' */
    bool book_device;
    bool wall; /* with book_device: the capacity is a wall */
    bool uses; /* fill plan.use: the ops that read a row */
    const ms_allocator *allocator; /* NULL: exact */
    bool allocator_given;          /* even if as exact */
    bool usual;     /* allocator is the usual one (defaultpool.c) */
    uint32_t steps; /* through it; 0: not said */
    const struct ms_lengths *lengths; /* of them; NULL: all alike */
    bool addresses;                   /* keep where its blocks lie */
    bool brief; /* what of the pool is idle at the peak is not asked for */
    uint64_t whole_ops; /* steps of more have no micro-batches that repeat on
                           their timeline; 0: some million */
} ms_job;

typedef struct ms_result ms_result; /* result.h */

/* The job's settings, of its last step, and whether it has a pool. */
void ms_pipeline_settings(const ms_job *job, ms_training *training);
ms_err ms_pipeline_read(const ms_job *job, ms_arena *keep, ms_result *result,
                        ms_fault *fault);
/* What the policies make of the job's shape, once it is read; the first half
 * of lower. */
ms_err ms_pipeline_shape(const ms_job *job, ms_result *result, ms_fault *fault);
ms_err ms_pipeline_lower(const ms_job *job, ms_arena *keep, ms_result *result,
                         ms_fault *fault);
ms_err ms_pipeline_step(const ms_job *job, ms_arena *trial, ms_result *result,
                        ms_fault *fault);
ms_err ms_pipeline_run(const ms_job *job, ms_arena *keep, ms_arena *trial,
                       ms_result *result, ms_fault *fault);

/* ---- defaultpool.c: the pool where --allocator does not say -------------- */

/* To be called when all of the job's settings are known, and before the
 * pipeline: where its step can go through a pool, job->allocator becomes
 * PyTorch's as the framework sets it up, with what a user of the framework
 * sees; else (a CPU, books by device time, a wall, unified memory) it stays
 * exact.  Nothing happens where the allocator is given. */
void ms_defaultpool_pool(ms_job *job);
/* After the step: micro-batches that are counted (microrepeats.c) went through
 * no pool; the job's allocator is what the step had. */
void ms_defaultpool_settle(const ms_result *result, ms_job *job);
/* Is what a step of the job reports what memsim run tells of it: did it go
 * through a pool, was exact asked for, or is there no other? */
bool ms_defaultpool_is_told(const ms_job *job, const ms_report *report);

/* ---- microrepeats.c: steps of many micro-batches ------------------------- */

/* A step as ms_pipeline_step's, of which the micro-batches that repeat are
 * counted and left out (sim/expand/repeat.h), where it is worth it and they do;
 * else *done is false. */
ms_err ms_microrepeats_step(const ms_job *job, ms_arena *trial,
                            ms_result *result, bool *done, ms_fault *fault);

/* ---- settings.c: arguments to a job, and the job in words ---------------- */

#define MS_DEFAULT_DEVICE "h100-80gb-sxm"

void ms_settings_init(ms_job *job);
/* All but the policies. */
ms_err ms_settings_shared(const ms_arguments *arguments, ms_arena *arena,
                          ms_job *job, ms_fault *fault);
/* The same before ms_settings_check, where more is to be said. */
ms_err ms_settings_open(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault);
/* With them: every --policy joins the ones before. */
ms_err ms_settings_read(const ms_arguments *arguments, ms_arena *arena,
                        ms_job *job, ms_fault *fault);
/* The same with the usual pool: of commands that tell what users see. */
ms_err ms_settings_usual(const ms_arguments *arguments, ms_arena *arena,
                         ms_job *job, ms_fault *fault);
/* What a real pool does not go with; once all settings are known. */
ms_err ms_settings_check(const ms_job *job, ms_fault *fault);
/* One more by its key: of a row of settings_table.h that a grid takes (policies
 * join those before), model.KEY, or as ms_training_set takes it.  key, value
 * and arena last as long as job. */
ms_err ms_settings_put(ms_job *job, const char *key, const char *value,
                       ms_arena *arena, ms_fault *fault);
/* The policies in canonical spelling, or "program:FILE"; NULL: no memory. */
const char *ms_settings_policy(const ms_job *job, ms_arena *arena);
/* Does the value of a row of ms_training_fields come from the table and not
 * from the user? */
bool ms_settings_is_default(const ms_job *job, uint32_t row);
/* settings_json.c.  {"training.batch": 1, ..., "device": "...", "defaults":
 * [...]} */
void ms_settings_json(const ms_job *job, const ms_training *training,
                      ms_text *text);
/* "batch=1 sequence=2048 ... device=h100-80gb-sxm": what the user left open. */
void ms_settings_defaults(const ms_job *job, const ms_training *training,
                          ms_text *text);
/* " --host-memory=2048GiB": what the user left open of a node's memories that
 * are asked for; pools: a bit per ms_pool_kind. */
void ms_settings_node_defaults(const ms_job *job, unsigned pools,
                               ms_text *text);
/* Does an option shape the result, as against where it goes? */
bool ms_settings_shapes(ms_option_id id);
/* The command line again, without outputs, plus extra; quoted for a shell. */
void ms_settings_command(const ms_arguments *arguments, const char *extra,
                         ms_text *text);
/* The search for what fits instead, with the same settings: without policies,
 * which it chooses, on so many GPUs. */
void ms_settings_fit(const ms_arguments *arguments, uint32_t gpus,
                     ms_text *text);
/* The command line with other policies instead of those given. */
void ms_settings_instead(const ms_arguments *arguments, const char *policy,
                         ms_text *text);
/* The same on so many GPUs. */
void ms_settings_setup(const ms_arguments *arguments, const char *policy,
                       uint32_t gpus, ms_text *text);
/* The step against itself with expandable segments. */
void ms_settings_compare(const ms_arguments *arguments, const char *policy,
                         const char *allocator, ms_text *text);
/* The value of a training field as the user would write it. */
ms_label ms_settings_value(const ms_training *training, const char *field);

/* ---- screen.c: standard output ------------------------------------------- */

typedef struct ms_style {
    const char *strong, *faint, *good, *bad, *plain; /* "" without colour */
} ms_style;

/* mode: auto, always, never or NULL (auto); fd: 1 or 2. */
const ms_style *ms_screen_style(int fd, const char *mode);
/* MS_ESYSTEM when not all of it could be written.  A reader that went away
 * ends the process quietly, as a member of a pipe should. */
ms_err ms_screen_print(const ms_text *text, ms_fault *fault);
/* Before others write to standard output: the same holds for them. */
void ms_screen_end_with_reader(void);
/* Copies at most size - 1 bytes of string, cut at a character; what could
 * steer a terminal and invalid UTF-8 become '?'.  Returns buffer. */
char *ms_screen_safe(const char *string, char *buffer, size_t size);
/* The cell after as many blanks as make it width columns wide. */
void ms_screen_right(ms_text *text, uint32_t width, const char *cell);
/* The label, then words from column indent on, filled to 80 columns. */
void ms_screen_fill(ms_text *text, uint32_t indent, const char *label,
                    const char *words);
/* The same to other columns. */
void ms_screen_fill_to(ms_text *text, uint32_t columns, uint32_t indent,
                       const char *label, const char *words);

/* ---- outputs.c: files ---------------------------------------------------- */

bool ms_outputs_is_stdout(const char *path);
/* Refuses files (NULL: none) that are an input of the job or named twice. */
ms_err ms_outputs_check(const ms_job *job, const char *const *files, uint32_t n,
                        ms_fault *fault);
/* The same with inputs by name. */
ms_err ms_outputs_keep(const char *const *inputs, uint32_t n_inputs,
                       const char *const *files, uint32_t n, ms_fault *fault);
/* memsim.svg -> memsim.gp; NULL: no memory. */
char *ms_outputs_script(const char *figure, ms_arena *arena);
ms_err ms_outputs_write(const char *path, const ms_text *text, bool quiet,
                        ms_fault *fault);

/* What --plot, --figure and --keep-script ask for; NULL: nothing. */
typedef struct ms_picture {
    const char *path, *kind;
    const char *script; /* where it is kept */
    const char *title;  /* instead of the figure's own; NULL: that */
} ms_picture;
/* The path has one of the endings of figures. */
ms_err ms_outputs_picture(const ms_arguments *arguments, ms_arena *arena,
                          ms_picture *picture, ms_fault *fault);

/* ---- summary.c, alive.c, inspect.c: results to text ---------------------- */

typedef struct ms_summary {
    const ms_job *job;
    const ms_arguments *arguments;
    const ms_result *result;
    const char *policy; /* canonical spelling */
    const ms_style *style;
    ms_arena *arena;
} ms_summary;
ms_err ms_summary_write(const ms_summary *summary, ms_text *text,
                        ms_fault *fault);
/* traffic.c: a line per link that is used, under a heading; what lies in host
 * memory and on the disk. */
void ms_traffic_links(const ms_result *result, const ms_style *style,
                      ms_text *text);
void ms_traffic_memories(const ms_result *result, ms_text *text);
/* "batch 8 x 1024 tokens in 4 micro-batches on each of 2 GPUs = 16 sequences,
 * 16,384 tokens a step, bf16-mixed, adamw"; times: the sign of multiplication.
 */
void ms_setupwords_put(const ms_result *result, const char *times,
                       ms_text *text);
/* poolwords.c: what a real pool reserves, and what of it is idle. */
void ms_poolwords_put(const ms_report *report, ms_text *words);
/* Of the usual pool only what it cannot do: nothing where all is well. */
void ms_poolwords_brief(const ms_report *report, ms_text *words);
/* A line per step where steps have lengths of their own; then what it means. */
void ms_poolwords_steps(const ms_summary *summary, ms_text *text);
/* Percent of what steps 1 to n of a rank reserve at most that is beyond the
 * most that any of them allocates: shorter steps do not make it seem more. */
double ms_poolwords_fragmentation(const ms_pooled *pooled, uint8_t rank,
                                  uint32_t n);
/* "1024", "8x1024" or "8x": of step, from 1. */
ms_label ms_poolwords_length(const ms_pooled *pooled, uint32_t step);
/* devicewords.c.  "h100-80gb-sxm, 79.18 GiB less 0.49 GiB for the CUDA
 * context".
 */
void ms_devicewords_device(const ms_job *job, const ms_report *report,
                           ms_text *text);
/* What nvidia-smi would show, by what it is of. */
void ms_devicewords_put(const ms_job *job, const ms_result *result,
                        ms_text *text);
/* The last line of a run: the same as one number. */
void ms_devicewords_last(const ms_result *result, ms_text *text);
/* room.c: what is to spare, or which memory is too small and by how much.
 * "host memory", "disk", by ms_pool_kind. */
extern const char *const ms_room_names[MS_N_POOLS];
/* "headroom 40.38 GiB (51.0 %)", "over capacity by 12.30 GiB". */
void ms_room_subtitle(const ms_report *report, ms_text *text);
/* "fits, 40.38 GiB (51.0 %) to spare", "does not fit: ...". */
void ms_room_verdict(const ms_report *report, ms_text *text);
/* "; out of memory at 1.2 s in the forward pass, ...", if it is. */
void ms_room_first_over(const ms_result *result, ms_text *words);
/* "layers.*.mlp.up optimizer state 651.20 GiB, ...": the largest groups of
 * rows (same layer in every block, same category) alive at the peak. */
ms_err ms_alive_words(const ms_result *result, uint32_t n_groups,
                      ms_arena *arena, ms_text *text, ms_fault *fault);

/* ---- commands ------------------------------------------------------------ */

/* What main hands to a command. */
typedef struct ms_hall {
    ms_arguments *arguments;
    ms_arena *keep, *trial;
    const struct ms_commands *commands; /* of help and completion */
} ms_hall;

typedef struct ms_command {
    const char *name, *operands, *summary;
    uint16_t bit; /* MS_FOR_... */
    uint8_t min_operands, max_operands;
    /* status: the exit status when all went well. */
    ms_err (*call)(const ms_hall *hall, int *status, ms_fault *fault);
    const char *examples[4]; /* ended by NULL */
} ms_command;

typedef struct ms_commands {
    const ms_command *rows;
    uint32_t n;
} ms_commands;
/* commands.c: nothing that a row calls looks at it; main hands it on. */
extern const ms_commands ms_commands_all;

ms_err ms_run_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_compare_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_sweep_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_fit_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_inspect_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_explain_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_alloc_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_plot_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_help_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_completion_command(const ms_hall *hall, int *status, ms_fault *fault);
ms_err ms_schema_command(const ms_hall *hall, int *status, ms_fault *fault);

/* What of a run is kept, with the headings of its figures. */
ms_err ms_run_record(const ms_job *job, const ms_result *result,
                     const char *policy, ms_arena *arena, ms_record *record,
                     ms_fault *fault);
/* The object that run --json prints. */
ms_err ms_run_json(const ms_job *job, const ms_result *result,
                   const char *policy, ms_text *text, ms_fault *fault);

/* complain.c: faults to standard error. */
void ms_complain(const ms_fault *fault, const char *colour_mode);
void ms_complain_note(const char *what, const char *name);
int ms_complain_status(ms_err err);

#endif
