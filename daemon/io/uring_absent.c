/* io/uring_absent.c: stands in for uring.c in a build without liburing. Always refuses, so "auto" takes the threads. */
#include <errno.h>
#include <stddef.h>

#include "daemon/io/reader_private.h"

static int absent_start(struct reader *reader, struct why *why) {
        return why_set(why, -ENOSYS, "built without io_uring");
}

const struct reader_backend reader_uring = {
        .name = "io_uring", .start = absent_start, /* the only function that is ever called */
};
