#include "daemon/plugin/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static uint64_t pages(uint64_t n_bytes) {
        return (n_bytes + PAGE - 1) / PAGE * PAGE;
}

int area_make(struct area *ret_area) {
        struct area area = { .fd = memfd_create("dataloaderd-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING) };
        int r;

        if (area.fd < 0)
                return -errno;
        if (fcntl(area.fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
                r = -errno;
                close(area.fd);
                return r;
        }
        *ret_area = area;
        return 0;
}

void area_take(struct area *area, int fd) {
        *area = (struct area){ .fd = fd, .is_input_fixed = true };
}

static void unmap(struct area *area) {
        if (area->bytes)
                munmap(area->bytes, area->n_bytes);
        area->bytes = NULL;
        area->n_bytes = area->output_offset = 0;
}

void area_fini(struct area *area) {
        unmap(area);
        if (area->fd >= 0)
                close(area->fd);
        area->fd = -1;
}

int area_map(struct area *area, uint64_t n_bytes, uint64_t output_offset) {
        uint8_t *bytes;

        if (area->bytes && area->n_bytes == n_bytes && area->output_offset == output_offset)
                return 0;
        bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
        if (bytes == MAP_FAILED)
                return -errno;
        if (area->is_input_fixed && output_offset > 0)
                mprotect(bytes, output_offset, PROT_READ); /* against accidents */
        unmap(area);
        area->bytes = bytes;
        area->n_bytes = n_bytes;
        area->output_offset = output_offset;
        return 0;
}

/* The pages are made now: where there are none, a store into the mapping would end the daemon. */
int area_reserve(struct area *area, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why) {
        uint64_t n_input = pages(n_input_bytes), n_output = pages(n_output_bytes);
        int r;

        if (area->bytes && n_input <= area->output_offset && n_output <= area->n_bytes - area->output_offset)
                return 0;
        if (n_input < area->output_offset)
                n_input = area->output_offset;
        if (n_output < area->n_bytes - area->output_offset)
                n_output = area->n_bytes - area->output_offset;
        r = fallocate(area->fd, 0, 0, (off_t)(n_input + n_output)) < 0 ? -errno : 0;
        if (r == 0)
                r = area_map(area, n_input + n_output, n_input);
        return r < 0 ? why_errno(why, -ENOMEM, "%llu bytes for a plug-in", (unsigned long long)(n_input + n_output))
                     : 0;
}

void area_trim(struct area *area) {
        uint64_t n_bytes = area->n_bytes;

        unmap(area);
        if (n_bytes > 0)
                (void)!fallocate(area->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)n_bytes);
}
