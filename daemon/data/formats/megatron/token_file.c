#include "daemon/data/formats/megatron/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/mapped.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define MARK_PIECES 64u /* of a file of tokens */
#define TOKEN_MAX   8u  /* bytes: a token that reaches into the last page begins at most this far before it */

void token_file_fini(struct token_file *file) {
        if (file->map)
                munmap(file->map, file->bin_bytes);
        free(file->tail);
        free(file->bin_name);
        free(file->idx_name);
        megatron_idx_fini(&file->index);
        if (file->budget)
                budget_release(file->budget, file->reserved_bytes);
        *file = (struct token_file){ 0 };
}

static int open_one(int root_fd, const char *name, int64_t *settled_ns, struct stat *ret_status, int *ret_fd,
                    struct why *why) {
        _cleanup_(closep) int fd = beneath_open(root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int r = fd < 0 ? -errno : index_settle(fd, settled_ns, ret_status);

        if (r == -ENOENT)
                return why_set(why, r, "%s does not exist: tokens are two files, PREFIX.bin and PREFIX.idx", name);
        if (r < 0)
                return why_errno(why, r, "%s cannot be opened", name);
        if (!S_ISREG(ret_status->st_mode))
                return why_set(why, -EINVAL, "%s is not a regular file", name);
        *ret_fd = take_fd(&fd);
        return 0;
}

static int token_file_reserve(struct token_file *file, struct budget *budget, uint64_t n_bytes, struct why *why) {
        int r = budget ? budget_reserve(budget, n_bytes, "an index of tokens", why) : 0;

        if (r == 0 && budget) {
                file->budget = budget;
                file->reserved_bytes = n_bytes;
        }
        return r;
}

static int read_idx(struct token_file *file, int fd, const atomic_bool *cancel, struct budget *budget,
                    struct why *why) {
        struct megatron_head head;
        struct why detail;
        int r = megatron_idx_head(fd, (uint64_t)file->idx.st_size, &head, &detail);

        if (r == 0)
                r = token_file_reserve(file, budget, head.memory_bytes, &detail);
        if (r == 0)
                r = megatron_idx_read(fd, &head, file->bin_bytes, cancel, &file->index, &detail);
        return r < 0 ? why_set(why, r, "%s: %s", file->idx_name, detail.text) : 0;
}

static int map_bin(struct token_file *file, int fd, struct why *why) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n_tail;
        void *map;
        int r;

        if (disk_may_hang(fd) || indexing_origin() || file->bin_bytes == 0)
                return 0;
        file->last_page = (file->bin_bytes - 1) / page * page;
        file->tail_at = file->last_page > TOKEN_MAX ? file->last_page - TOKEN_MAX : 0;
        n_tail = file->bin_bytes - file->tail_at;
        file->tail = malloc(n_tail);
        r = file->tail ? indexing_read_at(fd, file->tail, n_tail, file->tail_at) : -ENOMEM;
        if (r < 0)
                return why_errno(why, r, "%s cannot be read", file->bin_name);
        map = mmap(NULL, file->bin_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return 0; /* its tokens are read from the file */
        madvise(map, file->bin_bytes, MADV_RANDOM);
        file->map = map;
        return 0;
}

/* Descriptors are not kept open: a daemon may have thousands of datasets that no job uses. */
int token_file_open(struct token_file *file, int root_fd, const char *prefix, const atomic_bool *cancel,
                    struct budget *budget, int64_t *settled_ns, struct why *why) {
        _cleanup_(closep) int idx_fd = -1;
        _cleanup_(closep) int bin_fd = -1;
        int r;

        if (asprintf(&file->idx_name, "%s.idx", prefix) < 0)
                file->idx_name = NULL;
        if (asprintf(&file->bin_name, "%s.bin", prefix) < 0)
                file->bin_name = NULL;
        if (!file->idx_name || !file->bin_name)
                return why_set(why, -ENOMEM, "%s: no memory for its name", prefix);
        r = open_one(root_fd, file->idx_name, settled_ns, &file->idx, &idx_fd, why);
        if (r == 0)
                r = open_one(root_fd, file->bin_name, settled_ns, &file->bin, &bin_fd, why);
        if (r < 0)
                return r;
        file->bin_bytes = (uint64_t)file->bin.st_size;
        r = index_mark(bin_fd, 0, file->bin_bytes, MARK_PIECES, &file->mark);
        if (r < 0)
                return why_errno(why, r, "%s cannot be read", file->bin_name);
        r = read_idx(file, idx_fd, cancel, budget, why);
        return r < 0 ? r : map_bin(file, bin_fd, why);
}

const uint8_t *token_file_bytes(const struct token_file *file, uint64_t at, uint64_t n_bytes, uint64_t *ret_n) {
        uint64_t n;

        *ret_n = n_bytes;
        if (!file->map)
                return NULL;
        if (at + n_bytes <= file->last_page)
                return file->map + at;
        if (at >= file->tail_at)
                return file->tail + (at - file->tail_at);
        n = file->last_page - at;
        *ret_n = n - n % file->index.token_bytes; /* not 0: `at` is TOKEN_MAX or more before the last page */
        return file->map + at;
}

bool token_file_was_there(const struct token_file *file) {
        return mapped_is_there(file->map + file->last_page);
}
