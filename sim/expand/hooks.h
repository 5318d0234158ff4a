/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HOOKS_H
#define MS_SIM_HOOKS_H

/* Private to sim/: a program's hooks on what nodes save (sim/saves.h), as its
 * plan grows.  Around each op:
 *
 *     unpack what op's node asks for    (the first op of a node)
 *     run op
 *     pack what is saved behind it
 *     the graph's references end
 *     let go of what was unpacked       (the last op of a node) */

#include "sim/expand/books.h"

/* books->hooked stays NULL where the program has no hooks. */
ms_err ms_hooks_open(ms_books *books, const ms_program *program);
ms_err ms_hooks_unpack(ms_books *books, const ms_books_at *at, uint32_t op);
ms_err ms_hooks_pack(ms_books *books, const ms_books_at *at, uint32_t op);
ms_err ms_hooks_let_go(ms_books *books, const ms_books_at *at, uint32_t op);
/* Before a call that is no part of a backward: what the last node left goes. */
ms_err ms_hooks_rest(ms_books *books, const ms_books_at *at,
                     const ms_call *call);

#endif
