/* Memory of which cells get the descriptor. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/cell/cell.h"
#include "proto/base/cleanup.h"

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
