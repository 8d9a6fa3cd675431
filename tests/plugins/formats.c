/* Formats. `tail` reads files whose table is at their end, has fields of all kinds, and a state; `bad` does what a
 * format must not do, as its argument says. */
#include <dlplugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tail ---------------------------------------------------------------------------------------------------------
 * A file: anything; rows of 40 bytes; the number of rows, 8 bytes. A row: a name of 8 bytes with NUL; where a text lies
 * and its bytes; where numbers lie and their bytes, 8 bytes each. */

#define ROW 40u

struct reading {
        uint64_t n_samples; /* so far, of all files */
        uint64_t rows, n_rows;
};

static int settle(struct dlplugin_call *call, void **state) {
        *state = calloc(1, sizeof(struct reading));
        return *state ? 0 : call->fail(call, "has no memory");
}

static uint64_t word_at(const void *bytes) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return word;
}

static int add_fields(struct dlplugin_call *call, struct dlplugin_window *window) {
        static const struct dlplugin_field FIELDS[] = {
                { .name = "text", .kind = DLPLUGIN_FIELD_TEXT },
                { .name = "pair",
                  .kind = DLPLUGIN_FIELD_ARRAY,
                  .flags = DLPLUGIN_FIELD_IS_VALUE,
                  .form = { .dtype = DLPLUGIN_FLOAT32, .n_dims = 1, .shape = { 2 } } },
                { .name = "numbers",
                  .kind = DLPLUGIN_FIELD_ARRAY,
                  .flags = DLPLUGIN_FIELD_BIG_ENDIAN | DLPLUGIN_FIELD_MAY_BE_ABSENT,
                  .form = { .dtype = DLPLUGIN_INT16, .n_dims = 1, .shape = { -1 } } },
                { .name = "file", .kind = DLPLUGIN_FIELD_TEXT, .flags = DLPLUGIN_FIELD_IS_VALUE },
                { .name = "bag",
                  .kind = DLPLUGIN_FIELD_BYTES,
                  .flags = DLPLUGIN_FIELD_IS_VALUE | DLPLUGIN_FIELD_MAY_BE_ABSENT },
                { .name = "row",
                  .kind = DLPLUGIN_FIELD_ARRAY,
                  .flags = DLPLUGIN_FIELD_IS_VALUE,
                  .form = { .dtype = DLPLUGIN_INT64 } },
                { .name = "ups",
                  .kind = DLPLUGIN_FIELD_ARRAY,
                  .flags = DLPLUGIN_FIELD_IS_VALUE,
                  .form = { .dtype = DLPLUGIN_UINT8, .n_dims = 2, .shape = { -1, 2 } } },
        };

        for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++)
                if (window->add_field(call, &FIELDS[i]) < 0)
                        return -1;
        return 0;
}

static int add_row(struct dlplugin_call *call, struct dlplugin_window *window, const uint8_t *row) {
        struct reading *reading = call->state;
        int64_t number = (int64_t)reading->n_samples++;
        float pair[2] = { (float)number, -0.5f };
        static const uint8_t ups[] = { 1, 2, 3, 4, 5, 6 };
        struct dlplugin_cell cells[] = {
                { .offset = word_at(row + 8), .n_bytes = word_at(row + 16) },
                { .n_bytes = sizeof(pair), .value = pair },
                { .offset = word_at(row + 24), .n_bytes = word_at(row + 32) },
                { .n_bytes = strlen(window->file), .value = window->file },
                { .offset = number % 2 ? DLPLUGIN_ABSENT : 0, .n_bytes = number % 2 ? 0 : 3, .value = "bag" },
                { .n_bytes = sizeof(number), .value = &number },
                { .n_bytes = (uint64_t)(number % 4) * 2, .value = ups },
        };
        char name[40];

        snprintf(name, sizeof(name), "rows/%.7s", (const char *)row);
        return window->add_sample(call, call->values[0].number > 0 ? name : NULL, cells, 7);
}

