#include "client/lib/orders/client_columns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/orders/column_file.h"
#include "proto/base/cleanup.h"
#include "proto/order/making/order_text.h"

/* What goes into the memory: arrays of the trainer, and those that were read from files. */
struct given {
        struct dlp_column columns[DLI_COLUMNS_MAX];
        void *read[DLI_COLUMNS_MAX]; /* owned; NULL: the trainer's */
        uint32_t n;
};

static void given_fini(struct given *given) {
        for (uint32_t i = 0; i < given->n; i++)
                free(given->read[i]);
}

static uint64_t client_columns_bytes_of(const struct dlp_column *column) {
        return column->n_values * dlp_dtype_bytes(column->dtype);
}

static uint64_t client_columns_aligned(uint64_t n) {
        return (n + 63) / 64 * 64;
}

/* ---- which columns ---------------------------------------------------------------------------------------------- */

static bool client_columns_is_given(const struct given *given, const char *name) {
        for (uint32_t i = 0; i < given->n; i++)
                if (strcmp(given->columns[i].name, name) == 0)
                        return true;
        return false;
}

static int client_columns_take_given(const struct dlc_options *options, struct given *given, struct why *why) {
        if (options->n_columns < 0 || options->n_columns > (int)DLI_COLUMNS_MAX ||
            (options->n_columns > 0 && !options->columns))
                return why_set(why, -EINVAL, "n_columns: %d; 0 to %u are allowed, and columns must not be NULL",
                               options->n_columns, DLI_COLUMNS_MAX);
        for (int i = 0; i < options->n_columns; i++) {
                const struct dlc_column *column = &options->columns[i];
                size_t n_name = column->name ? strnlen(column->name, DLP_NAME_MAX) : 0;

                if (n_name == 0 || n_name == DLP_NAME_MAX)
                        return why_set(why, -EINVAL, "columns: number %d needs a name of 1 to %u bytes", i,
                                       DLP_NAME_MAX - 1);
                if (client_columns_is_given(given, column->name))
                        return why_set(why, -EINVAL, "columns: \"%s\" is given twice", column->name);
                if (!dlp_column_takes(column->dtype))
                        return why_set(why, -EINVAL,
                                       "columns: \"%s\": its dtype is not one of bool, integers, float32 and float64",
                                       column->name);
                if (column->n_values > 0 && !column->values)
                        return why_set(why, -EINVAL, "columns: \"%s\": values must not be NULL", column->name);
                if (column->n_values > DLP_SAMPLES_MAX)
                        return why_set(why, -EINVAL, "columns: \"%s\" has %llu values; at most %llu are allowed",
                                       column->name, (unsigned long long)column->n_values, DLP_SAMPLES_MAX);
                given->columns[given->n++] = (struct dlp_column){ .name = column->name,
                                                                  .dtype = column->dtype,
                                                                  .values = column->values,
                                                                  .n_values = column->n_values };
        }
        return 0;
}

/* A name that is the path of a file, and nothing that was given; a column of the dataset has no "/" and no "." in it.
 */
static int client_columns_read_files(const struct dlp_order_text *text, struct given *given, struct why *why) {
        struct dlp_column_wish wishes[DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX];
        uint32_t n = dlp_order_text_columns(text, wishes, DLP_ORDER_STEPS_MAX * DLP_ARGUMENTS_MAX);

        for (uint32_t i = 0; i < n; i++) {
                const char *name = wishes[i].name;
                int r;

                if (client_columns_is_given(given, name) || !strpbrk(name, "/."))
                        continue;
                if (given->n == DLI_COLUMNS_MAX || strlen(name) >= DLP_NAME_MAX)
                        return why_set(why, -EINVAL, "sampler: \"%s\": too long, or more than %u columns", name,
                                       DLI_COLUMNS_MAX);
                r = dli_column_file_read(name, &given->columns[given->n], &given->read[given->n], why);
                if (r < 0)
                        return r;
                given->columns[given->n++].name = name;
        }
        return 0;
}

/* ---- the memory ------------------------------------------------------------------------------------------------- */

/* Tells columns of different ranks apart; not meant to withstand anybody who wants two of them to look the same. */
static void client_columns_mix(uint64_t digest[2], const void *bytes, uint64_t n_bytes) {
        const uint8_t *at = bytes;

        digest[0] ^= n_bytes;
        while (n_bytes > 0) {
                uint64_t n = n_bytes < 8 ? n_bytes : 8, word = 0;

                memcpy(&word, at, n);
                digest[0] = (digest[0] ^ word) * 0x9e3779b97f4a7c15ull;
                digest[0] ^= digest[0] >> 32;
                digest[1] = (digest[1] + word) * 0xc2b2ae3d27d4eb4full;
                digest[1] ^= digest[1] >> 29;
                at += n;
                n_bytes -= n;
        }
}

