/* Any bytes as the journal of a cached origin: what is read of it is read again after it was added to, and what it
 * holds in bytes is no more than its records say. The first byte: bit 0 puts a right header before it; bit 1 gives each
 * record after it the check that it should have. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/store/cache/cache_journal.h"
#include "tests/fuzz/folder.h"

#define LISTING "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEADER  80

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a cache's journal: %s\n", what);
        abort();
}

struct seen {
        uint64_t n, n_there, digest;
        struct journal_record last;
        bool is_last_of_boot;
};

static void on_take(void *userdata, const struct journal_record *record, bool is_of_boot) {
        struct seen *seen = userdata;

        seen->n++;
        seen->n_there += record->kind == JOURNAL_THERE ? record->n_bytes : 0;
        seen->digest = XXH3_64bits_withSeed(record, sizeof(*record), seen->digest);
        seen->last = *record;
        seen->is_last_of_boot = is_of_boot;
}

static void write_journal(const char *path, const uint8_t *data, size_t n_bytes) {
        char header[HEADER] = "DLDCACHE" LISTING;
        struct journal_record record;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        uint8_t how = data[0];
        size_t at = 1;

        if (fd < 0 || (how & 1 && write(fd, header, sizeof(header)) < 0))
                _exit(2);
        for (; how & 2 && at + sizeof(record) <= n_bytes; at += sizeof(record)) {
                memcpy(&record, data + at, sizeof(record));
                record.check = XXH3_64bits(&record, offsetof(struct journal_record, check));
                if (write(fd, &record, sizeof(record)) < 0)
                        _exit(2);
        }
        if (write(fd, data + at, n_bytes - at) < 0)
                _exit(2);
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static char path[PATH_MAX];
        struct journal_record added = { .chunk = 77, .n_bytes = 5, .digest = 9 };
        struct seen first = { 0 }, again = { 0 };
        struct cache_journal journal;
        uint64_t n_held;
        struct why why;

        if (n_bytes == 0)
                return 0;
        if (!path[0])
                folder_path("cached", path);
        write_journal(path, data, n_bytes);
        cache_journal_bytes(path);
        if (cache_journal_open(&journal, path, LISTING, on_take, &first, &why) < 0)
                find("it cannot be opened");
        if (!cache_journal_is_one(path))
                find("it is none after it was opened");
        n_held = cache_journal_bytes(path);
        if (n_held > first.n_there)
                find("it holds more than was noted");
        if (cache_journal_add(&journal, &added) < 0)
                find("it cannot be added to");
        cache_journal_close(&journal);
        if (cache_journal_open(&journal, path, LISTING, on_take, &again, &why) < 0 || again.n != first.n + 1)
                find("what was read is not read again");
        if (memcmp(&again.last, &added, sizeof(added)) != 0 || !again.is_last_of_boot)
                find("the record that was added is another one");
        if (cache_journal_bytes(path) != n_held + added.n_bytes)
                find("the record that was added does not count");
        cache_journal_close(&journal);
        return 0;
}
