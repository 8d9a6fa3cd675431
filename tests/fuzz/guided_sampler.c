/* Coverage-guided (libFuzzer): any text as a sampler, up to a NUL, and what comes after it as the dataset: samples,
 * seed, epoch, parts and columns. What is accepted must be accepted again as it is printed, and mean the same. What is
 * made must hold what it promised: the maker (tests/support/maker.h) aborts if not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/input.h"
#include "tests/support/maker.h"

#define SAMPLES_MAX 200u
#define VALUES_MAX  600u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static struct maker maker;
static _Alignas(8) uint8_t values[MAKER_COLUMNS_MAX][VALUES_MAX * 8];
static uint64_t ends[MAKER_COLUMNS_MAX][SAMPLES_MAX];

/* Accepted, printed, and accepted again. */
static void print(const struct dlp_order_text *text) {
        static struct dlp_order_text again;
        char printed[DLP_SAMPLER_MAX], twice[DLP_SAMPLER_MAX];
        struct why why;

        if (dlp_order_text_print(text, printed, &why) < 0)
                return; /* longer with its defaults */
        if (dlp_order_text_parse(printed, &again, &why) < 0 || dlp_order_text_print(&again, twice, &why) < 0 ||
            strcmp(printed, twice) != 0)
                abort();
}

/* Small numbers of any sign, as labels and lengths are; now and then any bits. */
static void fill(struct input *input, uint8_t *column, enum dlp_dtype dtype, uint64_t n) {
        uint64_t n_each = dlp_dtype_bytes(dtype);
        bool is_any = input_below(input, 8) == 7;

        for (uint64_t i = 0; i < n; i++) {
                int64_t word = is_any ? (int64_t)input_word(input) : (int8_t)input_byte(input);
                double real = (double)word / 2;
                float single = (float)real;

                if (dtype == DLP_DTYPE_FLOAT64 && !is_any)
                        memcpy(&word, &real, sizeof(real));
                else if (dtype == DLP_DTYPE_FLOAT32 && !is_any)
                        memcpy(&word, &single, sizeof(single));
                else if (dtype == DLP_DTYPE_BOOL)
                        word &= 1;
                memcpy(column + i * n_each, &word, n_each);
        }
}

static void add_column(struct input *input, const char *name) {
        static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_INT64,   DLP_DTYPE_FLOAT64, DLP_DTYPE_INT32,
                                                 DLP_DTYPE_FLOAT32, DLP_DTYPE_UINT64,  DLP_DTYPE_UINT16,
                                                 DLP_DTYPE_BOOL,    DLP_DTYPE_INT8 };
        uint32_t idx = maker.terms.n_columns;
        enum dlp_dtype dtype = DTYPES[input_below(input, sizeof(DTYPES) / sizeof(DTYPES[0]))];
        uint64_t n = maker.terms.base.n_samples, n_values = n;
        uint32_t shape = input_below(input, 8);

        if (shape == 1 || shape == 2) /* lists */
                for (uint64_t i = n_values = 0; i < n; i++)
                        ends[idx][i] = n_values += input_below(input, 3);
        else if (shape == 3)
                n_values = input_below(input, VALUES_MAX);
        fill(input, values[idx], dtype, n_values);
        maker_column(&maker, name, dtype, values[idx], n_values);
        if (shape == 1 || shape == 2) {
                maker.columns[idx].ends = ends[idx];
                maker.columns[idx].n_samples = n;
        }
}

static void add_columns(struct input *input, const struct dlp_order_text *text) {
        struct dlp_column_wish wishes[MAKER_COLUMNS_MAX];
        uint32_t n = dlp_order_text_columns(text, wishes, MAKER_COLUMNS_MAX);

        for (uint32_t i = 0; i < n && i < MAKER_COLUMNS_MAX; i++)
                add_column(input, wishes[i].name);
}

static void add_parts(struct input *input) {
        static const char *const NAMES[] = { "a", "b", "c" };
        uint64_t n_left = maker.terms.base.n_samples;
        uint32_t n = input_below(input, 4);

        for (uint32_t i = 0; i < n; i++) {
                uint64_t n_part = i + 1 == n ? n_left : n_left * input_below(input, 5) / 4;

                maker_part(&maker, NAMES[i], n_part);
                n_left -= n_part;
        }
}

static void cut_blocks(struct input *input, uint32_t n) {
        static uint64_t block_ends[SAMPLES_MAX];
        static struct dlp_blocks blocks;
        uint32_t each = 1 + input_below(input, 100), end = 0;

        blocks = (struct dlp_blocks){ .ends = block_ends };
        while (end < n) {
                end += 1 + input_below(input, each);
                block_ends[blocks.n++] = end < n ? end : n;
        }
        maker.terms.base.blocks = &blocks;
        maker.terms.base.window = input_below(input, 10);
}

static void make(struct input *input, const char *text, const struct dlp_order_text *parsed) {
        uint32_t n = input_below(input, SAMPLES_MAX + 1), kind;
        int r;

        maker_init(&maker, n);
        maker.terms.base.seed = input_number(input);
        maker.terms.base.epoch = input_number(input) % (DLP_EPOCH_MAX + 1);
        kind = input_below(input, 5);
        maker.terms.base.kind = kind == 1   ? DLP_ORDER_TDPERM
                                : kind == 2 ? DLP_ORDER_BUFFER
                                : kind == 4 ? DLP_ORDER_BLOCKS
                                            : DLP_ORDER_TORCH;
        cut_blocks(input, n);
        maker.terms.base.shuffle = kind != 3;
        maker.terms.base.compat = (enum dlp_torch_compat)input_below(input, 3);
        maker.terms.batch_size = 1 + input_below(input, 40);
        add_parts(input);
        add_columns(input, parsed);
        maker.n_bytes_max = 1u << 23;
        maker.n_looks_left = 40;
        r = maker_order(&maker, text);
        if (r < 0 && r != -EINVAL && r != -ENOMEM && r != -ECANCELED)
                abort();
        if (r == -EINVAL && maker.why.text[0] == '\0')
                abort();
        maker_fini(&maker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static struct dlp_order_text parsed;
        struct input input = { .at = data, .n = n_bytes };
        char text[DLP_SAMPLER_MAX + 10];
        struct why why = { "" };

        input_text(&input, text, sizeof(text));
        if (dlp_order_text_parse(text, &parsed, &why) < 0) {
                if (why.text[0] == '\0')
                        abort();
                return 0;
        }
        print(&parsed);
        if (parsed.n_steps > 0)
                make(&input, text, &parsed);
        return 0;
}
