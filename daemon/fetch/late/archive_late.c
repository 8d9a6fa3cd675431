#include "daemon/fetch/late/archive_functions.h"

#include <stddef.h>

static const char *const ARCHIVE_NAMES[] = { ARCHIVE_FUNCTIONS(LATE_NAME) NULL };
static struct archive_late archive_found;
static struct late_library archive_library = { .file = "libarchive.so.13",
                                               .package = "libarchive13",
                                               .names = ARCHIVE_NAMES,
                                               .functions = &archive_found,
                                               .lock = PTHREAD_MUTEX_INITIALIZER };

int archive_load(struct why *why) {
        return late_load(&archive_library, why);
}

const struct archive_late *archive_late(void) {
        late_load(&archive_library, NULL); /* is loaded already, except for tests of what needs none */
        return &archive_found;
}
