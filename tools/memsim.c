/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The hall's door: main, the table of commands, signals, the exit status. */

#include "tools/compare.h"

#ifndef MS_COMMIT /* "commit 1234abcd, ", by CMake in a checkout */
#define MS_COMMIT ""
#endif

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

const ms_command ms_memsim_commands[] = {
    {"run",
     "MODEL",
     "simulate one training step",
     MS_FOR_RUN,
     1,
     1,
     ms_run_command,
     {"memsim run gpt2 --batch 8",
      "memsim run gpt3.json --policy checkpoint:sqrt --plot",
      "memsim run gpt2-xl --json | jq .peak.allocated_bytes", NULL}},
    {"explain",
     "MODEL",
     "who is alive at the peak, why, what removes it",
     MS_FOR_EXPLAIN,
     1,
     1,
     ms_explain_command,
     {"memsim explain gpt3 --policy checkpoint:sqrt",
      "memsim explain gpt2 --at backward --top 5",
      "memsim explain gpt2 --at 3.5ms --json | jq .groups[0]", NULL}},
    {"compare",
     "MODEL...",
     "variants side by side, and what differs",
     MS_FOR_COMPARE,
     1,
     MS_VARIANTS_MOST,
     ms_compare_command,
     {"memsim compare gpt2-xl -p none -p checkpoint:sqrt -p checkpoint:full",
      "memsim compare gpt2-xl --batch 8 -p none -p checkpoint:full --explain",
      "memsim compare gpt2 --grid batch=1,8 --grid precision=fp32,bf16-mixed",
      NULL}},
    {"sweep",
     "MODEL",
     "simulate the points of a grid: CSV or JSON lines",
     MS_FOR_SWEEP,
     1,
     1,
     ms_sweep_command,
     {"memsim sweep gpt2 --grid 'batch=1..64*2'",
      "memsim sweep gpt2-xl --grid 'policy=none;zero:3,dp=8' -o out.csv",
      "memsim sweep gpt2 --grid batch=1..64 --grid gpus=1..8*2 --shard 1/4",
      NULL}},
    {"fit",
     "MODEL",
     "the fastest set-up that fits, proven by replay",
     MS_FOR_FIT,
     1,
     1,
     ms_fit_command,
     {"memsim fit llama-2-7b --gpus 8 --batch 8",
      "memsim fit gpt2-xl --memory 24GiB -p checkpoint:full",
      "memsim fit gpt2 -p none --max batch", NULL}},
    {"plot",
     "RESULT",
     "draw figures from saved results",
     MS_FOR_PLOT,
     1,
     255,
     ms_plot_command,
     {"memsim plot run.json -o timeline.svg",
      "memsim plot none.json full.json --figure bars -o bars.pdf",
      "memsim plot rows.csv --x batch --y step -o curve.png", NULL}},
    {"inspect",
     "MODEL",
     "list layers, parameters, FLOPs and saved bytes",
     MS_FOR_INSPECT,
     1,
     1,
     ms_inspect_command,
     {"memsim inspect gpt2", "memsim inspect gpt2 --dot | dot -Tsvg >gpt2.svg",
      "memsim inspect gpt3 --dump model > mine.json", NULL}},
    {"alloc",
     "TRACE",
     "an allocation trace through PyTorch's caching allocator",
     MS_FOR_ALLOC,
     1,
     1,
     ms_alloc_command,
     {"memsim alloc trace.txt --allocator torch,max_split_size_mb=64",
      "memsim alloc trace.txt --allocator torch --allocator "
      "torch,expandable_segments=True --plot",
      "memsim alloc trace.txt --csv - | tail -1", NULL}},
    {"schema",
     "DOCUMENT",
     "print the JSON Schema of models or results",
     MS_FOR_SCHEMA,
     1,
     1,
     ms_schema_command,
     {"memsim schema model > model.schema.json", "memsim schema result", NULL}},
    {"completion",
     "SHELL",
     "print completions for bash, zsh or fish",
     MS_FOR_COMPLETION,
     1,
     UINT8_MAX,
     ms_completion_command,
     {". <(memsim completion bash)",
      "memsim completion fish > ~/.config/fish/completions/memsim.fish",
      "memsim completion words -- run gpt2 --pre", NULL}},
    {"help",
     "[TOPIC]",
     "explain a command or a topic",
     MS_FOR_HELP,
     0,
     1,
     ms_help_command,
     {"memsim help policies", "memsim help checkpoint", "memsim help files",
      NULL}},
};
#define N_COMMANDS (sizeof ms_memsim_commands / sizeof ms_memsim_commands[0])
const uint32_t ms_memsim_n_commands = N_COMMANDS;

/* ---- signals ------------------------------------------------------------- */

static void interrupted(int number)
{
    static const char message[] = "\nmemsim: interrupted\n";
    ssize_t unused = write(STDERR_FILENO, message, sizeof message - 1);
    (void)unused;
    _exit(128 + number);
}

