/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim completion: the scripts that make shells complete memsim's words.
 * They know nothing of memsim: they hand the words of the command line to
 * "memsim completion words" (candidates.c) and show what it prints. */

#include "tools/candidates.h"

#include <string.h>

/* Bash cuts words at = and : (COMP_WORDBREAKS) and replaces what stands behind
 * the last of them: the words are joined again, and the candidates cut. */
static const char bash_script[] =
    "# bash completion of memsim, made by \"memsim completion bash\"\n"
    "_memsim() {\n"
    "    local line=$COMP_LINE tab=$'\\t' head='' i last=-1\n"
    "    local word file start endings\n"
    "    local breaks=${COMP_WORDBREAKS//[^=:]/}\n"
    "    local -a words=()\n"
    "    COMPREPLY=()\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((i > 0)) && [[ -n $line && $line != [[:blank:]]* ]]; then\n"
    "            words[last]+=$word\n"
    "        else\n"
    "            words[++last]=$word\n"
    "        fi\n"
    "        line=${line#\"${line%%[![:blank:]]*}\"}\n"
    "        line=${line#\"$word\"}\n"
    "    done\n"
    "    word=${words[last]}\n"
    "    if [[ $word == [\\'\\\"]* ]]; then\n"
    "        words[last]=${word:1}\n"
    "    elif [[ -n $breaks ]]; then\n"
    "        head=${word%\"${word##*[$breaks]}\"}\n"
    "    fi\n"
    "    while IFS= read -r line; do\n"
    "        if [[ $line != :files$tab* ]]; then\n"
    "            word=${line%%$tab*}\n"
    "            COMPREPLY+=(\"${word#\"$head\"}\")\n"
    "            continue\n"
    "        fi\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        line=${line#*$tab} start=${line%%$tab*} endings=${line#*$tab}\n"
    "        while IFS= read -r file; do\n"
    "            if [[ -z $endings || -d $file ||\n"
    "                \" $endings \" == *\" ${file##*.} \"* ]]; then\n"
    "                word=$start$file\n"
    "                COMPREPLY+=(\"${word#\"$head\"}\")\n"
    "            fi\n"
    "        done < <(compgen -f -- \"${words[last]#\"$start\"}\")\n"
    "    done < <(\"${words[0]/#\\~/$HOME}\" completion words -- \\\n"
    "        \"${words[@]:1}\" 2>/dev/null)\n"
    "    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:+] ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "complete -F _memsim memsim\n";

static const char zsh_script[] =
    "#compdef memsim\n"
    "# zsh completion of memsim, made by \"memsim completion zsh\"\n"
    "_memsim() {\n"
    "    local line word told start tab=$'\\t'\n"
    "    local -a whole open files\n"
    "    while IFS= read -r line; do\n"
    "        word=${line%%$tab*} told=${line#*$tab}\n"
    "        line=${word//:/\\\\:}${${line#$word}/$tab/:}\n"
    "        case $word in\n"
    "        :files) files+=(\"$told\") ;;\n"
    "        *[=:+]) open+=(\"$line\") ;;\n"
    "        *) whole+=(\"$line\") ;;\n"
    "        esac\n"
    "    done < <(\"${(Q)words[1]/#\\~/$HOME}\" completion words -- \\\n"
    "        \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)\n"
    "    (( ${#whole} )) && _describe -V memsim whole\n"
    "    (( ${#open} )) && _describe -V memsim open -S ''\n"
    "    for line in $files; do\n"
    "        start=${line%%$tab*}\n"
    "        line=${line#*$tab}\n"
    "        compset -p ${#start}\n"
    "        if [[ -n $line ]]; then\n"
    "            _files -g \"*.(${line// /|})(-.)\"\n"
    "        else\n"
    "            _files\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _memsim \"$@\"\n"
    "else\n"
    "    compdef _memsim memsim\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of memsim, made by \"memsim completion fish\"\n"
    "function __memsim_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l last (string unescape -- $words[-1])\n"
    "    set -l program (string replace -r '^~' $HOME -- $words[1])\n"
    "    set -l tab \\t\n"
    "    for line in ($program completion words -- $words[2..-2] \"$last\" \\\n"
    "            2>/dev/null)\n"
    "        if not string match -q -- \":files$tab*\" $line\n"
    "            echo $line\n"
    "            continue\n"
    "        end\n"
    "        set -l parts (string split -- $tab $line)\n"
    "        set -l from (math 1 + (string length -- $parts[2]))\n"
    "        set -l start (string sub -s $from -- \"$last\")\n"
    "        for path in (__fish_complete_path \"$start\")\n"
    "            set -l file (string split -f 1 -- $tab $path)\n"
    "            set -l ending (string replace -r '.*\\.' '' -- $file)\n"
    "            if test -z \"$parts[3]\"\n"
    "                or string match -q -- '*/' $file\n"
    "                or contains -- $ending (string split ' ' -- $parts[3])\n"
    "                echo $parts[2]$path\n"
    "            end\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c memsim -e\n"
    "complete -c memsim -k -f -a '(__memsim_complete)'\n";

static const struct {
    const char *shell, *script;
} shells[] = {
    {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
#define N_SHELLS (sizeof shells / sizeof shells[0])

const char *ms_completion_shell(uint32_t i)
{
    return i < N_SHELLS ? shells[i].shell : NULL;
}

static ms_err fail_shell(const char *word, ms_fault *fault)
{
    const char *names[N_SHELLS];
    for (size_t i = 0; i < N_SHELLS; i++)
        names[i] = shells[i].shell;
    const char *near = ms_names_nearest(word, names, N_SHELLS);
    char hint[64] = "bash, zsh or fish; or words, for a shell of your own";
    if (near != NULL) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint,
                   "there is no completion for \"%s\"", word);
}

ms_err ms_completion_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *const *words = (const char *const *)arguments->operands;
    ms_text text = {.arena = hall->keep};
    *status = 0;
    if (strcmp(words[0], "words") == 0) {
        if (arguments->n_operands > 1)
            ms_candidates_write(words + 1, arguments->n_operands - 1, &text);
        return ms_screen_print(&text, fault);
    }
    for (size_t i = 0; i < N_SHELLS; i++)
        if (strcmp(shells[i].shell, words[0]) == 0) {
            if (arguments->n_operands > 1)
                return ms_fail(fault, MS_EUSAGE, NULL, NULL,
                               "\"%s\" is one word too many", words[1]);
            ms_text_add(&text, "%s", shells[i].script);
            return ms_screen_print(&text, fault);
        }
    return fail_shell(words[0], fault);
}
