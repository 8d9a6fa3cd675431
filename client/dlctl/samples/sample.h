/* dlctl/samples/sample.h: a sample as a line. */
#pragma once

#include "client/dlctl/dlctl_text.h"
#include "client/dlctl/output.h"
#include "client/include/dlclient.h"
#include "proto/base/texts.h"

/* What is needed for hashing, kept from sample to sample. */
struct sample_printer;

/* Returns 0 or -ENOMEM. */
int sample_printer_new(enum output_format format, struct sample_printer **ret_printer);
void sample_printer_free(struct sample_printer *printer);

#define SAMPLE_HASH_BYTES 32u

/* SHA-256 of a sample's field: of its bytes in C order without padding; of a list of texts, of the texts with a NUL
 * after each. ret_hash has SAMPLE_HASH_BYTES. False: libcrypto is broken. */
bool sample_hash(struct sample_printer *printer, const struct dlc_tensor *tensor, uint32_t idx_sample,
                 uint8_t *ret_hash);

/* The first byte of a sample in a batch. */
const uint8_t *sample_bytes(const struct dlc_tensor *tensor, uint32_t idx_sample);

/* Prints a number. */
void sample_print_value(struct text *text, uint32_t dtype, const void *bytes);

/* Prints the beginning of a text, or of bytes as far as they are text, in quotes. */
void sample_print_beginning(struct text *text, const struct dlc_tensor *tensor, uint32_t idx_sample);

/* Is it a list of texts? Opens that of a sample, which is not absent. */
bool sample_texts(const struct dlc_tensor *tensor, uint32_t idx_sample, struct texts *ret_texts);

/* Prints the beginnings of the first texts of a list, in brackets; `json`: as a JSON array. */
void sample_print_texts(struct text *text, const struct texts *texts, bool json);

/* Prints all samples of a batch, one line each. Returns 0, or -EIO if hashing fails (a broken libcrypto). */
int sample_print_batch(struct sample_printer *printer, struct dlc_loader *loader, const struct dlc_batch *batch,
                       struct text *text);
