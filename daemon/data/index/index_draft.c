#include "daemon/data/index/index_draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/own_file.h"
#include "daemon/data/index/index.h"
#include "proto/base/cleanup.h"

int index_draft_make(const char *index_dir, const char *place, struct index_draft *ret_draft, struct why *why) {
        ret_draft->fd = -1;
        ret_draft->path[0] = '\0';
        ret_draft->place = place;
        if (mkdir(index_dir, 0700) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s cannot be made", index_dir);
        if (snprintf(ret_draft->path, PATH_MAX, "%s" INDEX_DRAFT_MARK "XXXXXX", place) >= PATH_MAX) {
                ret_draft->path[0] = '\0';
                return why_set(why, -ENAMETOOLONG, "%s", place);
        }
        ret_draft->fd = mkostemp(ret_draft->path, O_CLOEXEC);
        if (ret_draft->fd < 0) {
                ret_draft->path[0] = '\0';
                return why_errno(why, -errno, "no file can be made in %s", index_dir);
        }
        return 0;
}

int index_draft_place(struct index_draft *draft, struct why *why) {
        /* mkostemp() gave it 0600, which stays: an index has names and texts of a dataset that `allow` may keep from
         * others. */
        if (rename(draft->path, draft->place) < 0)
                return why_errno(why, -errno, "%s cannot be put in place", draft->place);
        draft->path[0] = '\0';
        disk_sync_folder_of(draft->place, NULL); /* if the name is lost in a power cut, the index is made again */
        return 0;
}

void index_draft_drop(struct index_draft *draft) {
        if (draft->path[0])
                unlink(draft->path);
        draft->path[0] = '\0';
        closep(&draft->fd);
}

bool index_draft_is_name(const char *name, const char *ending) {
        size_t n = strlen(name), n_ending = strlen(ending), n_mark = strlen(INDEX_DRAFT_MARK) + INDEX_DRAFT_RANDOM;

        return n > n_ending + n_mark && strncmp(name + n - n_mark - n_ending, ending, n_ending) == 0 &&
               strncmp(name + n - n_mark, INDEX_DRAFT_MARK, strlen(INDEX_DRAFT_MARK)) == 0;
}

int index_in_memory(struct index_builder *builder, const char *name, struct budget *budget, struct source **ret_source,
                    struct why *why) {
        _cleanup_(closep) int fd = -1;
        int r = own_file_make("dataloaderd-index", &fd);

        if (r < 0)
                return why_errno(why, r, "no memory for the index of %s", name);
        r = index_builder_write(builder, fd, name, why);
        if (r < 0)
                return r;
        r = own_file_seal(fd);
        return r < 0 ? why_errno(why, r, "the index of %s in memory", name)
                     : index_open_fd(fd, name, budget, ret_source, why);
}
