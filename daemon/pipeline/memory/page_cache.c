#include "daemon/pipeline/memory/page_cache.h"

#include <string.h>

#include "proto/base/bytes.h"

bool page_cache_is_bypassed(const char *wish, uint64_t n_bytes, uint64_t available, struct why *ret_why) {
        char size[BYTES_TEXT_MAX], room[BYTES_TEXT_MAX];
        bool is_auto = strcmp(wish, "auto") == 0;
        bool fits = n_bytes <= available / 2; /* the other half is for trainers that have not started yet */

        if (is_auto)
                why_set(ret_why, 0, "%s, %s of memory available, half of it for a dataset", format_bytes(size, n_bytes),
                        format_bytes(room, available));
        else
                why_set(ret_why, 0, "as page_cache says");
        return is_auto ? !fits : strcmp(wish, "bypass") == 0;
}