/* A signal that is ignored for us (nohup, a job in the background) stays so. */
static void catch_signal(int number)
{
    struct sigaction stop = {.sa_handler = interrupted}, inherited;
    sigemptyset(&stop.sa_mask);
    if (sigaction(number, NULL, &inherited) == 0 &&
        inherited.sa_handler != SIG_IGN)
        sigaction(number, &stop, NULL);
}

/* A closed pipe is seen as EPIPE: gnuplot may leave early too. */
static void catch_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
}

/* A file opened while 0, 1 or 2 is closed would take that number, and what is
 * printed would go into it.  Read-only, so that printing still fails. */
static bool hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

/* ---- dispatch ------------------------------------------------------------ */

static ms_err fail_command(const char *word, ms_fault *fault)
{
    const char *names[N_COMMANDS];
    char hint[128] = "\"memsim help\" lists the commands";
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = ms_memsim_commands[i].name;
    const char *near = ms_names_nearest(word, names, N_COMMANDS);
    if (near != NULL) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint, "unknown command \"%s\"",
                   word);
}

static ms_err check_operands(const ms_command *command,
                             const ms_arguments *arguments, ms_fault *fault)
{
    const char *const *operands = (const char *const *)arguments->operands;
    if (arguments->n_operands < command->min_operands)
        return ms_fail(fault, MS_EUSAGE, NULL, command->examples[0],
                       "\"memsim %s\" needs a %.*s, for example", command->name,
                       (int)strcspn(command->operands, "."), command->operands);
    const char *hint = NULL;
    if (ms_options_value(arguments, MS_OPTION_PLOT) != NULL)
        hint = "the name of a figure ends in .svg, .png or .pdf";
    if (arguments->n_operands > command->max_operands &&
        command->max_operands > 1)
        return ms_fail(fault, MS_EUSAGE, NULL, hint,
                       "\"memsim %s\" takes at most %u of %s", command->name,
                       command->max_operands, command->operands);
    if (arguments->n_operands > command->max_operands)
        return ms_fail(fault, MS_EUSAGE, NULL, hint,
                       "\"memsim %s\" takes one %s; \"%s\" is one too many",
                       command->name, command->operands,
                       operands[command->max_operands]);
    return MS_OK;
}

static ms_err print_help(const char *topic, ms_hall *hall, ms_fault *fault)
{
    ms_text text = {.arena = hall->keep};
    if (topic == NULL)
        ms_help_short(&text);
    else
        MS_TRY(ms_help_topic(topic, &text, fault));
    return ms_screen_print(&text, fault);
}

/* Options before a command: only what needs none. */
static ms_err call_top(const char *const *words, uint32_t n, ms_hall *hall,
                       ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    MS_TRY(ms_options_parse(MS_FOR_TOP, words, n, hall->keep, hall->arguments,
                            fault));
    if (ms_options_value(arguments, MS_OPTION_VERSION) != NULL) {
        ms_text text = {.arena = hall->keep};
        ms_text_add(&text, "memsim %s\n%scJSON %s, igraph %s\n", MS_VERSION,
                    MS_COMMIT, ms_json_library(), ms_dag_library());
        return ms_screen_print(&text, fault);
    }
    return print_help(arguments->n_operands > 0 ? arguments->operands[0] : NULL,
                      hall, fault);
}

static ms_err call(const char *const *words, uint32_t n, ms_hall *hall,
                   int *status, ms_fault *fault)
{
    if (n == 0 || words[0][0] == '-')
        return call_top(words, n, hall, fault);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const ms_command *command = &ms_memsim_commands[i];
        if (strcmp(command->name, words[0]) != 0)
            continue;
        MS_TRY(ms_options_parse(command->bit, words + 1, n - 1, hall->keep,
                                hall->arguments, fault));
        MS_TRY(ms_plugin_load(hall->arguments, hall->keep, fault));
        if (ms_options_value(hall->arguments, MS_OPTION_HELP) != NULL)
            return print_help(command->name, hall, fault);
        MS_TRY(check_operands(command, hall->arguments, fault));
        return command->call(hall, status, fault);
    }
    return fail_command(words[0], fault);
}

int main(int argc, char **argv)
{
    ms_arena keep = {0}, trial = {0};
    ms_arguments arguments = {0};
    ms_hall hall = {.arguments = &arguments, .keep = &keep, .trial = &trial};
    ms_fault fault = {.caret = -1};
    int status = 0;
    if (!hold_standard_files())
        return ms_complain_status(MS_ESYSTEM);
    catch_signals();
    ms_err err =
        call((const char *const *)argv + (argc > 0),
             argc > 0 ? (uint32_t)argc - 1 : 0, &hall, &status, &fault);
    if (err != MS_OK) {
        ms_complain(&fault, ms_options_value(&arguments, MS_OPTION_COLOR));
        status = ms_complain_status(err);
    }
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return status;
}
