/* cuda/host.c: memory of the process that the device may touch: registered, or allocated by the driver. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "tests/cuda/inside.h"

#define PAGE 4096ull

static struct pinned *all_pinned;

/* ---- touching it ------------------------------------------------------------------------------------------------ */

/* By the kernel's hand, for three reasons. Memory that was unmapped meanwhile is an answer, not a crash. And tests have
 * the application write what a copy reads, on purpose, to see that a slot which is used again too early spoils the
 * batch: for the thread sanitizer that would be a race, and a compiler might make anything of it; the device, which it
 * stands for, takes no part in either. */
static bool transfer(void *here, uint64_t there, uint64_t n_bytes, bool writes) {
        while (n_bytes > 0) {
                struct iovec local = { here, n_bytes }, remote = { (void *)there, n_bytes };
                ssize_t n = writes ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
                                   : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

                if (n <= 0)
                        return false;
                here = (char *)here + n;
                there += (uint64_t)n;
                n_bytes -= (uint64_t)n;
        }
        return true;
}

bool host_read(void *to, uint64_t from, uint64_t n_bytes) {
        return transfer(to, from, n_bytes, false);
}

bool host_write(uint64_t to, const void *from, uint64_t n_bytes) {
        return transfer((void *)from, to, n_bytes, true);
}

/* ---- which there is ---------------------------------------------------------------------------------------------- */

struct pinned *pinned_holding(uint64_t address, uint64_t n_bytes, bool *ret_overlaps) {
        *ret_overlaps = false;
        for (struct pinned *pinned = all_pinned; pinned; pinned = pinned->next) {
                if (address >= pinned->at + pinned->n_bytes || pinned->at >= address + n_bytes)
                        continue;
                *ret_overlaps = true;
                if (address >= pinned->at && address + n_bytes <= pinned->at + pinned->n_bytes)
                        return pinned;
        }
        return NULL;
}

static struct pinned *pinned_new(struct context *context, uint64_t at, uint64_t n_bytes) {
        struct pinned *pinned = must_alloc(sizeof(*pinned));

        *pinned = (struct pinned){ .at = at, .n_bytes = n_bytes, .context = context, .next = all_pinned };
        all_pinned = pinned;
        return pinned;
}

/* Waits for the copies that are still to touch it, as the driver does; a client has no right to rely on it. */
static void pinned_end(struct pinned *pinned, const char *call) {
        struct pinned **at = &all_pinned;

        if (pinned->n_queued > 0)
                violation("%s: copies from or to the memory at %#" PRIx64 " are still queued", call, pinned->at);
        while (*at != pinned)
                at = &(*at)->next;
        *at = pinned->next;
        while (pinned->n_queued > 0)
                pthread_cond_wait(&the_condition, &the_lock);
        if (pinned->is_own) {
                the.counts.n_host_allocations--;
                munmap((void *)pinned->at, pinned->n_bytes);
        } else {
                the.counts.n_registrations--;
                the.counts.bytes_registered -= pinned->n_bytes;
        }
        free(pinned);
}

uint64_t pinned_free(struct context *context) {
        struct pinned *pinned = all_pinned, *next;
        uint64_t n = 0;

        for (; pinned; pinned = next) {
                next = pinned->next;
                if (context && pinned->context != context)
                        continue;
                pinned_end(pinned, "the end of the context");
                n++;
        }
        return n;
}

/* ---- registration ------------------------------------------------------------------------------------------------ */

struct mapping {
        bool whole;        /* all of it is mapped */
        bool read_only;    /* a part cannot be written */
        bool private_file; /* a part is a private mapping of a file */
};

static struct mapping look(uint64_t at, uint64_t n_bytes) {
        struct mapping mapping = {};
        FILE *maps = fopen("/proc/self/maps", "re");
        uint64_t reached = at, end = at + n_bytes;
        char line[4352];

        while (maps && reached < end && fgets(line, sizeof(line), maps)) {
                uint64_t first, last, inode;
                char rights[5];

                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64, &first, &last, rights, &inode) != 4 ||
                    last <= reached)
                        continue;
                if (first > reached || rights[0] != 'r')
                        break; /* a hole, or as good as one */
                mapping.read_only |= rights[1] != 'w';
                mapping.private_file |= rights[3] == 'p' && inode != 0;
                reached = last;
        }
        mapping.whole = reached >= end;
        if (maps)
                fclose(maps);
        return mapping;
}

