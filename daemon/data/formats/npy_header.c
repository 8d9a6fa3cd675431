#include "daemon/data/formats/npy_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "proto/base/cleanup.h"

#define MAGIC      "\x93NUMPY"
#define N_MAGIC    6u
#define N_VERSION  2u
#define MAJOR_MAX  3u
#define TEXT_MAX   10000u
#define DESCR_SIZE 32u

/* The text of the header, which is a Python dictionary. */
struct literal {
        const char *at, *end;
        struct why *why;
};

static int npy_header_refuse(struct literal *literal, const char *expected) {
        size_t n_left = (size_t)(literal->end - literal->at);

        return why_set(literal->why, -EBADMSG, "is damaged: in its header, %s was expected at \"%.*s\"", expected,
                       n_left > 24 ? 24 : (int)n_left, literal->at);
}

static void npy_header_skip_blanks(struct literal *literal) {
        while (literal->at < literal->end && strchr(" \t\n\r", *literal->at))
                literal->at++;
}

static bool npy_header_take(struct literal *literal, char wanted) {
        npy_header_skip_blanks(literal);
        if (literal->at == literal->end || *literal->at != wanted)
                return false;
        literal->at++;
        return true;
}

/* A string without escapes: numpy does not write any in keys, nor in the types that can be served. */
static bool npy_header_take_string(struct literal *literal, char *into, size_t size) {
        const char *begin, *end;

        npy_header_skip_blanks(literal);
        if (literal->at == literal->end || (*literal->at != '\'' && *literal->at != '"'))
                return false;
        begin = literal->at + 1;
        end = memchr(begin, *literal->at, (size_t)(literal->end - begin));
        if (!end || (size_t)(end - begin) >= size)
                return false;
        memcpy(into, begin, (size_t)(end - begin));
        into[end - begin] = '\0';
        literal->at = end + 1;
        return true;
}

static bool npy_header_take_word(struct literal *literal, const char *word) {
        size_t n = strlen(word);

        npy_header_skip_blanks(literal);
        if ((size_t)(literal->end - literal->at) < n || memcmp(literal->at, word, n) != 0)
                return false;
        literal->at += n;
        return true;
}

/* A number that is not negative. An "L" may follow, as Python 2 wrote long integers. */
static bool npy_header_take_number(struct literal *literal, uint64_t *ret_number) {
        const char *begin;
        uint64_t number = 0;

        npy_header_skip_blanks(literal);
        begin = literal->at;
        for (; literal->at < literal->end && *literal->at >= '0' && *literal->at <= '9'; literal->at++)
                if (__builtin_mul_overflow(number, 10u, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*literal->at - '0'), &number))
                        return false;
        if (literal->at == begin)
                return false;
        if (literal->at < literal->end && *literal->at == 'L')
                literal->at++;
        *ret_number = number;
        return true;
}

/* ---- the three entries of a header ----------------------------------------------------------------------------- */

static const struct {
        const char *text; /* without the character for the byte order */
        enum dlp_dtype dtype;
} TYPES[] = {
        { "b1", DLP_DTYPE_BOOL },    { "i1", DLP_DTYPE_INT8 },    { "i2", DLP_DTYPE_INT16 },
        { "i4", DLP_DTYPE_INT32 },   { "i8", DLP_DTYPE_INT64 },   { "u1", DLP_DTYPE_UINT8 },
        { "u2", DLP_DTYPE_UINT16 },  { "u4", DLP_DTYPE_UINT32 },  { "u8", DLP_DTYPE_UINT64 },
        { "f2", DLP_DTYPE_FLOAT16 }, { "f4", DLP_DTYPE_FLOAT32 }, { "f8", DLP_DTYPE_FLOAT64 },
};

/* Types that numpy can write but no tensor can hold, by their letter. */
static const struct {
        char letter;
        const char *what;
} UNSERVED[] = {
        { 'O', "Python objects, which are pickled: save numbers" },
        { 'U', "text: save its characters as numbers, or the text in another format" },
        { 'S', "byte strings: save them as uint8" },
        { 'M', "dates: save them as int64" },
        { 'm', "time spans: save them as int64" },
        { 'c', "complex numbers: save real and imaginary parts" },
        { 'f', "floating-point numbers of an unusual size: save them as float64" },
        { 'V', "bytes without a type, as bfloat16 and other types of ml_dtypes are saved: save them as float32, or "
               "array.view(numpy.uint16) of bfloat16" },
        { '[', "records: save each of their members as an array of its own" },
};

