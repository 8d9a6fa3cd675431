/* staging/prepare/jpeg_file.h: a JPEG that libjpeg writes to memory which grows. Private to this floor. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include "daemon/staging/prepare/prepare_block.h"

#define JPEG_FILE_FIRST_BYTES (64u << 10) /* of its memory: most pictures fit, the others double it */

struct jpeg_file {
        struct jpeg_destination_mgr manager; /* jpeg->dest points to it; first, for libjpeg hands out nothing else */
        struct block block;
        size_t n_bytes;    /* set when libjpeg has finished it */
        size_t most_bytes; /* it may not become longer, but for JPEG_FILE_FIRST_BYTES */

        /* There is no room for more than n_bytes: -ENOMEM, or -EFBIG because of most_bytes. Does not return. */
        void (*refuse)(j_compress_ptr jpeg, int error, size_t n_bytes);
};

void jpeg_file_init(struct jpeg_file *file, size_t most_bytes,
                    void (*refuse)(j_compress_ptr jpeg, int error, size_t n_bytes));

/* While it is written: how long it is so far. */
size_t jpeg_file_written(const struct jpeg_file *file);

/* Hands it over, to be freed with block_free(). */
void jpeg_file_take(struct jpeg_file *file, struct block *ret_block, size_t *ret_n_bytes);

/* Frees its memory; it can be written again. */
void jpeg_file_forget(struct jpeg_file *file);