/* Read-only memory needs the flag, and the flag a device that has attribute 113. */
static int registrable(uint64_t at, size_t n_bytes, unsigned flags) {
        struct mapping mapping;
        bool overlaps;

        if (at % PAGE != 0 || n_bytes == 0 || flags > 15 || in_arena(at))
                return CUDA_ERROR_INVALID_VALUE;
        if (flags & CUDA_HOST_IO_MEMORY)
                return CUDA_ERROR_NOT_SUPPORTED;
        pinned_holding(at, (n_bytes + PAGE - 1) / PAGE * PAGE, &overlaps);
        if (overlaps)
                return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        mapping = look(at, n_bytes);
        if (!mapping.whole)
                return CUDA_ERROR_INVALID_VALUE;
        if (!the.settings.read_only && (mapping.read_only || (flags & CUDA_HOST_READ_ONLY)))
                return CUDA_ERROR_NOT_SUPPORTED;
        if (mapping.read_only && !(flags & CUDA_HOST_READ_ONLY))
                return CUDA_ERROR_INVALID_VALUE;
        /* It registers, and the device then sees the process's own copy of a page, not what others write to the file.
         */
        if (mapping.private_file)
                violation("cuMemHostRegister: a private mapping of a file at %#" PRIx64, at);
        return CUDA_SUCCESS;
}

int cuMemHostRegister_v2(void *memory, size_t n_bytes, unsigned flags) {
        ENTER(cuMemHostRegister);
        int r = registrable((uint64_t)memory, n_bytes, flags);

        if (r != CUDA_SUCCESS)
                return r;
        pinned_new(entered.context, (uint64_t)memory, n_bytes)->read_only = flags & CUDA_HOST_READ_ONLY;
        the.counts.n_registrations++;
        the.counts.bytes_registered += n_bytes;
        if (the.counts.bytes_registered > the.counts.max_bytes_registered)
                the.counts.max_bytes_registered = the.counts.bytes_registered;
        return CUDA_SUCCESS;
}

/* Takes the address that was registered; one in the middle is not enough. */
int cuMemHostUnregister(void *memory) {
        ENTER(cuMemHostUnregister);
        bool overlaps;
        struct pinned *pinned = pinned_holding((uint64_t)memory, 1, &overlaps);

        if (!pinned || pinned->at != (uint64_t)memory || pinned->is_own)
                return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        pinned_end(pinned, entered.name);
        return CUDA_SUCCESS;
}

/* The same address, since unified addressing is there. */
int cuMemHostGetDevicePointer_v2(uint64_t *ret_pointer, void *memory, unsigned flags) {
        ENTER(cuMemHostGetDevicePointer);
        bool overlaps;

        if (!ret_pointer || flags != 0 || !pinned_holding((uint64_t)memory, 1, &overlaps))
                return CUDA_ERROR_INVALID_VALUE;
        *ret_pointer = (uint64_t)memory;
        return CUDA_SUCCESS;
}

int cuMemHostAlloc(void **ret_memory, size_t n_bytes, unsigned flags) {
        ENTER(cuMemHostAlloc);
        void *memory;

        if (!ret_memory || n_bytes == 0 || flags > 7)
                return CUDA_ERROR_INVALID_VALUE;
        memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;
        pinned_new(entered.context, (uint64_t)memory, n_bytes)->is_own = true;
        the.counts.n_host_allocations++;
        *ret_memory = memory;
        return CUDA_SUCCESS;
}

int cuMemFreeHost(void *memory) {
        ENTER(cuMemFreeHost);
        bool overlaps;
        struct pinned *pinned = pinned_holding((uint64_t)memory, 1, &overlaps);

        if (!pinned || pinned->at != (uint64_t)memory || !pinned->is_own) {
                violation("cuMemFreeHost: %p was not allocated by cuMemHostAlloc(), or was freed before", memory);
                return CUDA_ERROR_INVALID_VALUE;
        }
        pinned_end(pinned, entered.name);
        return CUDA_SUCCESS;
}
