#include "daemon/store/record/record_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 12u /* of the digest in a version's name: 48 bits, for some hundred versions of one dataset */

_Static_assert(2 + DIGITS_MAX < PLACE_VERSION_SIZE, "\"v-\", digits and NUL fit");

static size_t length_without_slashes(const char *path) {
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        return n;
}

int place_init(struct place *place, const char *path, struct why *why) {
        size_t n = length_without_slashes(path);
        struct place made;
        const char *name;
        int n_folder;

        if (path[0] != '/')
                return why_set(why, -EINVAL, "path \"%s\" is not absolute; staged datasets need a path from / on",
                               path);
        if (n == 1)
                return why_set(why, -EINVAL, "path \"%s\" cannot be a staged dataset; name a folder below it", path);
        if (n >= sizeof(made.path))
                return why_set(why, -ENAMETOOLONG, "path \"%s\" is longer than paths may be", path);
        memcpy(made.path, path, n);
        made.path[n] = '\0';
        name = strrchr(made.path, '/') + 1;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return why_set(why, -EINVAL, "path \"%s\" ends in \"%s\"; write the folder's own name", path, name);
        n_folder = snprintf(made.folder, sizeof(made.folder), "%.*s.%s.staged", (int)(name - made.path), made.path,
                            name);
        if (n_folder < 0 || (size_t)n_folder >= sizeof(made.folder) || strlen(name) + strlen("..staged") > NAME_MAX)
                return why_set(why, -ENAMETOOLONG, "path \"%s\": no room for \".NAME.staged\" beside it", path);
        *place = made;
        return 0;
}

void place_version(const char *digest, char ret_version[PLACE_VERSION_SIZE]) {
        snprintf(ret_version, PLACE_VERSION_SIZE, "v-%.*s", (int)DIGITS_MAX, digest);
}

int place_file(const struct place *place, const char *name, const char *suffix, char ret_path[PATH_MAX]) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s%s", place->folder, name, suffix);

        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        memcpy(ret_path, path, (size_t)n + 1);
        return 0;
}
