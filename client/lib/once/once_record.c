#include "client/lib/once/once_record.h"

/* Format: a line with the checksum and the length of the rest; lines of a word and a value; an empty line; the two
 * texts. People who investigate can read it. */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"

#define MAGIC        "dataloaderd-once-1"
#define HEAD_BYTES   (sizeof(MAGIC) - 1 + 1 + 16 + 1 + 8 + 1) /* "MAGIC checksum length\n" */
#define LINES_BYTES  1024u                                    /* more than all lines take together */
#define RECORD_BYTES (HEAD_BYTES + LINES_BYTES + DLC_ONCE_TEXT_MAX + DLC_ONCE_RESULT_MAX)

static const char *const STATES[] = {
        [DLI_ONCE_RUNNING] = "running",
        [DLI_ONCE_ENDED_DONE] = "done",
        [DLI_ONCE_ENDED_FAILED] = "failed",
};

/* FNV-1a: detects torn writes and damage, not malice. */
static uint64_t checksum(const char *bytes, size_t n_bytes) {
        uint64_t sum = 0xcbf29ce484222325u;

        for (size_t i = 0; i < n_bytes; i++)
                sum = (sum ^ (uint8_t)bytes[i]) * 0x100000001b3u;
        return sum;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* The part of a record that is not parsed yet; `at` is NULL once something was invalid. */
struct rest {
        char *at, *end;
};

/* Takes the value of the next line, which must begin with `word`. The end of the line becomes a NUL. */
static const char *once_record_take_value(struct rest *rest, const char *word) {
        size_t n_word = strlen(word);
        char *value = rest->at, *newline;

        if (!value)
                return NULL;
        rest->at = NULL;
        if ((size_t)(rest->end - value) <= n_word || memcmp(value, word, n_word) != 0 || value[n_word] != ' ')
                return NULL;
        value += n_word + 1;
        newline = memchr(value, '\n', (size_t)(rest->end - value));
        if (!newline)
                return NULL;
        *newline = '\0';
        rest->at = newline + 1;
        return value;
}

static int64_t once_record_take_number(struct rest *rest, const char *word, int64_t least, int64_t most) {
        const char *value = once_record_take_value(rest, word);
        long long number;
        char *end;

        if (!value)
                return 0;
        errno = 0;
        number = strtoll(value, &end, 10);
        if (errno || end == value || *end || number < least || number > most) {
                rest->at = NULL;
                return 0;
        }
        return number;
}

static void once_record_take_name(struct rest *rest, const char *word, char *ret_name, size_t size) {
        const char *value = once_record_take_value(rest, word);

        if (value && strlen(value) < size)
                strcpy(ret_name, value);
        else
                rest->at = NULL;
}

static enum dli_once_state take_state(struct rest *rest) {
        const char *value = once_record_take_value(rest, "state");

        for (int i = DLI_ONCE_RUNNING; value && i <= DLI_ONCE_ENDED_FAILED; i++)
                if (strcmp(value, STATES[i]) == 0)
                        return (enum dli_once_state)i;
        rest->at = NULL;
        return 0;
}

static int parse_texts(struct rest *rest, size_t n_text, size_t n_result, struct dli_once_record *record) {
        if (!rest->at || rest->end - rest->at != (ptrdiff_t)(1 + n_text + n_result) || *rest->at != '\n')
                return DLI_ONCE_DAMAGED;
        record->text = strndup(rest->at + 1, n_text);
        record->result = strndup(rest->at + 1 + n_text, n_result);
        if (record->text && record->result)
                return 0;
        dli_once_record_clear(record);
        return -ENOMEM;
}

static int once_record_parse(char *bytes, size_t n_bytes, struct dli_once_record *ret_record) {
        struct dli_once_record record = { 0 };
        struct rest rest = { bytes, bytes + n_bytes };
        size_t n_text, n_result;
        int r;

        record.attempt = (uint64_t)once_record_take_number(&rest, "attempt", 1, INT64_MAX - 1);
        record.state = take_state(&rest);
        record.status = (int)once_record_take_number(&rest, "status", INT32_MIN, INT32_MAX);
        record.pid = once_record_take_number(&rest, "pid", 0, INT64_MAX);
        record.when = once_record_take_number(&rest, "when", INT64_MIN, INT64_MAX);
        once_record_take_name(&rest, "host", record.host, sizeof(record.host));
        once_record_take_name(&rest, "key", record.key, sizeof(record.key));
        n_text = (size_t)once_record_take_number(&rest, "text", 0, DLC_ONCE_TEXT_MAX);
        n_result = (size_t)once_record_take_number(&rest, "result", 0, DLC_ONCE_RESULT_MAX);
        r = parse_texts(&rest, n_text, n_result, &record);
        if (r == 0)
                *ret_record = record;
        return r;
}

/* Reads from the beginning, up to `capacity` bytes. */
static ssize_t once_record_read_all(int fd, char *into, size_t capacity) {
        size_t used = 0;

        while (used < capacity) {
                ssize_t n = pread(fd, into + used, capacity - used, (off_t)used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                used += (size_t)n;
        }
        return (ssize_t)used;
}

int dli_once_record_read(int fd, struct dli_once_record *ret_record) {
        _cleanup_(freep) char *bytes = NULL;
        unsigned long long sum;
        unsigned int n_body;
        struct stat stat;
        size_t capacity;
        ssize_t n;

        if (fstat(fd, &stat) < 0)
                return -errno;
        capacity = stat.st_size > (off_t)RECORD_BYTES ? RECORD_BYTES : (size_t)stat.st_size;
        bytes = malloc(capacity + 1);
        if (!bytes)
                return -ENOMEM;
        n = once_record_read_all(fd, bytes, capacity);
        if (n <= 0)
                return n < 0 ? (int)n : DLI_ONCE_ABSENT;
        bytes[n] = '\0';
        if ((size_t)n < HEAD_BYTES || bytes[HEAD_BYTES - 1] != '\n' ||
            sscanf(bytes, MAGIC " %16llx %8u\n", &sum, &n_body) != 2 || n_body > (size_t)n - HEAD_BYTES ||
            checksum(bytes + HEAD_BYTES, n_body) != sum)
                return DLI_ONCE_DAMAGED;
        return once_record_parse(bytes + HEAD_BYTES, n_body, ret_record);
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static int once_record_write_all(int fd, const char *bytes, size_t n_bytes) {
        size_t done = 0;

        while (done < n_bytes) {
                ssize_t n = pwrite(fd, bytes + done, n_bytes - done, (off_t)done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENOSPC;
                done += (size_t)n;
        }
        if (ftruncate(fd, (off_t)n_bytes) < 0 || fsync(fd) < 0)
                return -errno;
        return 0;
}

int dli_once_record_write(int fd, const struct dli_once_record *record) {
        size_t n_text = record->text ? strlen(record->text) : 0, n_result = record->result ? strlen(record->result) : 0;
        _cleanup_(freep) char *bytes = malloc(HEAD_BYTES + LINES_BYTES + n_text + n_result + 1);
        char head[64], *body;
        size_t n_body;

        if (!bytes)
                return -ENOMEM;
        body = bytes + HEAD_BYTES;
        n_body = (size_t)snprintf(body, LINES_BYTES,
                                  "attempt %" PRIu64 "\nstate %s\nstatus %d\npid %" PRId64 "\nwhen %" PRId64
                                  "\nhost %s\nkey %s\ntext %zu\nresult %zu\n\n",
                                  record->attempt, STATES[record->state], record->status, record->pid, record->when,
                                  record->host, record->key, n_text, n_result);
        if (n_text > 0)
                memcpy(body + n_body, record->text, n_text);
        if (n_result > 0)
                memcpy(body + n_body + n_text, record->result, n_result);
        n_body += n_text + n_result;
        snprintf(head, sizeof(head), MAGIC " %016" PRIx64 " %08zu\n", checksum(body, n_body), n_body);
        memcpy(bytes, head, HEAD_BYTES);
        return once_record_write_all(fd, bytes, HEAD_BYTES + n_body);
}

void dli_once_record_clear(struct dli_once_record *record) {
        free(record->text);
        free(record->result);
        *record = (struct dli_once_record){ 0 };
}