/* Three windows a file: the last word, the table in pieces of one row, and no more. */
static int tail(struct dlplugin_call *call, struct dlplugin_window *window) {
        struct reading *reading = call->state;

        if (window->offset == 0 && reading->n_rows == 0 && window->n_bytes != 8) {
                if (window->idx_file == 0 && add_fields(call, window) < 0)
                        return -1;
                if (window->n_file_bytes < 8)
                        return call->fail(call, "has %llu bytes, 8 are the least",
                                          (unsigned long long)window->n_file_bytes);
                window->next_offset = window->n_file_bytes - 8;
                window->n_wanted = 8;
                return 0;
        }
        if (reading->n_rows == 0) {
                reading->n_rows = word_at(window->bytes);
                if (reading->n_rows == 0)
                        return 0; /* next_offset is the file's end */
                window->next_offset = window->n_file_bytes - 8 - reading->n_rows * ROW;
                window->n_wanted = ROW;
                return 0;
        }
        if (add_row(call, window, window->bytes) < 0)
                return -1;
        window->next_offset = --reading->n_rows > 0 ? window->offset + ROW : window->n_file_bytes;
        window->n_wanted = ROW;
        return 0;
}

/* ---- bad ------------------------------------------------------------------------------------------------------- */

#define IS(what) (strcmp(call->values[0].text, what) == 0)

static int field(struct dlplugin_call *call, struct dlplugin_window *window, const char *name, uint32_t kind,
                 uint32_t flags, uint32_t dtype, uint32_t n_dims, int64_t first) {
        struct dlplugin_field it = {
                .name = name, .kind = kind, .flags = flags, .form = { dtype, n_dims, { first, 2 } }
        };

        return window->add_field(call, &it);
}

