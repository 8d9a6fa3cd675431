#include "client/lib/daemon/daemon_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define NAME "dataloaderd"

static bool is_program(const char *path) {
        struct stat status;

        return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* The folder of the file that this code was loaded from: the library, or a program that has it built in. */
static bool find_own_folder(char ret_folder[PATH_MAX]) {
        char *slash;
        Dl_info info;

        if (!dladdr((void *)(uintptr_t)dli_program_find, &info) || !info.dli_fname || !strchr(info.dli_fname, '/') ||
            !realpath(info.dli_fname, ret_folder)) {
                ssize_t n = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);

                if (n <= 0)
                        return false;
                ret_folder[n] = '\0';
        }
        slash = strrchr(ret_folder, '/');
        if (slash)
                *slash = '\0';
        return slash;
}

static bool find_beside(char ret_path[PATH_MAX]) {
        /* bin/: the wheel; "": the build; the others: lib and lib/TRIPLET of an installation */
        static const char *const PLACES[] = { "bin/", "", "../bin/", "../sbin/", "../../bin/", "../../sbin/" };
        char folder[PATH_MAX];

        if (!find_own_folder(folder))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++)
                if (snprintf(ret_path, PATH_MAX, "%s/%s" NAME, folder, PLACES[i]) < PATH_MAX && is_program(ret_path))
                        return true;
        return false;
}

static bool daemon_program_find_in(const char *folders, char ret_path[PATH_MAX]) {
        for (const char *at = folders; *at; at += strspn(at, ":")) {
                size_t n = strcspn(at, ":");

                if (at[0] == '/' && snprintf(ret_path, PATH_MAX, "%.*s/" NAME, (int)n, at) < PATH_MAX &&
                    is_program(ret_path))
                        return true;
                at += n;
        }
        return false;
}

int dli_program_find(char ret_path[PATH_MAX], struct why *reason) {
        const char *named = getenv("DATALOADERD_PROGRAM"), *path = getenv("PATH");

        if (named && *named) {
                if (named[0] == '/' && strlen(named) < PATH_MAX && is_program(named)) {
                        strcpy(ret_path, named);
                        return 0;
                }
                return why_set(reason, -ECONNREFUSED,
                               "a private daemon could not be started: DATALOADERD_PROGRAM is \"%s\", which is not the "
                               "absolute path of a program",
                               named);
        }
        if (find_beside(ret_path) || daemon_program_find_in(path ? path : "", ret_path) ||
            daemon_program_find_in("/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin", ret_path))
                return 0;
        return why_set(
                reason, -ECONNREFUSED,
                "a private daemon could not be started: the program " NAME
                " is neither beside libdlclient nor in PATH; install it, or set DATALOADERD_PROGRAM to its path");
}
