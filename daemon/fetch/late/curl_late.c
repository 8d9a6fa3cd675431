#include "daemon/fetch/late/curl_functions.h"

#include <stddef.h>

static const char *const CURL_NAMES[] = { CURL_FUNCTIONS(LATE_NAME) NULL };
static struct curl_late curl_found;
static struct late_library curl_library = { .file = "libcurl.so.4",
                                            .package = "libcurl4",
                                            .names = CURL_NAMES,
                                            .functions = &curl_found,
                                            .lock = PTHREAD_MUTEX_INITIALIZER };

int curl_load(struct why *why) {
        return late_load(&curl_library, why);
}

const struct curl_late *curl_late(void) {
        late_load(&curl_library, NULL); /* is loaded already, except for tests of what needs none */
        return &curl_found;
}
