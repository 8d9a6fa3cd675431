#include "daemon/data/formats/webdataset/tar_cut.h"

#include <limits.h>
#include <stdio.h>

#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "proto/base/cleanup.h"

/* From the first header on: they are few, compared with what the archive holds. */
uint64_t tar_cut(int fd, uint64_t n_bytes, uint64_t whole) {
        _cleanup_(tar_closep) struct tar *tar = NULL;
        uint64_t end = 0; /* of the members before */
        struct tar_member member;
        char key[PATH_MAX] = "";
        struct why why;

        if (tar_open(fd, n_bytes, &tar, &why) < 0)
                return whole;
        while (tar_step(tar, &member, &why) == 0 && member.end <= n_bytes) {
                struct member_place place;
                const char *refusal;

                if (member_name_read(member.name, sizeof(key) - 1, &place, &refusal) == MEMBER_IS_FIELD &&
                    !member_is_of(&place, key)) {
                        whole = end > whole ? end : whole;
                        snprintf(key, sizeof(key), "%.*s", (int)place.n_key, place.key);
                }
                end = member.end;
        }
        return whole;
}
