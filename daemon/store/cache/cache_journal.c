#include "daemon/store/cache/cache_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define MAGIC   "DLDCACHE"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define AT_ONCE 1024u /* records that are read together */

struct journal_header {
        char magic[8];
        char listing[64];
        uint64_t reserved;
};

_Static_assert(sizeof(struct journal_header) == 80 && sizeof(struct journal_record) == 32, "parts of the file format");

static uint64_t journal_check(const struct journal_record *record) {
        return XXH3_64bits(record, offsetof(struct journal_record, check));
}

/* Without /proc each start is a boot of its own: more is compared than need be. */
static uint64_t boot_digest(void) {
        char boot[64];

        if (disk_read_text(BOOT_ID, boot, sizeof(boot), NULL) < 0)
                return (uint64_t)getpid();
        return XXH3_64bits(boot, strlen(boot));
}

/* Reads the records up to the first one that is none. */
static int cache_journal_read(int fd, void (*take)(void *userdata, const struct journal_record *record), void *userdata,
                              uint64_t *ret_end) {
        uint64_t at = sizeof(struct journal_header);
        struct journal_record records[AT_ONCE];
        size_t n_found = AT_ONCE, i;

        for (i = AT_ONCE; i == n_found && n_found == AT_ONCE;) {
                ssize_t n = pread(fd, records, sizeof(records), (off_t)at);

                if (n < 0)
                        return -errno;
                n_found = (size_t)n / sizeof(*records);
                for (i = 0; i < n_found && records[i].check == journal_check(&records[i]); i++)
                        take(userdata, &records[i]);
                at += i * sizeof(*records);
        }
        *ret_end = at;
        return 0;
}

/* The records are read twice: first to find where the last boot begins. */
struct reading {
        journal_take take;
        void *userdata;
        uint64_t boot; /* of this machine now */
        uint64_t n, n_before, last_boot;
};

static void find_boot(void *userdata, const struct journal_record *record) {
        struct reading *reading = userdata;

        if (record->kind == JOURNAL_BOOT) {
                reading->last_boot = record->digest;
                reading->n_before = reading->n;
        }
        reading->n++;
}

static void take_one(void *userdata, const struct journal_record *record) {
        struct reading *reading = userdata;
        bool is_of_boot = reading->last_boot == reading->boot && reading->n >= reading->n_before;

        reading->n++;
        if (record->kind != JOURNAL_BOOT)
                reading->take(reading->userdata, record, is_of_boot);
}

static int read_journal(int fd, struct reading *reading, uint64_t *ret_end) {
        int r = cache_journal_read(fd, find_boot, reading, ret_end);

        reading->n = 0;
        return r < 0 ? r : cache_journal_read(fd, take_one, reading, ret_end);
}

int cache_journal_open(struct cache_journal *journal, const char *path, const char *listing, journal_take take,
                       void *userdata, struct why *why) {
        _cleanup_(closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct journal_header mine = { .magic = MAGIC }, found;
        struct reading reading = { .take = take, .userdata = userdata, .boot = boot_digest() };
        uint64_t end = sizeof(mine);
        int r = 0;

        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        memcpy(mine.listing, listing, strnlen(listing, sizeof(mine.listing)));
        if (disk_read_at(fd, &found, sizeof(found), 0) == 0 && memcmp(&found, &mine, sizeof(mine)) == 0)
                r = read_journal(fd, &reading, &end);
        else
                r = disk_write_at(fd, &mine, sizeof(mine), 0);
        if (r == 0 && ftruncate(fd, (off_t)end) < 0)
                r = -errno;
        journal->end = end;
        journal->fd = fd;
        if (r == 0 && reading.last_boot != reading.boot)
                r = cache_journal_mark(journal);
        if (r < 0) {
                journal->fd = -1;
                return why_errno(why, r, "%s", path);
        }
        take_fd(&fd);
        return 0;
}

int cache_journal_add(struct cache_journal *journal, struct journal_record *record) {
        int r;

        record->check = journal_check(record);
        r = disk_write_at(journal->fd, record, sizeof(*record), journal->end);
        if (r == 0)
                journal->end += sizeof(*record);
        return r;
}

int cache_journal_mark(struct cache_journal *journal) {
        return cache_journal_add(journal, &(struct journal_record){ .kind = JOURNAL_BOOT, .digest = boot_digest() });
}

void cache_journal_forget(struct cache_journal *journal) {
        if (ftruncate(journal->fd, sizeof(struct journal_header)) == 0)
                journal->end = sizeof(struct journal_header);
}

uint64_t cache_journal_records(const struct cache_journal *journal) {
        return (journal->end - sizeof(struct journal_header)) / sizeof(struct journal_record);
}

void cache_journal_close(struct cache_journal *journal) {
        closep(&journal->fd);
        journal->fd = -1;
}

bool cache_journal_is_one(const char *path) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        char magic[8];

        return fd >= 0 && disk_read_at(fd, magic, sizeof(magic), 0) == 0 && memcmp(magic, MAGIC, sizeof(magic)) == 0;
}

static void sum_up(void *userdata, const struct journal_record *record) {
        uint64_t *n_bytes = userdata;

        if (record->kind == JOURNAL_THERE)
                *n_bytes += record->n_bytes;
        else if (record->kind == JOURNAL_GONE)
                *n_bytes -= record->n_bytes < *n_bytes ? record->n_bytes : *n_bytes;
}

uint64_t cache_journal_bytes(const char *path) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        uint64_t n_bytes = 0, end;

        return fd >= 0 && cache_journal_read(fd, sum_up, &n_bytes, &end) == 0 ? n_bytes : 0;
}
