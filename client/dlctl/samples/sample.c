#include "client/dlctl/samples/sample.h"

/* The hash is over a field's bytes in C order without padding. That of a list of texts is over its texts, each with a
 * NUL after it. */

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/texts.h"
#include "proto/base/utf8.h"

#define TEXT_SHOWN  200u /* characters */
#define TEXTS_SHOWN 8u

struct sample_printer {
        enum output_format format;
        EVP_MD *sha256; /* fetched once: a lookup by name for each sample would cost more than the hash */
        EVP_MD_CTX *hash;
};

int sample_printer_new(enum output_format format, struct sample_printer **ret_printer) {
        struct sample_printer *printer = calloc(1, sizeof(*printer));

        if (!printer)
                return -ENOMEM;
        printer->format = format;
        printer->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        printer->hash = EVP_MD_CTX_new();
        if (!printer->sha256 || !printer->hash) {
                sample_printer_free(printer);
                return -ENOMEM;
        }
        *ret_printer = printer;
        return 0;
}

void sample_printer_free(struct sample_printer *printer) {
        if (!printer)
                return;
        EVP_MD_CTX_free(printer->hash);
        EVP_MD_free(printer->sha256);
        free(printer);
}

/* ---- hashing ------------------------------------------------------------------------------------------------- */

/* How many elements of a sample are real in dimension `dim`, and which is the first of them. */
static int64_t real_elements(const struct dlc_tensor *tensor, uint32_t idx_sample, uint32_t dim, int64_t *ret_first) {
        int64_t n = tensor->shape[dim];

        if (tensor->extents && dim >= tensor->padded_dim && dim < (uint32_t)tensor->padded_dim + tensor->n_padded_dims)
                n = (int64_t)tensor->extents[idx_sample].n[dim - tensor->padded_dim];
        *ret_first = tensor->pads_left ? tensor->shape[dim] - n : 0;
        return n;
}

/* Finds how many of the last dimensions are contiguous, and the number of bytes of such a piece. */
static uint32_t contiguous_from(const struct dlc_tensor *tensor, uint64_t *ret_n_bytes) {
        uint64_t n_bytes = dlc_dtype_bytes(tensor->dtype);
        uint32_t dim = tensor->n_dims;

        /* Of what was padded only a part is hashed, so that no piece goes over it. */
        while (dim > 1 && (!tensor->extents || dim > (uint32_t)tensor->padded_dim + tensor->n_padded_dims) &&
               (tensor->shape[dim - 1] == 1 || (uint64_t)tensor->strides[dim - 1] == n_bytes))
                n_bytes *= (uint64_t)tensor->shape[--dim];
        *ret_n_bytes = n_bytes;
        return dim;
}

/* Hashes dimensions `dim` .. `end`-1 piece by piece; the depth is DLP_DIMS_MAX at most. */
static bool sample_update(EVP_MD_CTX *hash, const struct dlc_tensor *tensor, uint32_t idx_sample, const uint8_t *bytes,
                          uint32_t dim, uint32_t end, uint64_t n_piece_bytes) {
        int64_t first, n;

        if (dim >= end)
                return EVP_DigestUpdate(hash, bytes, n_piece_bytes) == 1;
        n = real_elements(tensor, idx_sample, dim, &first);
        bytes += first * tensor->strides[dim];
        if (dim + 1 == end && (uint64_t)tensor->strides[dim] == n_piece_bytes)
                return EVP_DigestUpdate(hash, bytes, (uint64_t)n * n_piece_bytes) == 1;
        for (int64_t i = 0; i < n; i++)
                if (!sample_update(hash, tensor, idx_sample, bytes + i * tensor->strides[dim], dim + 1, end,
                                   n_piece_bytes))
                        return false;
        return true;
}

bool sample_texts(const struct dlc_tensor *tensor, uint32_t idx_sample, struct texts *ret_texts) {
        if (tensor->dtype != DLC_TEXTS)
                return false;
        if (!texts_open(sample_bytes(tensor, idx_sample), tensor->places[idx_sample].n_bytes, ret_texts))
                *ret_texts = (struct texts){ 0 }; /* the daemon has checked it; a client may write to its slot */
        return true;
}

