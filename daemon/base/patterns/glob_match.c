#include "daemon/base/patterns/glob_match.h"

#include <fnmatch.h>

bool glob_match_name(const char *pattern, const char *name, bool with_hidden) {
        return fnmatch(pattern, name, with_hidden ? 0 : FNM_PERIOD) == 0;
}
