/* The index of a dataset, for who wants it on other nodes, too. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "daemon/ctl/handlers.h"
#include "daemon/ctl/opened/ctl_opened.h"
#include "proto/base/cleanup.h"

/* The file that it was opened from may have been replaced by that of a newer dataset; that of an unpacked one says
 * nothing of the files that were compressed. */
static int open_index(struct session *session, const char *name, int *ret_fd, struct stat *status, struct why *why) {
        struct catalog_entry *entry;
        char path[PATH_MAX];
        int r = opened_find(session, name, &entry, why);
        _cleanup_(closep) int fd = -1;

        if (r < 0)
                return r;
        if (entry->open->unpacked || entry->staged)
                return why_set(why, -EINVAL, "%s: its index is of files that were made here, and of no use elsewhere",
                               entry->name);
        r = dataset_index_path(entry->catalog->index_dir, entry->name, path, why);
        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, status) < 0)
                return why_errno(why, -errno, "%s: it has no index file (its format may need none)", entry->name);
        *ret_fd = fd;
        fd = -1;
        return 0;
}

void handle_index(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__IndexReply body = DLP__INDEX_REPLY__INIT;
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why why;
        int r = open_index(session, request->index->dataset, &fd, &status, &why);

        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        body.n_bytes = (uint64_t)status.st_size;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_INDEX;
        reply.index = &body;
        session_reply(session, &reply, &fd, 1);
}