static int refuse_type(struct literal *literal, const char *descr, char letter) {
        for (size_t i = 0; i < ARRAY_SIZE(UNSERVED); i++)
                if (letter == UNSERVED[i].letter)
                        return why_set(literal->why, -ENOTSUP, "holds %s (its type is \"%s\")", UNSERVED[i].what,
                                       descr);
        return why_set(literal->why, -ENOTSUP, "has the type \"%s\", which is unknown", descr);
}

static int read_descr(struct literal *literal, struct npy_header *header) {
        char descr[DESCR_SIZE];
        bool has_order;

        npy_header_skip_blanks(literal);
        if (literal->at < literal->end && *literal->at == '[')
                return refuse_type(literal, "a list", '[');
        if (!npy_header_take_string(literal, descr, sizeof(descr)))
                return npy_header_refuse(literal, "a type such as '<f4'");
        has_order = descr[0] && strchr("<>|=", descr[0]);
        for (size_t i = 0; i < ARRAY_SIZE(TYPES); i++)
                if (strcmp(descr + has_order, TYPES[i].text) == 0) {
                        header->dtype = TYPES[i].dtype;
                        header->is_big_endian = descr[0] == '>' && dlp_dtype_bytes(TYPES[i].dtype) > 1;
                        return 0;
                }
        return refuse_type(literal, descr, descr[has_order]);
}

static int npy_header_read_shape(struct literal *literal, struct npy_header *header) {
        if (!npy_header_take(literal, '('))
                return npy_header_refuse(literal, "a shape such as (3, 4)");
        while (!npy_header_take(literal, ')')) {
                uint64_t n = 0;

                if (!npy_header_take_number(literal, &n))
                        return npy_header_refuse(literal, "a number of elements that is not negative");
                if (header->n_dims == ARRAY_SIZE(header->shape))
                        return why_set(literal->why, -ENOTSUP, "has more than %zu dimensions",
                                       ARRAY_SIZE(header->shape));
                header->shape[header->n_dims++] = n;
                if (!npy_header_take(literal, ',') && (literal->at == literal->end || *literal->at != ')'))
                        return npy_header_refuse(literal, "\",\" or \")\"");
        }
        return 0;
}

enum {
        HAS_DESCR = 1,
        HAS_ORDER = 2,
        HAS_SHAPE = 4,
        HAS_ALL = 7,
};

static int npy_header_read_entry(struct literal *literal, struct npy_header *header, bool *ret_is_fortran,
                                 unsigned *has) {
        char key[16];
        unsigned one;
        int r = 0;

        if (!npy_header_take_string(literal, key, sizeof(key)) || !npy_header_take(literal, ':'))
                return npy_header_refuse(literal, "'descr', 'fortran_order' or 'shape'");
        if (strcmp(key, "descr") == 0) {
                one = HAS_DESCR;
                r = read_descr(literal, header);
        } else if (strcmp(key, "fortran_order") == 0) {
                one = HAS_ORDER;
                *ret_is_fortran = npy_header_take_word(literal, "True");
                if (!*ret_is_fortran && !npy_header_take_word(literal, "False"))
                        return npy_header_refuse(literal, "True or False");
        } else if (strcmp(key, "shape") == 0) {
                one = HAS_SHAPE;
                header->n_dims = 0;
                r = npy_header_read_shape(literal, header);
        } else {
                return why_set(literal->why, -EBADMSG, "is damaged: its header has an entry \"%s\"", key);
        }
        if (r == 0 && (*has & one))
                return why_set(literal->why, -EBADMSG, "is damaged: its header has \"%s\" twice", key);
        *has |= one;
        return r;
}

static int npy_header_read_dictionary(struct literal *literal, struct npy_header *header, bool *ret_is_fortran) {
        unsigned has = 0;

        if (!npy_header_take(literal, '{'))
                return npy_header_refuse(literal, "\"{\"");
        while (!npy_header_take(literal, '}')) {
                int r = npy_header_read_entry(literal, header, ret_is_fortran, &has);

                if (r < 0)
                        return r;
                if (!npy_header_take(literal, ',') && (literal->at == literal->end || *literal->at != '}'))
                        return npy_header_refuse(literal, "\",\" or \"}\"");
        }
        npy_header_skip_blanks(literal);
        if (literal->at != literal->end)
                return npy_header_refuse(literal, "the end");
        if (has != HAS_ALL)
                return why_set(literal->why, -EBADMSG, "is damaged: its header lacks '%s'",
                               !(has & HAS_DESCR)   ? "descr"
                               : !(has & HAS_ORDER) ? "fortran_order"
                                                    : "shape");
        return 0;
}

