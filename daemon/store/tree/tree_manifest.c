/* FOLDER/VERSION.manifest: what lies in a version, as text like any manifest (plan.h), with the SHA-256 of every file
 * as it was found, and URLs without their queries. Written and read a few thousand lines at a time: a million files'
 * text is hundreds of megabytes. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/record/url.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

#define FILES_AT_ONCE 4096u
#define BYTES_AT_ONCE (2 * PLAN_LINE_MAX) /* one line always fits */

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* The URL as far as it may be kept where others read: a query may be a signature. The origin is asked anew for it. */
static char *without_query(const char *url) {
        struct url address;

        if (url_parse(url, &address, NULL) < 0) /* of a plan: it was checked */
                return strdup("file:///");
        return strndup(url, (size_t)(address.rest - url));
}

static int add_public(struct plan **begun, const struct plan_file *file, struct why *why) {
        char *urls[PLAN_URLS_MAX] = { NULL };
        struct plan_file public = *file;
        int r = 0;

        for (uint32_t i = 0; i < file->n_urls && r == 0; i++) {
                urls[i] = without_query(file->urls[i]);
                r = urls[i] ? 0 : -ENOMEM;
        }
        public.urls = (const char *const *)urls;
        if (r == 0)
                r = plan_add(begun, &public, why);
        for (uint32_t i = 0; i < file->n_urls; i++)
                free(urls[i]);
        return r;
}

static int tree_manifest_gather(const struct tree *tree, uint64_t first, uint64_t end, struct plan **ret_plan,
                                struct why *why) {
        _cleanup_(plan_freep) struct plan *begun = NULL;
        int r = 0;

        for (uint64_t i = first; i < end && r == 0; i++) {
                struct plan_file file = *plan_file(tree->plan, i);

                file.sha256 = tree_sha256(tree, i);
                file.modified = NULL;
                r = add_public(&begun, &file, why);
        }
        return r < 0 ? r : plan_finish(&begun, ret_plan, why);
}

static int tree_manifest_write_lines(struct tree *tree, int fd, struct why *why) {
        uint64_t n_files = plan_n_files(tree->plan), offset = 0;

        for (uint64_t first = 0; first < n_files; first += FILES_AT_ONCE) {
                uint64_t end = n_files - first < FILES_AT_ONCE ? n_files : first + FILES_AT_ONCE;
                _cleanup_(plan_freep) struct plan *plan = NULL;
                _cleanup_(freep) char *text = NULL;
                size_t n_bytes;
                int r;

                r = tree_manifest_gather(tree, first, end, &plan, why);
                if (r == 0)
                        r = plan_write(plan, &text, &n_bytes);
                if (r == 0)
                        r = disk_write_at(fd, text, n_bytes, offset);
                if (r < 0)
                        return r;
                offset += n_bytes;
                tree_tell_waiting(tree);
        }
        return 0;
}

int manifest_write(struct tree *tree, struct why *why) {
        char path[PATH_MAX], temporary[PATH_MAX];
        _cleanup_(closep) int fd = -1;

        if (place_file(&tree->place, tree->version, ".manifest", path) < 0)
                return why_errno(why, -ENAMETOOLONG, "%s", tree->root_path);
        fd = disk_begin_new(path, temporary);
        if (fd < 0)
                return why_errno(why, fd, "%s", path);
        return disk_end_new(fd, temporary, path, tree_manifest_write_lines(tree, fd, why), why);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

struct lines {
        struct tree *tree;
        int (*entry)(void *userdata, uint64_t idx_file, const struct plan_file *there);
        void *userdata;
        const char *source;
};

static int each_of(const struct lines *lines, const char *text, size_t n_bytes, struct why *why) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        int r = plan_parse(text, n_bytes, lines->source, NULL, false, &plan, why);

        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct plan_file *there = plan_file(plan, i);
                int64_t idx_file = plan_find(lines->tree->plan, there->path);

                r = idx_file < 0 ? 0 : lines->entry(lines->userdata, (uint64_t)idx_file, there);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* How much of the text ends with a line's end. */
static size_t whole_lines(const char *text, size_t n_bytes) {
        const char *last = memrchr(text, '\n', n_bytes);

        return last ? (size_t)(last - text) + 1 : 0;
}

static int each_line(const struct lines *lines, int fd, struct why *why) {
        _cleanup_(freep) char *text = malloc(BYTES_AT_ONCE);
        size_t n_bytes = 0;

        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(fd, text + n_bytes, BYTES_AT_ONCE - n_bytes);
                size_t n_whole;
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                n_bytes += (size_t)n;
                if (n > 0 && n_bytes < BYTES_AT_ONCE)
                        continue;
                if (n_bytes == 0)
                        return 0;
                n_whole = whole_lines(text, n_bytes);
                if (n_whole == 0)
                        return why_set(why, -EBADMSG, "%s is cut, or not a manifest", lines->source);
                r = each_of(lines, text, n_whole, why);
                if (r != 0)
                        return r;
                n_bytes -= n_whole;
                memmove(text, text + n_whole, n_bytes);
        }
}

int manifest_each(struct tree *tree, const char *version,
                  int (*entry)(void *userdata, uint64_t idx_file, const struct plan_file *there), void *userdata,
                  struct why *why) {
        struct lines lines = { .tree = tree, .entry = entry, .userdata = userdata };
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        struct stat status;

        if (place_file(&tree->place, version, ".manifest", path) < 0)
                return why_errno(why, -ENAMETOOLONG, "%s", version);
        lines.source = path;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
                return why_set(why, -EBADMSG, "%s is not a manifest", path);
        return each_line(&lines, fd, why);
}
