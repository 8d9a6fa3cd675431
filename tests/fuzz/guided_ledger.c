/* Any bytes as a ledger of damaged samples. Each line by itself is read as it was printed; the file as a whole is
 * loaded, added to, and loaded again: nothing that it said is lost. The first byte: bit 0 puts the right header before
 * it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/index/index_builder.h"
#include "daemon/data/ledger/ledger_file.h"
#include "tests/fuzz/folder.h"

#define N_SAMPLES 20u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static struct source *samples;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void find(const char *what) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

static void make_index(void) {
        int fd = memfd_create("index", MFD_CLOEXEC);
        struct index_builder *builder = NULL;
        uint32_t dir = 0;
        struct why why;

        if (index_builder_new("imagefolder", 1, &builder) < 0 || index_builder_add_class(builder, "a") < 0 ||
            index_builder_add_dir(builder, "", NULL, &dir) < 0)
                _exit(2);
        for (uint64_t i = 0; i < N_SAMPLES; i++) {
                struct index_row row = { .length = 7 };
                char name[32];

                snprintf(name, sizeof(name), "%02llu\t.jpg", (unsigned long long)i);
                if (index_builder_add_file(builder, dir, name, 0, &row.file) < 0 ||
                    index_builder_add_sample(builder, &row, 0) < 0)
                        _exit(2);
        }
        if (index_builder_write(builder, fd, "samples", &why) < 0 ||
            index_open_fd(fd, "samples", NULL, &samples, &why) < 0)
                _exit(2);
        index_builder_free(builder);
        close(fd);
}

static void read_line(const char *line) {
        struct ledger_entry entry, again;
        char printed[LEDGER_LINE_MAX];
        size_t n;

        if (ledger_line_parse(line, &entry) != 0)
                return;
        n = ledger_line_print(printed, &entry, "a/b.jpg");
        if (n >= sizeof(printed) || printed[n - 1] != '\n')
                find("a line is too long");
        printed[n - 1] = '\0';
        if (ledger_line_parse(printed, &again) != 0 || again.sample != entry.sample || again.n_met != entry.n_met ||
            again.first_unix != entry.first_unix || again.last_unix != entry.last_unix ||
            strcmp(again.error.text, entry.error.text) != 0 || strcmp(again.field, entry.field) != 0)
                find("a line is not read as it was written");
}

static void read_lines(const uint8_t *data, size_t n_bytes) {
        char *text = strndup((const char *)data, n_bytes), *rest = text, *line;

        for (int i = 0; i < 20 && (line = strsep(&rest, "\n")); i++)
                read_line(line);
        free(text);
}

static struct ledger_file file_of(struct ledger_book *book) {
        struct ledger_file file = { .digest = samples->digest, .index = samples, .book = book, .lock = &lock };

        if (ledger_book_init(book, N_SAMPLES) < 0)
                _exit(2);
        folder_path("photos.errors", file.path);
        return file;
}

static void check_same(const struct ledger_book *one, const struct ledger_book *other) {
        struct ledger_entry entry, again;

        if (one->n_met != other->n_met)
                find("the ledger is read with another number of samples than it was written with");
        for (uint64_t i = 0; ledger_book_at(one, i, &entry); i++)
                if (!ledger_book_at(other, i, &again) || entry.sample != again.sample || entry.n_met != again.n_met ||
                    strcmp(entry.error.text, again.error.text) != 0 || strcmp(entry.field, again.field) != 0)
                        find("the ledger is not read as it was written");
}

static void load_twice(void) {
        struct ledger_book book, book_again;
        struct ledger_file file = file_of(&book), again;
        struct why why = { 0 };
        int r = ledger_file_load(&file, &why);

        if (r < 0)
                find(why.text);
        ledger_book_meet(&book, 3, "seg.png", "cut short", 1795264270);
        ledger_book_meet(&book, 17, "seg.png", "no picture", 1795264271);
        if (ledger_file_append(&file, LEDGER_REPEATED, &why) < 0)
                find(why.text);
        again = file_of(&book_again);
        if (ledger_file_load(&again, &why) != 0)
                find("a ledger that was written is put aside");
        check_same(&book, &book_again);
        ledger_book_fini(&book);
        ledger_book_fini(&book_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static char text[1 << 17];
        size_t n = 0;

        if (!samples)
                make_index();
        if (n_bytes < 1 || n_bytes + LEDGER_LINE_MAX > sizeof(text))
                return 0;
        read_lines(data + 1, n_bytes - 1);
        if (data[0] & 1)
                n = ledger_header_print(text, samples->digest);
        memcpy(text + n, data + 1, n_bytes - 1);
        folder_write("photos.errors", text, n + n_bytes - 1);
        load_twice();
        return 0;
}