/* ---- the whole header ------------------------------------------------------------------------------------------ */

/* Where the text begins, and how long it is. */
static int npy_header_find_text(const uint8_t *bytes, size_t n_bytes, size_t *ret_begin, size_t *ret_length,
                                struct why *why) {
        size_t n_length;
        uint32_t length;

        if (n_bytes < N_MAGIC + N_VERSION || memcmp(bytes, MAGIC, N_MAGIC) != 0)
                return why_set(why, -EBADMSG, "is not a .npy file: it does not begin with \"\\x93NUMPY\"");
        if (bytes[N_MAGIC] < 1 || bytes[N_MAGIC] > MAJOR_MAX)
                return why_set(why, -ENOTSUP, "is of version %u of the format; 1, 2 and 3 are known", bytes[N_MAGIC]);
        n_length = bytes[N_MAGIC] == 1 ? 2 : 4;
        *ret_begin = N_MAGIC + N_VERSION + n_length;
        if (n_bytes < *ret_begin)
                return why_set(why, -EBADMSG, "is cut within its header");
        length = n_length == 2 ? le16(bytes + N_MAGIC + N_VERSION) : le32(bytes + N_MAGIC + N_VERSION);
        if (length > TEXT_MAX)
                return why_set(why, -EBADMSG, "has a header of %u bytes; numpy itself reads %u at most", length,
                               TEXT_MAX);
        if (length > n_bytes - *ret_begin)
                return why_set(why, -EBADMSG, "is cut within its header");
        *ret_length = length;
        return 0;
}

static int npy_header_measure(struct npy_header *header, bool is_value, struct why *why) {
        uint64_t n_bytes = dlp_dtype_bytes(header->dtype), n_rows = header->n_dims > 0 ? header->shape[0] : 1;

        if (header->n_dims == 0 && !is_value)
                return why_set(why, -ENOTSUP, "holds a single number, which has no rows: save an array");
        for (uint32_t i = 1; i < header->n_dims; i++)
                if (__builtin_mul_overflow(n_bytes, header->shape[i], &n_bytes))
                        return why_set(why, -EBADMSG, "is damaged: the shape in its header overflows");
        if (n_bytes == 0)
                return why_set(why, -ENOTSUP, "has rows without elements");
        if (n_rows == 0 && !is_value)
                return why_set(why, -ENOENT, "has no rows");
        header->row_bytes = n_bytes;
        if (__builtin_mul_overflow(n_bytes, n_rows, &n_bytes) ||
            __builtin_add_overflow(n_bytes, header->data, &header->end) || header->end > INT64_MAX)
                return why_set(why, -EBADMSG, "is damaged: the shape in its header overflows");
        return 0;
}

/* `is_file`: what prepare = "convert" takes. */
static int npy_header_read_header(const uint8_t *bytes, size_t n_bytes, bool is_value, bool is_file,
                                  struct npy_header *ret_header, struct why *why) {
        struct npy_header header = { 0 };
        struct literal literal = { .why = why };
        bool is_fortran = false;
        size_t begin = 0, length = 0;
        int r = npy_header_find_text(bytes, n_bytes, &begin, &length, why);

        if (r < 0)
                return r;
        literal.at = (const char *)bytes + begin;
        literal.end = literal.at + length;
        r = npy_header_read_dictionary(&literal, &header, &is_fortran);
        if (r < 0)
                return r;
        if (is_fortran && header.n_dims > 1)
                return why_set(why, -ENOTSUP,
                               "is in Fortran order, so its rows do not lie together: save it with "
                               "numpy.ascontiguousarray()%s",
                               is_file ? ", or stage it with prepare = \"convert\"" : "");
        header.data = begin + length;
        r = npy_header_measure(&header, is_value, why);
        if (r == 0)
                *ret_header = header;
        return r;
}

int npy_header_read(const uint8_t *bytes, size_t n_bytes, bool is_file, struct npy_header *ret_header,
                    struct why *why) {
        return npy_header_read_header(bytes, n_bytes, false, is_file, ret_header, why);
}

int npy_header_read_value(const uint8_t *bytes, size_t n_bytes, struct npy_header *ret_header, struct why *why) {
        return npy_header_read_header(bytes, n_bytes, true, false, ret_header, why);
}
