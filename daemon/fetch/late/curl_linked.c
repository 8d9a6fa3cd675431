#include "daemon/fetch/late/curl_functions.h"

int curl_load(struct why *why) {
        return 0;
}

const struct curl_late *curl_late(void) {
        static const struct curl_late LINKED = { CURL_FUNCTIONS(LATE_ADDRESS) };

        return &LINKED;
}
