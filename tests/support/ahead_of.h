/* tests/support/ahead_of.h: one open file, to be read with data/files/ahead.h. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/data/files/ahead.h"

/* For _cleanup_. */
static inline void ahead_freep(struct ahead **ahead) {
        ahead_free(*ahead);
}

struct ahead_of {
        int fd; /* the caller's */
        uint64_t n_bytes;
};

static inline int ahead_of_open(void *userdata, size_t idx, int64_t *settled_ns, struct stat *ret_status,
                                struct why *why) {
        const struct ahead_of *of = userdata;
        int fd = fcntl(of->fd, F_DUPFD_CLOEXEC, 0);

        (void)idx;
        (void)settled_ns;
        if (fd < 0)
                return why_errno(why, -errno, "a descriptor");
        *ret_status = (struct stat){ .st_size = (off_t)of->n_bytes };
        return fd;
}

/* Stands at the begin of the file, `of`, which has n_bytes; it is alone until the next begin. Ends the program if that
 * fails. */
static inline void ahead_of_begin(struct ahead *ahead, struct ahead_of *of) {
        struct stat status;
        struct why why;

        if (ahead_begin(ahead, &(struct cuts_files){ .n = 1, .open = ahead_of_open, .userdata = of }) < 0 ||
            ahead_next_file(ahead, &status, &why) < 0)
                abort();
}
