/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SAFETENSORS_H
#define MS_SAFETENSORS_H

/* Private to graphs/huggingface: the headers of weights beside a config.json,
 * against which it is held.
 *
 * A file of safetensors (github.com/huggingface/safetensors, README, "Format")
 * begins with the length of its header, 8 bytes little-endian, at most
 * 100,000,000; the header is a JSON object: names with dtype, shape and
 * data_offsets [begin, end) behind it.  Read are FOLDER/model.safetensors, or
 * the files that FOLDER/model.safetensors.index.json names as far as they are
 * there; only their headers. */

#include "graphs/models/pages/page.h"

/* Holds the shapes of the page's "tensors" against the headers, and the number
 * of blocks ("depth") against their names; settings that change the model are
 * not held against it.  Nothing there: MS_OK.  Faults: MS_EINPUT, for a header
 * that is none, and for a contradiction, which names tensor and keys. */
ms_err ms_safetensors_check(ms_page *page, const char *folder);

#endif
