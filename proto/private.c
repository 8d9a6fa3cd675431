#include "proto/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/job_group.h"

/* ---- who sees the same files, and ends with the same job ------------------------------------------------------- */

static uint64_t private_mix(uint64_t hash, const void *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull; /* FNV-1a */
        return hash;
}

static uint64_t mix_file(uint64_t hash, const char *path) {
        struct stat status;

        if (stat(path, &status) < 0)
                return hash;
        hash = private_mix(hash, &status.st_dev, sizeof(status.st_dev));
        return private_mix(hash, &status.st_ino, sizeof(status.st_ino));
}

/* Of the mount namespace, the root folder, the machine since it was booted, and the job; without /proc of the root
 * alone. */
static uint32_t place_number(void) {
        _cleanup_(closep) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        uint64_t hash = 0xcbf29ce484222325ull, job = dlp_job_group("/proc/self/cgroup");
        char boot[64];
        ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof(boot));

        if (n > 0)
                hash = private_mix(hash, boot, (size_t)n);
        hash = mix_file(hash, "/proc/self/ns/mnt");
        hash = mix_file(hash, "/");
        if (job != 0)
                hash = private_mix(hash, &job, sizeof(job));
        return (uint32_t)(hash ^ hash >> 32);
}

/* ---- the folder ------------------------------------------------------------------------------------------------ */

/* Is `folder` this user's alone? It is made if it is missing. What another user has put there is left alone. */
static int take_folder(const char *folder, struct why *why) {
        struct stat status;

        if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", folder);
        if (lstat(folder, &status) < 0)
                return why_errno(why, -errno, "%s", folder);
        if (!S_ISDIR(status.st_mode))
                return why_set(why, -ENOTDIR, "%s: is not a folder", folder);
        if (status.st_uid != geteuid())
                return why_set(why, -EACCES, "%s: belongs to user %u", folder, status.st_uid);
        if ((status.st_mode & 077) && chmod(folder, 0700) < 0)
                return why_errno(why, -errno, "%s: is open to others", folder);
        if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
                return why_errno(why, -errno, "%s", folder);
        return 0;
}

/* Fills in the names. -ENAMETOOLONG if the socket's is too long for an address. */
static int name_files(struct dlp_private *private, struct why *why) {
        uint32_t number = place_number();
        int n;

        n = snprintf(private->socket, sizeof(private->socket), "%s/private-%u-%08x.sock", private->folder,
                     DLP_PROTOCOL_VERSION, number);
        if (n < 0 || n > (int)DLP_SOCKET_PATH_MAX)
                return why_set(why, -ENAMETOOLONG, "%s: is too long for a socket", private->folder);
        snprintf(private->log, sizeof(private->log), "%.*s.log", n - 5, private->socket);
        snprintf(private->start, sizeof(private->start), "%.*s.start", n - 5, private->socket);
        return 0;
}

static int try_folder(const char *parent, const char *name, struct dlp_private *private, struct why *why) {
        int n = snprintf(private->folder, sizeof(private->folder), "%s/%s", parent, name), r;

        if (parent[0] != '/')
                return why_set(why, -EINVAL, "%s: is not an absolute path", parent);
        if (n < 0 || n >= (int)sizeof(private->folder))
                return why_set(why, -ENAMETOOLONG, "%s: is too long for a socket", parent);
        r = name_files(private, why); /* before anything is made */
        return r < 0 ? r : take_folder(private->folder, why);
}

/* A runtime folder of another user (after su or sudo) must not get anything of ours. */
static bool private_is_ours(const char *folder) {
        struct stat status;

        return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static const char *runtime_folder(char text[32]) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");

        if (runtime && runtime[0] == '/' && private_is_ours(runtime))
                return runtime;
        snprintf(text, 32, "/run/user/%u", geteuid());
        return private_is_ours(text) ? text : NULL;
}

bool dlp_private_log(const char *socket, char ret_log[DLP_PRIVATE_PATH_MAX]) {
        const char *name = text_after_slash(socket), *end = strrchr(name, '.');
        int n;

        if (strncmp(name, "private-", strlen("private-")) != 0 || !end || strcmp(end, ".sock") != 0)
                return false;
        n = snprintf(ret_log, DLP_PRIVATE_PATH_MAX, "%.*s.log", (int)(end - socket), socket);
        return n > 0 && n < (int)DLP_PRIVATE_PATH_MAX;
}

static void add_reason(struct why *all, const struct why *one) {
        char before[DLP_TEXT_MAX];

        snprintf(before, sizeof(before), "%s", all->text);
        why_set(all, 0, "%s%s%s", before, before[0] ? "; " : "", one->text);
}

int dlp_private_find(struct dlp_private *ret_private, struct why *why) {
        const char *temporary = getenv("TMPDIR");
        const char *const parents[] = { temporary && *temporary ? temporary : NULL, "/tmp", "/var/tmp", "/dev/shm" };
        struct why all = { "" }, one;
        struct dlp_private private;
        char name[32], text[32];
        const char *runtime = runtime_folder(text);

        if (runtime && try_folder(runtime, "dataloaderd", &private, &one) == 0) {
                *ret_private = private;
                return 0;
        }
        if (runtime)
                add_reason(&all, &one);
        snprintf(name, sizeof(name), "dataloaderd-%u", geteuid());
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                if (!parents[i])
                        continue;
                if (try_folder(parents[i], name, &private, &one) == 0) {
                        *ret_private = private;
                        return 0;
                }
                add_reason(&all, &one);
        }
        return why_set(why, -EACCES,
                       "no folder can be used for the socket of a private daemon (%s); set TMPDIR to a folder of yours",
                       all.text);
}
