#include "daemon/store/tree/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/record/version_lock.h"
#include "proto/base/cleanup.h"

#define VERSIONS_MAX 64u  /* removed at a time; what is left over the next staging removes */
#define DEPTH_MAX    200u /* a descriptor each; what lies deeper was not made by people */

static int remove_entry(int dir_fd, const char *name, uint32_t depth);

/* Never through a link: what is opened is the folder that was there, or nothing. */
static DIR *sweep_open_folder(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);

        if (!folder)
                closep(&fd);
        return folder;
}

static int empty_folder(int dir_fd, const char *name, uint32_t depth) {
        DIR *folder = sweep_open_folder(dir_fd, name);
        const struct dirent *entry;
        int r = 0;

        if (!folder)
                return -errno;
        while (r == 0 && (entry = readdir(folder)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        r = remove_entry(dirfd(folder), entry->d_name, depth + 1);
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

static bool sweep_is_among(const char *name, const char *const *versions, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (versions[i][0] && strncmp(name, versions[i], 14) == 0)
                        return true;
        return false;
}

/* Last of all what readers lock: who comes too late finds it gone, with the version. */
static void sweep_version(int folder_fd, const char *version) {
        DIR *folder = sweep_open_folder(folder_fd, ".");
        struct version_claim claim;
        const struct dirent *entry;
        char readers[PLACE_VERSION_SIZE + 16];
        int r;

        if (!folder)
                return;
        if (version_claim(folder_fd, version, &claim) < 0) {
                log_info("stage", "an old version is left, for somebody reads it; a later staging removes it name=%s",
                         version);
                closedir(folder);
                return;
        }
        snprintf(readers, sizeof(readers), "%s.readers", version);
        while ((entry = readdir(folder))) {
                if (!is_of_version(entry->d_name) || !sweep_is_among(entry->d_name, &version, 1) ||
                    strcmp(entry->d_name, readers) == 0)
                        continue;
                r = remove_entry(folder_fd, entry->d_name, 0);
                if (r < 0)
                        log_warning("stage",
                                    "an old version cannot be removed (%s); the next staging tries again name=%s",
                                    strerror(-r), entry->d_name);
        }
        closedir(folder);
        unlinkat(folder_fd, readers, 0);
        version_claim_free(&claim);
}

void sweep_versions(int folder_fd, const char *const *keep, size_t n_keep) {
        DIR *folder = sweep_open_folder(folder_fd, ".");
        char names[VERSIONS_MAX][PLACE_VERSION_SIZE];
        const char *versions[VERSIONS_MAX];
        const struct dirent *entry;
        size_t n = 0;

        while (folder && n < VERSIONS_MAX && (entry = readdir(folder))) {
                if (!is_of_version(entry->d_name) || sweep_is_among(entry->d_name, keep, n_keep) ||
                    sweep_is_among(entry->d_name, versions, n))
                        continue;
                snprintf(names[n], sizeof(names[n]), "%.14s", entry->d_name);
                versions[n] = names[n];
                n++;
        }
        if (folder)
                closedir(folder);
        for (size_t i = 0; i < n; i++)
                sweep_version(folder_fd, versions[i]);
}
