#include "daemon/staging/run/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/record/record_place.h"
#include "proto/base/cleanup.h"

#define ENTRY_BYTES (64u << 10)

/* The user's groups; of a user who has no name, that of the folder. */
static int take_groups(const struct stat *folder, const struct passwd *user) {
        if (user ? initgroups(user->pw_name, user->pw_gid) < 0 : setgroups(0, NULL) < 0)
                return -errno;
        return setgid(user ? user->pw_gid : folder->st_gid) < 0 ? -errno : 0;
}

static int become(const char *path, const struct stat *folder, struct why *why) {
        _cleanup_(freep) char *buffer = malloc(ENTRY_BYTES);
        struct passwd entry, *user = NULL;
        int r;

        if (!buffer)
                return why_errno(why, -ENOMEM, "user %u", folder->st_uid);
        if (getpwuid_r(folder->st_uid, &entry, buffer, ENTRY_BYTES, &user) != 0)
                user = NULL;
        r = take_groups(folder, user);
        if (r == 0 && setuid(folder->st_uid) < 0)
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "%s belongs to user %u, and root cannot act as this user", path,
                                 folder->st_uid);
        log_info("stage", "goes on as user %u, to whom %s belongs", folder->st_uid, path);
        return 0;
}

int owner_become(const char *path, struct why *why) {
        struct stat folder;
        struct place place;
        char *slash;

        if (geteuid() != 0 || place_init(&place, path, NULL) < 0)
                return 0;
        slash = strrchr(place.path, '/');
        slash[slash == place.path] = '\0';
        if (stat(place.path, &folder) < 0 || folder.st_uid == 0)
                return 0;
        return become(place.path, &folder, why);
}
