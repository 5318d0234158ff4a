/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The built-in devices: texts, each read when it is first asked for. */

#include "graphs/machines/devicefile.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define MOST 64u

/* Read once in the life of the process, by whichever thread comes first. */
static struct {
    pthread_mutex_t lock;
    ms_arena arena;
    bool is_read[MOST];
    ms_device rows[MOST];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool read_row(uint32_t i)
{
    const ms_device_text *text = &ms_devices[i];
    ms_fault fault = {.caret = -1};
    ms_device row = {0};
    ms_devicefile file = {
        .arena = &known.arena, .device = &row, .fault = &fault};
    ms_err err =
        ms_devicefile_open(&file, text->name, text->json, strlen(text->json));
    if (err == MS_OK)
        err = ms_devicefile_read(&file, text->name, false);
    assert(err == MS_OK || err == MS_ENOMEM);
    known.rows[i] = row;
    return err == MS_OK;
}

const ms_device *ms_devicerows_at(uint32_t i)
{
    assert(i < ms_devices_n && ms_devices_n <= MOST);
    pthread_mutex_lock(&known.lock);
    if (!known.is_read[i])
        known.is_read[i] = read_row(i);
    bool is_read = known.is_read[i];
    pthread_mutex_unlock(&known.lock);
    return is_read ? &known.rows[i] : NULL;
}