static bool hash_texts(EVP_MD_CTX *hash, const struct texts *texts) {
        for (uint64_t i = 0; i < texts->n; i++) {
                uint64_t n_bytes;
                const uint8_t *bytes = texts_at(texts, i, &n_bytes);

                if (EVP_DigestUpdate(hash, bytes, n_bytes) != 1 || EVP_DigestUpdate(hash, "", 1) != 1)
                        return false;
        }
        return true;
}

bool sample_hash(struct sample_printer *printer, const struct dlc_tensor *tensor, uint32_t idx_sample,
                 uint8_t *ret_hash) {
        const uint8_t *data = tensor->data;
        struct texts texts;
        uint64_t n_bytes;
        uint32_t end;
        bool ok;

        if (EVP_DigestInit_ex2(printer->hash, printer->sha256, NULL) != 1)
                return false;
        if (sample_texts(tensor, idx_sample, &texts)) {
                ok = hash_texts(printer->hash, &texts);
        } else if (tensor->places) {
                ok = EVP_DigestUpdate(printer->hash, data + tensor->places[idx_sample].offset,
                                      tensor->places[idx_sample].n_bytes) == 1;
        } else {
                end = contiguous_from(tensor, &n_bytes);
                ok = sample_update(printer->hash, tensor, idx_sample, data + (int64_t)idx_sample * tensor->strides[0],
                                   1, end, n_bytes);
        }
        return ok && EVP_DigestFinal_ex(printer->hash, ret_hash, NULL) == 1;
}

static void print_hash(struct text *text, const uint8_t *hash) {
        static const char digits[] = "0123456789abcdef";
        char hex[2 * SAMPLE_HASH_BYTES];

        for (size_t i = 0; i < SAMPLE_HASH_BYTES; i++) {
                hex[2 * i] = digits[hash[i] >> 4];
                hex[2 * i + 1] = digits[hash[i] & 15];
        }
        text_bytes(text, hex, sizeof(hex));
}

/* ---- single numbers ------------------------------------------------------------------------------------------ */

static double from_float16(uint16_t bits) {
        double sign = bits >> 15 ? -1.0 : 1.0, fraction = bits & 0x3ff;
        int exponent = bits >> 10 & 0x1f;

        if (exponent == 31)
                return fraction != 0 ? __builtin_nan("") : sign * __builtin_inf();
        if (exponent == 0)
                return sign * __builtin_ldexp(fraction, -24);
        return sign * __builtin_ldexp(fraction + 1024, exponent - 25);
}

static double sample_from_bfloat16(uint16_t bits) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;

        memcpy(&value, &wide, sizeof(value));
        return (double)value;
}

