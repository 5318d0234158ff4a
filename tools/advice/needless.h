/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_NEEDLESS_H
#define MS_TOOLS_NEEDLESS_H

/* Policies that were given and do nothing:
 *
 *     uint32_t needless;
 *     MS_TRY(ms_needless_find(&job, &result, &needless, fault));
 *     if (needless != 0)
 *         MS_TRY(ms_needless_words(&job, needless, &arena, &words, fault));
 */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* needless gets a bit for each policy of the job without which the step has the
 * same peaks, times and traffic. result is of the job. */
ms_err ms_needless_find(const ms_job *job, const ms_result *result,
                        uint32_t *needless, ms_fault *fault);
/* "checkpoint:selective changes nothing here: attention keeps no scores that
 * could be dropped". */
ms_err ms_needless_words(const ms_job *job, uint32_t needless, ms_arena *arena,
                         ms_text *words, ms_fault *fault);

#endif
