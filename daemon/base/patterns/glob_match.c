#include "daemon/base/patterns/glob_match.h"

#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

bool glob_match_name(const char *pattern, const char *name, bool with_hidden) {
        return fnmatch(pattern, name, with_hidden ? 0 : FNM_PERIOD) == 0;
}

/* What follows the first name of a path; NULL: nothing. */
static const char *after_name(const char *path) {
        const char *slash = strchr(path, '/');

        return slash ? slash + 1 : NULL;
}

static bool glob_copy_name(const char *path, char name[NAME_MAX + 1]) {
        size_t n = strcspn(path, "/");

        if (n > NAME_MAX)
                return false;
        memcpy(name, path, n);
        name[n] = '\0';
        return true;
}

static bool is_first_alike(const char *pattern, const char *path) {
        char wanted[NAME_MAX + 1], name[NAME_MAX + 1];

        return glob_copy_name(pattern, wanted) && glob_copy_name(path, name) && glob_match_name(wanted, name, false);
}

/* Only the last ** has to be tried at other places: what the ones before it took, they may keep. */
bool glob_match_path(const char *pattern, const char *path) {
        const char *after_stars = NULL, *from = NULL; /* where the pattern goes on after **, and the path at this try */

        for (;;) {
                if (strcmp(pattern, "**") == 0)
                        pattern = "**/*";
                if (strncmp(pattern, "**/", 3) == 0) {
                        after_stars = pattern += 3;
                        from = path;
                        continue;
                }
                if (is_first_alike(pattern, path) && !after_name(pattern) == !after_name(path)) {
                        if (!after_name(pattern))
                                return true;
                        pattern = after_name(pattern);
                        path = after_name(path);
                        continue;
                }
                if (!from || from[0] == '.' || !after_name(from))
                        return false;
                path = from = after_name(from);
                pattern = after_stars;
        }
}
