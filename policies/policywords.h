/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_POLICYWORDS_H
#define MS_POLICIES_POLICYWORDS_H

/* What people call policies: by the keys of DeepSpeed, Transformers, torch and
 * Megatron (sim/base/words.h).  A row's means is the beginning of a policy:
 *
 *     zero3                 zero:3
 *     zero-3:dp=8           zero:3,dp=8
 *     gradient_checkpointing            checkpoint:full
 *     gradient_checkpointing:sqrt       checkpoint:sqrt
 *
 * Arguments behind a "?" stand where the user gives none. */

#include "policies/common/policy.h"

/* ms_policywords_plain (policy.h) gives the spec in words of the registry: text
 * itself where it is.  MS_EUSAGE at a word that has only an answer; unknown
 * names are left to the parser. */
/* The parameter that other programs call so, or NULL. */
const char *ms_policywords_param(const char *word, size_t length);

/* Is the name one of "a|b"? */
bool ms_policywords_lists(const char *words, const char *name);

#endif
