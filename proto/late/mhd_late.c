#include "proto/late/mhd_functions.h"

#include <stddef.h>

static const char *const MHD_NAMES[] = { MHD_FUNCTIONS(LATE_NAME) NULL };
static struct mhd_late mhd_found;
static struct late_library mhd_library = { .file = "libmicrohttpd.so.12",
                                           .package = "libmicrohttpd12",
                                           .names = MHD_NAMES,
                                           .functions = &mhd_found,
                                           .lock = PTHREAD_MUTEX_INITIALIZER };

int mhd_load(struct why *why) {
        return late_load(&mhd_library, why);
}

const struct mhd_late *mhd_late(void) {
        late_load(&mhd_library, NULL); /* is loaded already, except for tests of what needs none */
        return &mhd_found;
}
