/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stdout and stderr for the archive of igraph within libmemsim.
 *
 * Debian's libigraph.a is compiled for programs, which have copies of the C
 * library's variables at fixed places; a shared library has none.  The linker
 * (--wrap) gives what it links these instead.  igraph prints only before it
 * aborts: graphs/lowering/dag.c takes its errors and warnings. */
#include <stdio.h>

extern FILE *__real_stdout, *__real_stderr; /* NOLINT: the linker's names */
FILE *__wrap_stdout, *__wrap_stderr;        /* NOLINT */

__attribute__((constructor)) static void fill(void)
{
    __wrap_stdout = __real_stdout;
    __wrap_stderr = __real_stderr;
}
