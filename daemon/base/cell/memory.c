/* Memory of which cells get the descriptor. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/cell/cell.h"
#include "proto/base/cleanup.h"

#define PAGE  4096u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int memory_write_all(int fd, const uint8_t *bytes, uint64_t n_bytes) {
        for (uint64_t done = 0; done < n_bytes;) {
                ssize_t n = write(fd, bytes + done, n_bytes - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (uint64_t)n : 0;
        }
        return 0;
}

int cells_share(struct cells *cells, const char *name, const void *bytes, uint64_t n_bytes,
                struct cell_memory *ret_memory) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0 || ftruncate(fd, (off_t)n_bytes) < 0)
                return -errno;
        r = bytes ? memory_write_all(fd, bytes, n_bytes) : 0;
        if (r < 0)
                return r;
        if (fcntl(fd, F_ADD_SEALS, SEALS | (bytes ? F_SEAL_WRITE : 0)) < 0)
                return -errno;
        *ret_memory = (struct cell_memory){
                .number = cells_number(cells), .n_bytes = n_bytes, .fd = take_fd(&fd), .is_writable = !bytes
        };
        return 0;
}

void cells_unshare(struct cells *cells, struct cell_memory *memory) {
        if (memory->number == 0)
                return;
        cells_forget(cells, memory->number);
        close(memory->fd);
        *memory = (struct cell_memory){ .fd = -1 };
}

/* ---- areas ------------------------------------------------------------------------------------------------------- */

void cell_area_drop(struct cells *cells, struct cell_area *area) {
        if (area->bytes)
                munmap(area->bytes, area->memory.n_bytes);
        cells_unshare(cells, &area->memory);
        area->bytes = NULL;
}

int cell_area_make(struct cells *cells, const char *name, uint64_t n_bytes, struct cell_area *ret_area) {
        struct cell_area area = { 0 };
        int r = cells_share(cells, name, NULL, n_bytes, &area.memory);
        void *bytes;

        if (r < 0)
                return r;
        bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area.memory.fd, 0);
        if (bytes == MAP_FAILED) {
                cells_unshare(cells, &area.memory);
                return -ENOMEM;
        }
        area.bytes = bytes;
        *ret_area = area;
        return 0;
}

/* The pages are made now: where there are none, a store into the mapping would end the daemon. */
int cell_area_widen(struct cells *cells, const char *name, uint64_t n_bytes, struct cell_area *area) {
        uint64_t n_wide = (n_bytes / PAGE + 1) * PAGE;
        struct cell_area wide;
        int r = n_wide <= area->memory.n_bytes ? 0 : cell_area_make(cells, name, n_wide, &wide);

        if (r < 0 || n_wide <= area->memory.n_bytes)
                return r;
        if (fallocate(wide.memory.fd, 0, 0, (off_t)n_wide) < 0) {
                cell_area_drop(cells, &wide);
                return -ENOMEM;
        }
        if (area->bytes)
                memcpy(wide.bytes, area->bytes, area->memory.n_bytes);
        cell_area_drop(cells, area);
        *area = wide;
        return 0;
}
