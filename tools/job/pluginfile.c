/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies from shared libraries: the one file that knows dlopen.  What a
 * library must export is in policies/plugin.h. */

#include "policies/common/policy.h"
#include "policies/pluginpolicy.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#ifndef MS_STATIC /* 1: no library can be loaded (CMake's MEMSIM_STATIC) */
#define MS_STATIC 0
#endif
#define ENTRY "ms_plugin_entry"
#define HINT                                                                   \
    "a plugin is a shared library: "                                           \
    "cc -std=c17 -shared -fPIC -I. mine.c -o mine.so"

/* Opening a pipe would wait for its writer. */
static ms_err check_file(const char *path, ms_fault *fault)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return ms_fail(fault, MS_ESYSTEM, path, NULL, "cannot read: %s",
                       strerror(errno));
    if (!S_ISREG(file.st_mode))
        return ms_fail(fault, MS_EINPUT, path, HINT,
                       "is not a regular file, and so no shared library");
    return MS_OK;
}

/* dlopen searches the system's folders for a name without a slash. */
static ms_err open_library(const char *path, ms_arena *arena, void **library,
                           ms_fault *fault)
{
    const char *folder = strchr(path, '/') == NULL ? "./" : "";
    const char *file = ms_arena_format(arena, "%s%s", folder, path);
    if (file == NULL)
        return ms_fail_nomem(fault);
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*library != NULL)
        return MS_OK;
    const char *reason = dlerror();
    size_t length = strlen(file);
    if (strncmp(reason, file, length) == 0 && reason[length] == ':')
        reason += length + 1 + (reason[length + 1] == ' ');
    return ms_fail(fault, MS_EINPUT, path, HINT, "cannot be loaded: %s",
                   reason);
}

static ms_err load(const char *path, ms_arena *arena, ms_fault *fault)
{
    void *library;
    if (MS_STATIC)
        return ms_fail(fault, MS_EUSAGE, "--plugin",
                       "the Debian package's memsim loads plugins, and so does "
                       "a build of the preset release",
                       "this memsim is statically linked: it cannot load a "
                       "shared library such as \"%s\"",
                       path);
    MS_TRY(check_file(path, fault));
    MS_TRY(open_library(path, arena, &library, fault));
    const ms_plugin *plugin = dlsym(library, ENTRY);
    const ms_policy *policy;
    if (plugin == NULL)
        return ms_fail(fault, MS_EINPUT, path,
                       "add: const ms_plugin " ENTRY
                       " = {.api = MS_PLUGIN_API, .name = ...};",
                       "exports no " ENTRY);
    if (plugin->api != MS_PLUGIN_API)
        return ms_fail(fault, MS_EINPUT, path,
                       "rebuild it with this memsim's policies/plugin.h",
                       "is made for version %u of plugins, this memsim has "
                       "%u",
                       plugin->api, MS_PLUGIN_API);
    MS_TRY(ms_pluginpolicy_of(plugin, path, &policy, fault));
    return ms_registry_add(policy, path, fault);
}

ms_err ms_pluginfile_load(const ms_arguments *arguments, ms_arena *arena,
                          ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++)
        if (arguments->given[i].option->id == MS_OPTION_PLUGIN)
            MS_TRY(load(arguments->given[i].value, arena, fault));
    return MS_OK;
}