static int bad_fields(struct dlplugin_call *call, struct dlplugin_window *window) {
        int r = field(call, window, "bytes", DLPLUGIN_FIELD_BYTES, 0, 0, 0, 0);

        if (r == 0)
                r = field(call, window, "title", DLPLUGIN_FIELD_TEXT, DLPLUGIN_FIELD_IS_VALUE, 0, 0, 0);
        if (r == 0 && IS("twice"))
                r = field(call, window, "bytes", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (r == 0 && IS("noname"))
                r = field(call, window, "", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (r == 0 && IS("longname"))
                r = field(call, window, "a_name_that_has_more_than_31_byte", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (r == 0 && IS("control"))
                r = field(call, window, "a\nb", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (r == 0 && IS("key"))
                r = field(call, window, "__key__", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (r == 0 && IS("kind"))
                r = field(call, window, "x", 77, 0, 0, 0, 0);
        if (r == 0 && IS("flags"))
                r = field(call, window, "x", DLPLUGIN_FIELD_TEXT, 8, 0, 0, 0);
        if (r == 0 && IS("stored"))
                r = field(call, window, "x", DLPLUGIN_FIELD_PICTURE, DLPLUGIN_FIELD_IS_VALUE, 0, 0, 0);
        if (r == 0 && IS("dtype"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, 0, 99, 0, 0);
        if (r == 0 && IS("dims"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, 0, DLPLUGIN_UINT8, 4000000000u, 1);
        if (r == 0 && IS("shape"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, 0, DLPLUGIN_UINT8, 1, -5);
        if (r == 0 && IS("zero"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, DLPLUGIN_FIELD_IS_VALUE, DLPLUGIN_UINT8, 1, 0);
        if (r == 0 && IS("huge"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, 0, DLPLUGIN_UINT8, 2, INT64_MAX);
        if (r == 0 && IS("size"))
                r = field(call, window, "x", DLPLUGIN_FIELD_ARRAY, 0, DLPLUGIN_INT32, 2, -1);
        return r;
}

static int bad_sample(struct dlplugin_call *call, struct dlplugin_window *window, const char *name) {
        struct dlplugin_cell cells[] = {
                { .offset = 0, .n_bytes = 4 },
                { .n_bytes = 2, .value = IS("notext") ? "\xff\xfe" : "hi" },
                { .offset = 1, .n_bytes = 9, .value = "nine bytes" }, /* of `size`: no multiple of two int32 */
        };
        uint32_t n_cells = IS("size") || IS("twice") || IS("control") || IS("key") || IS("kind") || IS("flags") ||
                                           IS("stored") || IS("dtype") || IS("dims") || IS("shape") || IS("huge") ||
                                           IS("zero")
                                   ? 3
                                   : 2;

        if (IS("outside"))
                cells[0].n_bytes = window->n_file_bytes + 1;
        if (IS("far"))
                cells[0].offset = UINT64_MAX - 2;
        if (IS("absent") || IS("named"))
                cells[0].offset = DLPLUGIN_ABSENT;
        if (IS("missing"))
                cells[1].value = NULL;
        if (IS("cells"))
                n_cells = 1;
        if (IS("few"))
                n_cells = 4000000000u;
        if (IS("heaps")) {
                static char heap[5u << 20];

                memset(heap, 'a', sizeof(heap));
                cells[1].value = heap;
                cells[1].n_bytes = sizeof(heap);
        }
        return window->add_sample(call, name, cells, n_cells);
}

static int bad(struct dlplugin_call *call, struct dlplugin_window *window) {
        static char longest[4096];

        if (window->offset == 0 && window->n_bytes > 1 && window->idx_file == 0 && bad_fields(call, window) < 0)
                return IS("ignores") ? 0 : -1;
        if (IS("fails") && window->idx_file == 1)
                return call->fail(call, "has the number %d", 1);
        if (IS("silent"))
                return -1;
        if (IS("crash") && window->idx_file == 1)
                abort();
        if (IS("exits"))
                exit(7);
        for (; IS("hang");)
                pause();
        if (IS("same"))
                window->next_offset = window->offset;
        if (IS("wants"))
                window->n_wanted = DLPLUGIN_WINDOW_MAX + 1ull;
        if (IS("beyond")) {
                window->next_offset = window->offset;
                window->n_wanted = window->n_file_bytes + 1;
        }
        if (IS("circles")) {
                window->next_offset = window->offset == 0 ? 1 : 0;
                window->n_wanted = 1;
                return 0;
        }
        if (IS("late"))
                return bad_sample(call, window, NULL) < 0
                               ? -1
                               : field(call, window, "late", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (IS("ignores"))
                (void)field(call, window, "", DLPLUGIN_FIELD_TEXT, 0, 0, 0, 0);
        if (IS("mixed"))
                return bad_sample(call, window, "one") < 0 || bad_sample(call, window, NULL) < 0 ? -1 : 0;
        if (IS("named"))
                return bad_sample(call, window, "one");
        if (IS("badname"))
                return bad_sample(call, window, "../passwd");
        if (IS("longest")) {
                memset(longest, 'a', sizeof(longest) - 1);
                return bad_sample(call, window, longest);
        }
        if (IS("forks") && fork() == 0)
                for (;;)
                        pause();
        for (int i = 0; IS("prints") && i < 100000; i++)
                puts("what nobody wants to read, and many times");
        while (IS("rows"))
                if (bad_sample(call, window, NULL) < 0)
                        return -1;
        return IS("none") ? 0 : bad_sample(call, window, NULL);
}

/* ---- more: adds a sample for each byte, in as many messages as that takes -------------------------------------------
 */

static int each(struct dlplugin_call *call, struct dlplugin_window *window) {
        static const struct dlplugin_field BYTE = { .name = "byte", .kind = DLPLUGIN_FIELD_BYTES };

        if (window->offset == 0 && window->idx_file == 0 && window->add_field(call, &BYTE) < 0)
                return -1;
        for (uint64_t i = 0; i < window->n_bytes; i++) {
                struct dlplugin_cell cell = { .offset = window->offset + i, .n_bytes = 1 };

                if (window->add_sample(call, NULL, &cell, 1) < 0)
                        return -1;
        }
        return 0;
}

/* ---- the plug-in ------------------------------------------------------------------------------------------------- */

static const struct dlplugin_argument NAMES[] = {
        { .name = "names", .kind = DLPLUGIN_CHOICE, .by_default = "no", .choices = "no yes" },
};
static const struct dlplugin_argument WHAT[] = {
        { .name = "does", .kind = DLPLUGIN_TEXT, .by_default = "nothing" },
};

static const struct dlplugin_format FORMATS[] = {
        { .name = "tail",
          .about = "a table at the end",
          .arguments = NAMES,
          .n_arguments = 1,
          .endings = ".tail .tl",
          .settle = settle,
          .forget = free,
          .scan = tail },
        { .name = "bad", .about = "does what is not allowed", .arguments = WHAT, .n_arguments = 1, .scan = bad },
        { .name = "each", .about = "a sample a byte", .scan = each },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,      .name = "formats",  .about = "Formats, good and bad.",
        .threads = THREADS, .formats = FORMATS, .n_formats = 3,
};
