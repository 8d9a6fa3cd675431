#include "daemon/staging/prepare/jpeg_file.h"

#include <errno.h>

/* Room for more; `n_bytes` are there. */
static void jpeg_file_make_room(j_compress_ptr jpeg, size_t n_bytes) {
        struct jpeg_file *file = (struct jpeg_file *)jpeg->dest;
        size_t n = n_bytes < file->most_bytes / 2 ? 2 * n_bytes : file->most_bytes;

        if (n_bytes > 0 && n_bytes >= file->most_bytes)
                file->refuse(jpeg, -EFBIG, n_bytes);
        if (n_bytes == 0 || n < JPEG_FILE_FIRST_BYTES)
                n = JPEG_FILE_FIRST_BYTES;
        if (block_grow(&file->block, n) < 0)
                file->refuse(jpeg, -ENOMEM, n_bytes);
        file->manager.next_output_byte = file->block.bytes + n_bytes;
        file->manager.free_in_buffer = file->block.capacity - n_bytes;
}

static void jpeg_file_on_begin(j_compress_ptr jpeg) {
        jpeg_file_make_room(jpeg, 0);
}

/* The library calls it when all of the room is used, whatever the manager says. */
static boolean on_full(j_compress_ptr jpeg) {
        struct jpeg_file *file = (struct jpeg_file *)jpeg->dest;

        jpeg_file_make_room(jpeg, file->block.capacity);
        return TRUE;
}

static void jpeg_file_on_end(j_compress_ptr jpeg) {
        struct jpeg_file *file = (struct jpeg_file *)jpeg->dest;

        file->n_bytes = jpeg_file_written(file);
}

void jpeg_file_init(struct jpeg_file *file, size_t most_bytes,
                    void (*refuse)(j_compress_ptr jpeg, int error, size_t n_bytes)) {
        *file = (struct jpeg_file){
                .manager = { .init_destination = jpeg_file_on_begin,
                             .empty_output_buffer = on_full,
                             .term_destination = jpeg_file_on_end },
                .most_bytes = most_bytes,
                .refuse = refuse,
        };
}

size_t jpeg_file_written(const struct jpeg_file *file) {
        return file->block.capacity - file->manager.free_in_buffer;
}

void jpeg_file_take(struct jpeg_file *file, struct block *ret_block, size_t *ret_n_bytes) {
        block_shrink(&file->block, file->n_bytes);
        *ret_block = file->block;
        *ret_n_bytes = file->n_bytes;
        file->block = (struct block){};
}

void jpeg_file_forget(struct jpeg_file *file) {
        block_free(&file->block);
}
