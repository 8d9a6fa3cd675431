#include "daemon/store/tree/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define MAGIC           "dlstage1"
#define RECORDS_AT_ONCE 4096u

/* Little-endian, as all machines that this runs on; on another the magic's neighbours would not check. */
struct header {
        char magic[8];
        uint64_t n_chunks;
        uint8_t plan[SHA256_BYTES]; /* its state (plan.h) */
        uint64_t zero;
        uint64_t check; /* of all before */
};

struct journal_record {
        uint64_t idx_chunk;
        struct digest128 digest;
        uint64_t check; /* of all before */
};

_Static_assert(sizeof(struct header) == 64 && sizeof(struct journal_record) == 32, "as the header file says");

static uint64_t check_of(const struct journal_record *record, uint64_t seed) {
        return digest64_of(record, offsetof(struct journal_record, check), seed);
}

static struct header header_of(const char *plan_state, uint64_t n_chunks) {
        struct header header = { .magic = MAGIC, .n_chunks = n_chunks };

        for (size_t i = 0; i < sizeof(header.plan); i++) {
                unsigned byte = 0;

                sscanf(plan_state + 2 * i, "%2x", &byte);
                header.plan[i] = (uint8_t)byte;
        }
        header.check = digest64_of(&header, offsetof(struct header, check), 0);
        return header;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static bool belongs_to(int fd, const struct header *header) {
        struct header there;

        return disk_read_at(fd, &there, sizeof(there), 0) == 0 && memcmp(&there, header, sizeof(there)) == 0;
}

static int open_of_plan(const char *path, int flags, const struct header *header) {
        _cleanup_(closep) int fd = open(path, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        return S_ISREG(status.st_mode) && belongs_to(fd, header) ? take_fd(&fd) : -ENOENT;
}

static uint64_t n_records_in(int fd) {
        struct stat status;

        if (fstat(fd, &status) < 0 || status.st_size < (off_t)sizeof(struct header))
                return 0;
        return ((uint64_t)status.st_size - sizeof(struct header)) / sizeof(struct journal_record);
}

static int read_records(int fd, uint64_t n_records, const struct header *header, struct digest128 *digests) {
        _cleanup_(freep) struct journal_record *records = malloc(RECORDS_AT_ONCE * sizeof(*records));

        if (!records)
                return -ENOMEM;
        for (uint64_t i = 0; i < n_records;) {
                uint64_t n = n_records - i < RECORDS_AT_ONCE ? n_records - i : RECORDS_AT_ONCE;
                int r = disk_read_at(fd, records, n * sizeof(*records), sizeof(*header) + i * sizeof(*records));

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++)
                        if (records[k].check == check_of(&records[k], header->check) &&
                            records[k].idx_chunk < header->n_chunks)
                                digests[records[k].idx_chunk] = records[k].digest;
                i += n;
        }
        return 0;
}

int64_t journal_read(const char *path, const char *plan_state, uint64_t n_chunks, struct digest128 *digests,
                     struct why *why) {
        struct header header = header_of(plan_state, n_chunks);
        _cleanup_(closep) int fd = open_of_plan(path, O_RDONLY, &header);
        uint64_t n_records;
        int r;

        if (fd == -ENOENT || fd == -ELOOP)
                return 0;
        if (fd < 0)
                return why_errno(why, fd, "%s", path);
        n_records = n_records_in(fd);
        r = read_records(fd, n_records, &header, digests);
        return r < 0 ? why_errno(why, r, "%s", path) : (int64_t)n_records;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static void use(struct journal *journal, int fd, uint64_t end, uint64_t seed) {
        journal->fd = fd;
        journal->end = end;
        journal->seed = seed;
}

static int write_records(int fd, const struct header *header, const struct digest128 *digests, uint64_t *end) {
        _cleanup_(freep) struct journal_record *records = malloc(RECORDS_AT_ONCE * sizeof(*records));
        size_t n = 0;
        int r;

        if (!records)
                return -ENOMEM;
        for (uint64_t i = 0; i <= header->n_chunks; i++) {
                if (n == RECORDS_AT_ONCE || i == header->n_chunks) {
                        r = disk_write_at(fd, records, n * sizeof(*records), *end);
                        if (r < 0)
                                return r;
                        *end += n * sizeof(*records);
                        n = 0;
                }
                if (i < header->n_chunks && digest128_is_known(digests[i])) {
                        records[n] = (struct journal_record){ .idx_chunk = i, .digest = digests[i] };
                        records[n].check = check_of(&records[n], header->check);
                        n++;
                }
        }
        return 0;
}

int journal_begin(struct journal *journal, const char *path, const char *plan_state, uint64_t n_chunks,
                  const struct digest128 *digests, struct why *why) {
        struct header header = header_of(plan_state, n_chunks);
        _cleanup_(closep) int fd = -1;
        uint64_t end = sizeof(header);
        char temporary[PATH_MAX];
        int r;

        fd = disk_begin_new(path, temporary);
        if (fd < 0)
                return why_errno(why, fd, "%s", path);
        r = disk_write_at(fd, &header, sizeof(header), 0);
        if (r == 0)
                r = write_records(fd, &header, digests, &end);
        r = disk_end_new(fd, temporary, path, r, why);
        if (r < 0)
                return r;
        use(journal, take_fd(&fd), end, header.check);
        return 0;
}

int journal_continue(struct journal *journal, const char *path, const char *plan_state, uint64_t n_chunks,
                     struct why *why) {
        struct header header = header_of(plan_state, n_chunks);
        int fd = open_of_plan(path, O_RDWR, &header);

        if (fd < 0)
                return why_errno(why, fd, "%s", path);
        use(journal, fd, sizeof(header) + n_records_in(fd) * sizeof(struct journal_record), header.check);
        return 0;
}

int journal_note(struct journal *journal, uint64_t idx_chunk, struct digest128 digest) {
        struct journal_record record = { .idx_chunk = idx_chunk, .digest = digest };
        int r = 0;

        if (journal->fd < 0)
                return 0;
        record.check = check_of(&record, journal->seed);
        pthread_mutex_lock(&journal->lock);
        r = disk_write_at(journal->fd, &record, sizeof(record), journal->end);
        if (r == 0)
                journal->end += sizeof(record);
        pthread_mutex_unlock(&journal->lock);
        return r;
}

void journal_close(struct journal *journal) {
        closep(&journal->fd);
        journal->fd = -1;
}
