#include "daemon/staging/tree/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/staging/record/version_lock.h"
#include "proto/base/cleanup.h"

#define VERSIONS_MAX 64u  /* removed at a time; what is left over the next staging removes */
#define DEPTH_MAX    200u /* a descriptor each; what lies deeper was not made by people */

/* What has been decided of a version: removed, or left to who reads it. */
struct swept {
        char version[PLACE_VERSION_SIZE];
        struct version_claim claim;
        bool is_ours;
};

struct sweep {
        int folder_fd;
        struct swept versions[VERSIONS_MAX];
        uint32_t n;
};

static int remove_entry(int dir_fd, const char *name, uint32_t depth);

/* Never through a link: what is opened is the folder that was there, or nothing. */
static int empty_folder(int dir_fd, const char *name, uint32_t depth) {
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const struct dirent *entry;
        DIR *folder;
        int r = 0;

        if (fd < 0)
                return -errno;
        folder = fdopendir(fd);
        if (!folder) {
                r = -errno;
                close(fd);
                return r;
        }
        while (r == 0 && (entry = readdir(folder)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        r = remove_entry(fd, entry->d_name, depth + 1);
        closedir(folder);
        return r;
}

static int remove_entry(int dir_fd, const char *name, uint32_t depth) {
        int r;

        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return -errno;
        if (depth >= DEPTH_MAX)
                return -ELOOP;
        r = empty_folder(dir_fd, name, depth);
        if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                r = -errno;
        return r;
}

/* "v-" and twelve digits, and what may follow: ".manifest", ".spool", ... */
static bool is_of_version(const char *name) {
        return strncmp(name, "v-", 2) == 0 && strspn(name + 2, "0123456789abcdef") >= 12 &&
               (name[14] == '\0' || name[14] == '.');
}

static bool is_kept(const char *name, const char *const *keep, size_t n_keep) {
        for (size_t i = 0; i < n_keep; i++)
                if (keep[i][0] && strncmp(name, keep[i], 14) == 0)
                        return true;
        return false;
}

/* The version that a name belongs to, claimed when it is met first. NULL: too many at a time. */
static struct swept *sweep_version(struct sweep *sweep, const char *name) {
        struct swept *swept;

        for (uint32_t i = 0; i < sweep->n; i++)
                if (strncmp(sweep->versions[i].version, name, 14) == 0)
                        return &sweep->versions[i];
        if (sweep->n == VERSIONS_MAX)
                return NULL;
        swept = &sweep->versions[sweep->n++];
        snprintf(swept->version, sizeof(swept->version), "%.14s", name);
        swept->is_ours = version_claim(sweep->folder_fd, swept->version, &swept->claim) == 0;
        if (!swept->is_ours)
                log_info("stage", "an old version is left, for somebody reads it; a later staging removes it name=%s",
                         swept->version);
        return swept;
}

/* Last of all what readers lock: who comes too late finds it gone, with the version. */
static void sweep_end(struct sweep *sweep) {
        for (uint32_t i = 0; i < sweep->n; i++) {
                struct swept *swept = &sweep->versions[i];
                char name[PLACE_VERSION_SIZE + 16];

                if (!swept->is_ours)
                        continue;
                snprintf(name, sizeof(name), "%s.readers", swept->version);
                unlinkat(sweep->folder_fd, name, 0);
                version_claim_free(&swept->claim);
        }
}

static void sweep_entry(struct sweep *sweep, const char *name) {
        const struct swept *swept = sweep_version(sweep, name);
        int r;

        if (!swept || !swept->is_ours || strcmp(name + 14, ".readers") == 0)
                return;
        r = remove_entry(sweep->folder_fd, name, 0);
        if (r < 0)
                log_warning("stage", "an old version cannot be removed (%s); the next staging tries again name=%s",
                            strerror(-r), name);
}

void sweep_versions(int folder_fd, const char *const *keep, size_t n_keep) {
        int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        struct sweep sweep = { .folder_fd = folder_fd };
        const struct dirent *entry;

        if (!folder) {
                closep(&fd);
                return;
        }
        while ((entry = readdir(folder)))
                if (is_of_version(entry->d_name) && !is_kept(entry->d_name, keep, n_keep))
                        sweep_entry(&sweep, entry->d_name);
        closedir(folder);
        sweep_end(&sweep);
}
