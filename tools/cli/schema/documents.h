/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_CLI_DOCUMENTS_H
#define MS_CLI_DOCUMENTS_H

/* The documents that memsim reads and prints as JSON, a row each, for memsim
 * schema, help, the man page and completions. The rows of a document's keys
 * lie beside the code that prints it, which does not look at this table. */

#include "tools/results/schema/schema.h"

extern const ms_schema_document ms_documents[];
extern const uint32_t ms_documents_n;

#endif
