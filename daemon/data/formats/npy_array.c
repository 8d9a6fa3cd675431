#include "daemon/data/formats/npy_array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/mapped.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define MARK_PIECES  64u    /* of a file of one array */
#define TAIL_ROW_MAX 65536u /* bytes; one or two rows of this size are kept for each array */

const char *npy_array_name(const struct npy_array *array) {
        return array->member ? array->member : array->file;
}

void npy_array_fini(struct npy_array *array) {
        if (array->map)
                munmap(array->map, array->header.end);
        free(array->tail);
        free(array->file);
        free(array->member);
}

static int npy_array_read_header(struct npy_array *array, int fd, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = malloc(NPY_HEADER_MAX);
        uint64_t size = array->n_bytes;
        size_t n = size < NPY_HEADER_MAX ? (size_t)size : NPY_HEADER_MAX;
        int r = bytes ? indexing_read_at(fd, bytes, n, array->begin) : -ENOMEM;

        if (r < 0)
                return why_errno(why, r, "cannot be read");
        r = npy_header_read(bytes, n, !array->member, &array->header, why);
        if (r < 0)
                return r;
        if (array->header.end > size)
                return why_set(why, -EBADMSG,
                               "is cut: its header says %" PRIu64 " rows of %" PRIu64
                               " bytes, which end at byte %" PRIu64 ", and it has %" PRIu64 " bytes",
                               array->header.shape[0], array->header.row_bytes, array->header.end, size);
        if (array->header.end < size)
                return why_set(why, -EBADMSG,
                               "goes on after the array that its header describes, from byte %" PRIu64 " to %" PRIu64
                               ": save one array a file",
                               array->header.end, size);
        array->header.data += array->begin;
        array->header.end += array->begin;
        return 0;
}

static uint64_t last_page(const struct npy_array *array) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        return (array->header.end - 1) / page * page;
}

static int map_array(struct npy_array *array, int fd, struct why *why) {
        const struct npy_header *header = &array->header;
        uint64_t page = last_page(array), tail;
        void *map;
        int r;

        if (disk_may_hang(fd) || indexing_origin())
                return 0;
        array->first_tail = page > header->data ? (page - header->data) / header->row_bytes : 0;
        tail = header->data + array->first_tail * header->row_bytes;
        if (header->row_bytes <= TAIL_ROW_MAX) {
                array->tail = malloc(header->end - tail);
                r = array->tail ? indexing_read_at(fd, array->tail, header->end - tail, tail) : -ENOMEM;
                if (r < 0)
                        return why_errno(why, r, "cannot be read");
        }
        map = mmap(NULL, header->end, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return 0; /* its rows are read from the file */
        madvise(map, header->end, MADV_RANDOM);
        array->map = map;
        return 0;
}

/* Descriptors are not kept open: a daemon may have thousands of datasets that no job uses. */
int npy_array_open(struct npy_array *array, int root_fd, int64_t *settled_ns, struct why *why) {
        _cleanup_(closep) int fd = beneath_open(root_fd, array->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat listed = array->status;
        int r = fd < 0 ? -errno : index_settle(fd, settled_ns, &array->status);

        if (r < 0)
                return why_errno(why, r, "cannot be opened");
        if (!S_ISREG(array->status.st_mode))
                return why_set(why, -EINVAL, "is not a regular file");
        if (!array->member)
                array->n_bytes = (uint64_t)array->status.st_size;
        else if (!index_is_unchanged(&listed, &array->status))
                return why_set(why, -ESTALE, "was changed while it was opened; try again");
        r = index_mark(fd, array->begin, array->n_bytes, MARK_PIECES, &array->mark);
        if (r < 0)
                return why_errno(why, r, "cannot be read");
        r = array->raw ? npy_raw_header(array->raw, array->n_bytes, &array->header, why)
                       : npy_array_read_header(array, fd, why);
        return r < 0 ? r : map_array(array, fd, why);
}

const uint8_t *npy_array_row(const struct npy_array *array, uint64_t row) {
        if (!array->map)
                return NULL;
        if (row < array->first_tail)
                return array->map + array->header.data + row * array->header.row_bytes;
        return array->tail ? array->tail + (row - array->first_tail) * array->header.row_bytes : NULL;
}

/* If a file is cut, the array's last page is gone, so touching that page tells. Only a cut within that page is not
 * noticed, and the rows in that page are never taken from the mapping. */
bool npy_array_rows_were_there(const struct npy_array *array) {
        return mapped_is_there(array->map + last_page(array));
}