static void client_columns_print_digest(const struct given *given, char *ret_digest) {
        static const char hex[] = "0123456789abcdef";
        uint64_t digest[2] = { 0x243f6a8885a308d3ull, 0x13198a2e03707344ull };

        for (uint32_t i = 0; i < given->n; i++) {
                const struct dlp_column *column = &given->columns[i];

                client_columns_mix(digest, column->name, strlen(column->name));
                client_columns_mix(digest, &column->dtype, sizeof(column->dtype));
                client_columns_mix(digest, column->values, client_columns_bytes_of(column));
        }
        for (uint32_t i = 0; i < 32; i++)
                ret_digest[i] = hex[digest[i / 16] >> (60 - 4 * (i % 16)) & 15];
        ret_digest[32] = '\0';
}

static int client_columns_write_all(int fd, const void *bytes, uint64_t n_bytes, uint64_t offset) {
        const uint8_t *at = bytes;

        while (n_bytes > 0) {
                ssize_t n = pwrite(fd, at, n_bytes < 1u << 30 ? n_bytes : 1u << 30, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                at += n;
                n_bytes -= (uint64_t)n;
                offset += (uint64_t)n;
        }
        return 0;
}

/* The gaps between columns are written as well: memory with holes is refused. */
static int client_columns_write_columns(int fd, const struct given *given, struct dli_columns *columns) {
        static const uint8_t zeroes[64];
        uint64_t offset = 0;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < given->n; i++) {
                uint64_t n_bytes = client_columns_bytes_of(&given->columns[i]);

                columns->columns[i].offset = offset;
                r = client_columns_write_all(fd, given->columns[i].values, n_bytes, offset);
                if (r == 0)
                        r = client_columns_write_all(fd, zeroes, client_columns_aligned(n_bytes) - n_bytes,
                                                     offset + n_bytes);
                offset += client_columns_aligned(n_bytes);
        }
        return r;
}

static int client_columns_describe(const struct given *given, struct dli_columns *columns) {
        for (uint32_t i = 0; i < given->n; i++) {
                dlp__column__init(&columns->columns[i]);
                columns->pointers[i] = &columns->columns[i];
                columns->names[i] = strdup(given->columns[i].name);
                columns->columns[i].name = columns->names[i];
                columns->columns[i].dtype = given->columns[i].dtype;
                columns->columns[i].n_values = given->columns[i].n_values;
                columns->n++;
                if (!columns->names[i])
                        return -ENOMEM;
        }
        return 0;
}

static int seal(const struct given *given, struct dli_columns *columns, struct why *why) {
        int r = client_columns_describe(given, columns);

        if (r < 0)
                return why_errno(why, r, "columns");
        columns->fd = memfd_create("dataloaderd-columns", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (columns->fd < 0)
                return why_errno(why, -errno, "columns: memory to share");
        r = client_columns_write_columns(columns->fd, given, columns);
        if (r == 0 && fcntl(columns->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                r = -errno;
        if (r < 0)
                return why_errno(why, r, "columns: memory to share");
        client_columns_print_digest(given, columns->digest);
        return 0;
}

int dli_columns_make(const struct dlc_options *options, struct dli_columns *ret_columns, struct why *why) {
        struct dlp_order_text *text = malloc(sizeof(*text));
        struct dli_columns columns = { .fd = -1 };
        struct given given = { .n = 0 };
        int r = text ? 0 : why_errno(why, -ENOMEM, "sampler");

        if (r == 0)
                r = dlp_order_text_parse(options->sampler ? options->sampler : "", text, why);
        if (r == 0)
                r = client_columns_take_given(options, &given, why);
        if (r == 0)
                r = client_columns_read_files(text, &given, why);
        if (r == 0 && given.n > 0)
                r = seal(&given, &columns, why);
        given_fini(&given);
        free(text);
        if (r < 0) {
                dli_columns_free(&columns);
                return r;
        }
        *ret_columns = columns;
        for (uint32_t i = 0; i < columns.n; i++)
                ret_columns->pointers[i] = &ret_columns->columns[i];
        return 0;
}

void dli_columns_free(struct dli_columns *columns) {
        closep(&columns->fd);
        for (uint32_t i = 0; i < columns->n; i++)
                free(columns->names[i]);
        *columns = (struct dli_columns){ .fd = -1 };
}