void sample_print_value(struct text *text, uint32_t dtype, const void *bytes) {
        union {
                uint8_t u8;
                int8_t i8;
                uint16_t u16;
                int16_t i16;
                uint32_t u32;
                int32_t i32;
                uint64_t u64;
                int64_t i64;
                float f32;
                double f64;
        } value = { .i64 = 0 };

        memcpy(&value, bytes, dlc_dtype_bytes(dtype));
        switch (dtype) {
        case DLC_UINT8:
                text_u64(text, value.u8);
                break;
        case DLC_BOOL:
                text_string(text, value.u8 ? "true" : "false");
                break;
        case DLC_UINT16:
                text_u64(text, value.u16);
                break;
        case DLC_UINT32:
                text_u64(text, value.u32);
                break;
        case DLC_UINT64:
                text_u64(text, value.u64);
                break;
        case DLC_INT8:
                text_i64(text, value.i8);
                break;
        case DLC_INT16:
                text_i64(text, value.i16);
                break;
        case DLC_INT32:
                text_i64(text, value.i32);
                break;
        case DLC_INT64:
                text_i64(text, value.i64);
                break;
        case DLC_FLOAT16:
                text_double(text, from_float16(value.u16));
                break;
        case DLC_BFLOAT16:
                text_double(text, sample_from_bfloat16(value.u16));
                break;
        case DLC_FLOAT32:
                text_double(text, (double)value.f32);
                break;
        case DLC_FLOAT64:
                text_double(text, value.f64);
                break;
        default:
                text_string(text, "null");
        }
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

/* Prints a sample's shape: the tensor's without the batch dimension. In a ragged tensor the first one may be the
 * sample's own, and what was padded is so. */
static void sample_print_shape(struct text *text, const struct dlc_tensor *tensor, uint32_t idx_sample) {
        struct texts texts;
        int64_t first;

        text_string(text, "[");
        if (sample_texts(tensor, idx_sample, &texts)) {
                text_u64(text, texts.n);
                text_string(text, "]");
                return;
        }
        for (uint32_t i = 1; i < tensor->n_dims; i++) {
                if (i > 1)
                        text_string(text, ",");
                if (tensor->shape[i] < 0 || tensor->is_whole) /* packed: a piece of a row */
                        text_u64(text, tensor->places[idx_sample].n_bytes / (uint64_t)tensor->strides[i]);
                else
                        text_i64(text, real_elements(tensor, idx_sample, i, &first));
        }
        text_string(text, "]");
}

static bool is_scalar(const struct dlc_tensor *tensor) {
        return tensor->n_dims == 1;
}

const uint8_t *sample_bytes(const struct dlc_tensor *tensor, uint32_t idx_sample) {
        const uint8_t *data = tensor->data;

        return tensor->places ? data + tensor->places[idx_sample].offset
                              : data + (int64_t)idx_sample * tensor->strides[0];
}

/* TEXT_SHOWN characters. */
static void print_beginning(struct text *text, const char *bytes, uint64_t n_bytes) {
        uint64_t n = 0;
        char shown[4 * TEXT_SHOWN + 1];
        uint32_t point;

        for (unsigned i = 0; i < TEXT_SHOWN && n < n_bytes; i++) {
                size_t n_point = (uint8_t)bytes[n] < 0x80 ? 1 : utf8_decode(bytes + n, n_bytes - n, &point);

                if (n_point == 0)
                        break; /* the daemon has checked it; a client may write to its slot */
                n += n_point;
        }
        memcpy(shown, bytes, n);
        shown[n] = '\0';
        text_json_string(text, shown);
}

void sample_print_beginning(struct text *text, const struct dlc_tensor *tensor, uint32_t idx_sample) {
        print_beginning(text, (const char *)sample_bytes(tensor, idx_sample), tensor->places[idx_sample].n_bytes);
}

void sample_print_texts(struct text *text, const struct texts *texts, bool json) {
        text_string(text, "[");
        for (uint64_t i = 0; i < texts->n && i < TEXTS_SHOWN; i++) {
                uint64_t n_bytes;
                const uint8_t *bytes = texts_at(texts, i, &n_bytes);

                text_string(text, i == 0 ? "" : json ? "," : ", ");
                print_beginning(text, (const char *)bytes, n_bytes);
        }
        text_string(text, !json && texts->n > TEXTS_SHOWN ? ", ...]" : "]");
}

static void print_absent(const struct dlc_tensor *tensor, bool json, struct text *text) {
        text_string(text, json ? "" : "  ");
        if (json)
                text_json_string(text, tensor->name);
        else
                text_string(text, tensor->name);
        text_string(text, json ? ":null" : " absent");
}

static bool print_field(struct sample_printer *printer, const struct dlc_tensor *tensor, uint32_t idx_sample,
                        struct text *text) {
        bool json = printer->format == OUTPUT_JSON;
        uint8_t hash[SAMPLE_HASH_BYTES];
        struct texts texts;

        if ((tensor->places && tensor->places[idx_sample].offset == DLC_ABSENT) ||
            (tensor->extents && tensor->extents[idx_sample].n[0] == DLC_ABSENT)) {
                print_absent(tensor, json, text);
                return true;
        }
        if (json) {
                text_json_string(text, tensor->name);
                text_string(text, ":{\"dtype\":\"");
                text_string(text, dlc_dtype_name(tensor->dtype));
                text_string(text, "\",\"shape\":");
                sample_print_shape(text, tensor, idx_sample);
        } else {
                text_string(text, "  ");
                text_string(text, tensor->name);
                text_string(text, " ");
                text_string(text, dlc_dtype_name(tensor->dtype));
                if (!is_scalar(tensor))
                        sample_print_shape(text, tensor, idx_sample);
        }
        if (is_scalar(tensor)) {
                text_string(text, json ? ",\"value\":" : " ");
                sample_print_value(text, tensor->dtype, sample_bytes(tensor, idx_sample));
        } else {
                if (!sample_hash(printer, tensor, idx_sample, hash))
                        return false;
                text_string(text, json ? ",\"sha256\":\"" : " sha256 ");
                print_hash(text, hash);
                text_string(text, json ? "\"" : "");
                if (tensor->dtype == DLC_TEXT) {
                        text_string(text, json ? ",\"text\":" : " ");
                        sample_print_beginning(text, tensor, idx_sample);
                } else if (sample_texts(tensor, idx_sample, &texts)) {
                        text_string(text, json ? ",\"texts\":" : " ");
                        sample_print_texts(text, &texts, json);
                }
        }
        text_string(text, json ? "}" : "");
        return true;
}

static void sample_print_place(struct sample_printer *printer, const struct dlc_batch *batch, uint32_t idx_sample,
                               struct text *text) {
        bool json = printer->format == OUTPUT_JSON;

        text_string(text, json ? "{\"epoch\":" : "epoch ");
        text_u64(text, batch->epoch);
        text_string(text, json ? ",\"step\":" : " step ");
        text_u64(text, batch->step);
        text_string(text, json ? ",\"index\":" : " index ");
        text_i64(text, batch->indices[idx_sample]);
        if (batch->is_replay)
                text_string(text, json ? ",\"replay\":true" : " replay");
}

static void print_substitute(struct sample_printer *printer, int64_t substitute, const char *error, struct text *text) {
        bool json = printer->format == OUTPUT_JSON;

        text_string(text, json ? ",\"substitute\":" : "  substitute ");
        text_i64(text, substitute);
        text_string(text, json ? ",\"error\":" : " error ");
        text_json_string(text, error ? error : ""); /* quoted in text too: it may hold anything */
}

/* In JSON, every line is a sample that was received, so skipped samples are not printed. */
static void print_skipped(const struct dlc_batch *batch, struct text *text) {
        text_string(text, "epoch ");
        text_u64(text, batch->epoch);
        text_string(text, " step ");
        text_u64(text, batch->step);
        text_string(text, " without ");
        text_u64(text, batch->n_skipped);
        text_string(text, batch->n_skipped == 1 ? " damaged sample\n" : " damaged samples\n");
}

int sample_print_batch(struct sample_printer *printer, struct dlc_loader *loader, const struct dlc_batch *batch,
                       struct text *text) {
        bool json = printer->format == OUTPUT_JSON;

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                sample_print_place(printer, batch, i, text);
                text_string(text, json ? ",\"fields\":{" : "");
                for (uint32_t k = 0, n_printed = 0; k < batch->n_tensors; k++) {
                        if (batch->tensors[k].is_whole && !batch->tensors[k].places)
                                continue; /* of no sample */
                        if (json && n_printed++ > 0)
                                text_string(text, ",");
                        if (!print_field(printer, &batch->tensors[k], i, text))
                                return -EIO;
                }
                text_string(text, json ? "}" : "");
                if (batch->substitutes && batch->substitutes[i] >= 0)
                        print_substitute(printer, batch->substitutes[i], dlc_sample_error(loader, batch, i), text);
                text_string(text, json ? "}\n" : "\n");
        }
        if (!json && batch->n_skipped > 0)
                print_skipped(batch, text);
        return 0;
}
