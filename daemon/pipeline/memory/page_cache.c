#include "daemon/pipeline/memory/page_cache.h"

#include <string.h>

#include "daemon/base/bytes.h"

enum page_cache page_cache_parse(const char *text) {
        if (text && strcmp(text, "use") == 0)
                return PAGE_CACHE_USE;
        return text && strcmp(text, "bypass") == 0 ? PAGE_CACHE_BYPASS : PAGE_CACHE_AUTO;
}

bool page_cache_is_bypassed(enum page_cache wish, uint64_t n_bytes, uint64_t available, struct why *ret_why) {
        char size[BYTES_TEXT_MAX], room[BYTES_TEXT_MAX];
        bool fits = n_bytes <= available / 2; /* the other half is for trainers that have not started yet */

        if (wish == PAGE_CACHE_AUTO)
                why_set(ret_why, 0, "%s, %s of memory available, half of it for a dataset", format_bytes(size, n_bytes),
                        format_bytes(room, available));
        else
                why_set(ret_why, 0, "as page_cache says");
        return wish == PAGE_CACHE_AUTO ? !fits : wish == PAGE_CACHE_BYPASS;
}
