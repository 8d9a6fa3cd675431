/* Any bytes as the roll of a stream: what is read of it is read again after it was added to, and no name leads out of
 * the folder. The first byte: bit 0 puts a right header before it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/index/index_layout.h"
#include "daemon/data/intake/roll.h"
#include "tests/fuzz/folder.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

static void write_roll(const char *path, const uint8_t *data, size_t n_bytes) {
        static const char HEADER[] = "dataloaderd stream 1 " DIGEST "\n";
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || (data[0] & 1 && write(fd, HEADER, sizeof(HEADER) - 1) < 0) ||
            write(fd, data + 1, n_bytes - 1) < 0)
                _exit(2);
        close(fd);
}

static void check_names(const struct roll *roll) {
        for (uint64_t i = 0; i < roll_n(roll); i++) {
                const char *name;

                roll_at(roll, i, &name);
                if (!name[0] || !index_is_inner_path(name))
                        find("a name that leads out of the folder");
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static char path[PATH_MAX];
        struct roll roll, again;
        const char *name;
        uint64_t n;
        struct why why;

        if (n_bytes == 0)
                return 0;
        if (!path[0])
                folder_path("roll", path);
        write_roll(path, data, n_bytes);
        if (roll_open(&roll, path, &why) < 0)
                find("a roll that cannot be opened");
        check_names(&roll);
        if (!roll.digest[0] && (roll_n(&roll) > 0 || roll_begin(&roll, DIGEST, &why) < 0))
                find("a roll without a header");
        n = roll_n(&roll);
        if (!roll.has_end && roll_add(&roll, 7, 0x1234, "new shard.tar", &why) < 0)
                find("a line cannot be added");
        n += !roll.has_end;
        close(roll.fd); /* and its lock */
        roll.fd = -1;
        if (roll_open(&again, path, &why) < 0 || roll_n(&again) != n || again.has_end != roll.has_end ||
            strcmp(again.digest, roll.digest) != 0)
                find("what was read is not read again");
        if (!again.has_end && (roll_at(&again, n - 1, &name)->n_samples != 7 || strcmp(name, "new shard.tar") != 0))
                find("the line that was added is another one");
        roll_fini(&roll);
        roll_fini(&again);
        return 0;
}
