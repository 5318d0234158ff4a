/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FUZZ_H
#define MS_FUZZ_H

/* Each target is one file that defines this function: any bytes are fine, a
 * crash, a leak, a sanitizer finding or a failed assertion is not.  With the
 * preset fuzz it is linked to libFuzzer, elsewhere to driver.c, which replays
 * files. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* An input that takes more memory than this is refused. */
#define FUZZ_ARENA_BYTES (256u << 20)

/* An assertion that holds in release builds, too. */
#define FUZZ_LAW(holds)                                                        \
    do {                                                                       \
        if (!(holds))                                                          \
            __builtin_trap();                                                  \
    } while (0)

#endif
