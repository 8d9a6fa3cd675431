#include "daemon/staging/prepare/transcoder.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>
#include <xxhash.h>

#include "daemon/staging/prepare/jpeg_file.h"
#include "daemon/staging/prepare/prepare_row_index.h"
#include "proto/jpeg/jpeg_rows.h"

#define SCANS_MAX   64          /* of a progressive JPEG, as in maker.c */
#define SPARE_BYTES (64u << 10) /* that a file may become longer: tables and offsets of a tiny one */
#define APP(n)      (JPEG_APP0 + (n))
#define SEGMENT_MAX 0xffffu

/* A segment that stays: its marker and how its content begins. */
static const struct kept {
        int marker;
        const char *begins;
        size_t n_begins;
} KEPT[] = {
        { APP(1), "Exif\0", 6 },
        { APP(2), "ICC_PROFILE", 12 },
        { APP(14), "Adobe", 5 },
};

#define N_KEPT (sizeof(KEPT) / sizeof(KEPT[0]))

struct transcoder {
        struct jpeg_decompress_struct source; /* the picture; then what was made of it, read back */
        struct jpeg_compress_struct target;
        struct jpeg_error_mgr errors;
        struct jpeg_progress_mgr progress;
        XXH3_state_t *digest;
        bool is_open;

        struct jpeg_file file;
        size_t segment_at; /* its APP15 */

        bool (*is_cancelled)(void *userdata);
        void *userdata;
        jmp_buf give_up; /* where transcoder_refuse() goes; set by each entry point */
        int error;       /* that goes with the message */
        char message[JMSG_LENGTH_MAX];
};

/* ---- callbacks of the library -------------------------------------------------------------------------------- */

static _Noreturn __attribute__((format(printf, 3, 4))) void transcoder_refuse(struct transcoder *transcoder, int error,
                                                                              const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(transcoder->message, sizeof(transcoder->message), format, arguments);
        va_end(arguments);
        transcoder->error = error;
        longjmp(transcoder->give_up, 1);
}

static void transcoder_on_error(j_common_ptr jpeg) {
        char message[JMSG_LENGTH_MAX];

        jpeg->err->format_message(jpeg, message);
        transcoder_refuse(jpeg->client_data, jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : TRANSCODER_CANNOT,
                          "%s", message);
}

/* Warnings: what comes of it depends on the decoder. */
static void transcoder_on_message(j_common_ptr jpeg, int level) {
        if (level < 0)
                transcoder_on_error(jpeg);
}

static void transcoder_on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

/* Between rows of MCUs, while reading and while writing. */
static void transcoder_on_progress(j_common_ptr jpeg) {
        struct transcoder *transcoder = jpeg->client_data;

        if (jpeg->is_decompressor && transcoder->source.input_scan_number > SCANS_MAX)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "more than %d scans", SCANS_MAX);
        if (transcoder->is_cancelled(transcoder->userdata))
                transcoder_refuse(transcoder, -ECANCELED, "cancelled");
}

static void transcoder_on_no_room(j_compress_ptr jpeg, int error, size_t n_bytes) {
        if (error == -ENOMEM)
                transcoder_refuse(jpeg->client_data, error, "no memory for a file of more than %zu bytes", n_bytes);
        transcoder_refuse(jpeg->client_data, TRANSCODER_CANNOT, "would become larger than %zu bytes", n_bytes);
}

/* ---- state --------------------------------------------------------------------------------------------------- */

void transcoder_forget(struct transcoder *transcoder) {
        transcoder->is_open = false;
        jpeg_destroy_decompress(&transcoder->source); /* both take a zeroed and a destroyed one */
        jpeg_destroy_compress(&transcoder->target);
        jpeg_file_forget(&transcoder->file);
}

void transcoder_free(struct transcoder *transcoder) {
        if (!transcoder)
                return;
        transcoder_forget(transcoder);
        XXH3_freeState(transcoder->digest);
        free(transcoder);
}

int transcoder_new(struct transcoder **ret_transcoder) {
        struct transcoder *transcoder = calloc(1, sizeof(*transcoder));

        if (!transcoder)
                return -ENOMEM;
        transcoder->digest = XXH3_createState();
        if (!transcoder->digest) {
                transcoder_free(transcoder);
                return -ENOMEM;
        }
        transcoder->source.err = transcoder->target.err = jpeg_std_error(&transcoder->errors);
        transcoder->errors.error_exit = transcoder_on_error;
        transcoder->errors.emit_message = transcoder_on_message;
        transcoder->errors.output_message = transcoder_on_output;
        transcoder->source.client_data = transcoder->target.client_data = transcoder;
        transcoder->progress.progress_monitor = transcoder_on_progress;
        *ret_transcoder = transcoder;
        return 0;
}

static int transcoder_fail(struct transcoder *transcoder, struct why *why) {
        transcoder_forget(transcoder);
        return why_set(why, transcoder->error, "cannot be transcoded: %s", transcoder->message);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static void transcoder_open_source(struct transcoder *transcoder, const uint8_t *bytes, size_t n_bytes) {
        struct jpeg_decompress_struct *source = &transcoder->source;

        jpeg_destroy_decompress(source);
        jpeg_create_decompress(source); /* keeps err and client_data */
        source->progress = &transcoder->progress;
        jpeg_mem_src(source, bytes, n_bytes); /* warns where the bytes end too early */
        for (size_t i = 0; i < N_KEPT; i++)
                jpeg_save_markers(source, KEPT[i].marker, SEGMENT_MAX);
        jpeg_read_header(source, TRUE);
}

static bool has_usual_sampling(const struct jpeg_decompress_struct *source) {
        const jpeg_component_info *components = source->comp_info;

        for (int i = 1; i < source->num_components; i++)
                if (components[i].h_samp_factor != 1 || components[i].v_samp_factor != 1)
                        return false;
        return source->num_components == 1 || (components[0].h_samp_factor <= 2 && components[0].v_samp_factor <= 2);
}

static void transcoder_check_header(struct transcoder *transcoder) {
        const struct jpeg_decompress_struct *source = &transcoder->source;

        if (source->data_precision != 8)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "%d bits a sample; 8 are taken",
                                  source->data_precision);
        if (source->arith_code)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "arithmetic coding");
        if (source->jpeg_color_space != JCS_GRAYSCALE && source->jpeg_color_space != JCS_YCbCr)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "%d components that are neither grey nor YCbCr",
                                  source->num_components);
        if (!has_usual_sampling(source))
                transcoder_refuse(transcoder, TRANSCODER_CANNOT,
                                  "unusual sampling factors; 4:4:4, 4:2:2, 4:2:0 and 4:4:0 are taken");
}

static uint64_t transcoder_coefficient_bytes(const struct jpeg_decompress_struct *source) {
        uint64_t n_bytes = 0;

        for (int i = 0; i < source->num_components; i++) {
                const jpeg_component_info *component = &source->comp_info[i];

                n_bytes += (uint64_t)(component->width_in_blocks + (JDIMENSION)component->h_samp_factor) *
                           (component->height_in_blocks + (JDIMENSION)component->v_samp_factor) * sizeof(JBLOCK);
        }
        return n_bytes;
}

static uint64_t saved_bytes(const struct jpeg_decompress_struct *source) {
        uint64_t n_bytes = 0;

        for (jpeg_saved_marker_ptr saved = source->marker_list; saved; saved = saved->next)
                n_bytes += saved->data_length;
        return n_bytes;
}

int transcoder_open(struct transcoder *transcoder, const uint8_t *bytes, size_t n_bytes, uint64_t *ret_need,
                    struct why *why) {
        transcoder_forget(transcoder);
        if (setjmp(transcoder->give_up))
                return transcoder_fail(transcoder, why);

        if (n_bytes < 3 || memcmp(bytes, "\xff\xd8\xff", 3) != 0)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "not a JPEG");
        transcoder_open_source(transcoder, bytes, n_bytes);
        transcoder_check_header(transcoder);
        jpeg_file_init(&transcoder->file, n_bytes + n_bytes / 2 + SPARE_BYTES, transcoder_on_no_room);
        *ret_need = transcoder_coefficient_bytes(&transcoder->source) + saved_bytes(&transcoder->source) +
                    transcoder->file.most_bytes;
        transcoder->is_open = true;
        return 0;
}

/* Where coefficients are missing, libjpeg estimates them from the blocks around; in the new file none would be missing.
 */
static void check_coefficients(struct transcoder *transcoder) {
        const struct jpeg_decompress_struct *source = &transcoder->source;

        for (int i = 0; i < source->num_components; i++) {
                if (!source->comp_info[i].quant_table)
                        transcoder_refuse(transcoder, TRANSCODER_CANNOT, "component %d is in no scan", i + 1);
                for (int k = 0; source->coef_bits && k < DCTSIZE2; k++)
                        if (source->coef_bits[i][k] != 0)
                                transcoder_refuse(transcoder, TRANSCODER_CANNOT,
                                                  "a progressive file that lacks coefficients");
        }
}

/* Of all that pixels depend on. Blocks that only fill up MCUs do not count: nobody looks at them. */
static XXH128_hash_t transcoder_sum_up(struct transcoder *transcoder, jvirt_barray_ptr *coefficients) {
        struct jpeg_decompress_struct *source = &transcoder->source;
        uint32_t frame[] = { source->image_width, source->image_height, (uint32_t)source->num_components,
                             (uint32_t)source->jpeg_color_space };

        XXH3_128bits_reset(transcoder->digest);
        XXH3_128bits_update(transcoder->digest, frame, sizeof(frame));
        for (int i = 0; i < source->num_components; i++) {
                const jpeg_component_info *component = &source->comp_info[i];
                size_t n_row = component->width_in_blocks * sizeof(JBLOCK);
                uint32_t blocks[] = { component->width_in_blocks, component->height_in_blocks };

                XXH3_128bits_update(transcoder->digest, blocks, sizeof(blocks));
                XXH3_128bits_update(transcoder->digest, component->quant_table->quantval,
                                    sizeof(component->quant_table->quantval));
                for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
                        JBLOCKARRAY row = source->mem->access_virt_barray((j_common_ptr)source, coefficients[i], y, 1,
                                                                          FALSE);

                        XXH3_128bits_update(transcoder->digest, row[0], n_row);
                }
        }
        return XXH3_128bits_digest(transcoder->digest);
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static const struct kept *transcoder_kind_of(const struct jpeg_marker_struct *saved) {
        for (size_t i = 0; i < N_KEPT; i++)
                if (saved->marker == KEPT[i].marker && saved->data_length >= KEPT[i].n_begins &&
                    memcmp(saved->data, KEPT[i].begins, KEPT[i].n_begins) == 0)
                        return &KEPT[i];
        return NULL;
}

/* Of EXIF the first one counts. */
static void write_kept(struct transcoder *transcoder) {
        bool has_exif = false;

        for (jpeg_saved_marker_ptr saved = transcoder->source.marker_list; saved; saved = saved->next) {
                const struct kept *kept = transcoder_kind_of(saved);

                if (!kept || (kept == &KEPT[0] && has_exif))
                        continue;
                has_exif = has_exif || kept == &KEPT[0];
                jpeg_write_marker(&transcoder->target, saved->marker, saved->data, saved->data_length);
        }
}

/* The place of the offsets, which are known at the end. */
static void reserve_index(struct transcoder *transcoder, uint32_t n_rows) {
        uint32_t n_bytes = DLP_JPEG_ROWS_BYTES(n_rows);

        transcoder->segment_at = jpeg_file_written(&transcoder->file);
        jpeg_write_m_header(&transcoder->target, APP(15), n_bytes);
        for (uint32_t i = 0; i < n_bytes; i++)
                jpeg_write_m_byte(&transcoder->target, 0);
}

static void write_target(struct transcoder *transcoder, jvirt_barray_ptr *coefficients) {
        struct jpeg_compress_struct *target = &transcoder->target;

        jpeg_create_compress(target); /* keeps err and client_data */
        target->dest = &transcoder->file.manager;
        target->progress = &transcoder->progress;
        jpeg_copy_critical_parameters(&transcoder->source, target);
        if (target->num_components == 1) /* a single component has blocks for MCUs, whatever its factors are */
                target->comp_info[0].h_samp_factor = target->comp_info[0].v_samp_factor = 1;
        target->optimize_coding = TRUE;
        target->restart_in_rows = 1;
        jpeg_write_coefficients(target, coefficients);
        reserve_index(transcoder, target->total_iMCU_rows);
        write_kept(transcoder);
        jpeg_finish_compress(target);
        if (row_index_fill(transcoder->file.block.bytes, transcoder->file.n_bytes, transcoder->segment_at,
                           target->total_iMCU_rows) < 0)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "what was written has no marker after each row");
        jpeg_destroy_compress(target);
}

/* Who decodes in rows takes it: it reads with the same function. */
static void transcoder_check_rows(struct transcoder *transcoder) {
        struct dlp_jpeg jpeg;
        struct why why;

        if (dlp_jpeg_read(transcoder->file.block.bytes, transcoder->file.n_bytes, &jpeg, &why) < 0)
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "%s", why.text);
}

int transcoder_make(struct transcoder *transcoder, bool (*is_cancelled)(void *userdata), void *userdata,
                    struct block *ret_file, size_t *ret_n_bytes, struct why *why) {
        XXH128_hash_t before, after;
        jvirt_barray_ptr *coefficients;

        assert(transcoder->is_open);
        transcoder->is_cancelled = is_cancelled;
        transcoder->userdata = userdata;
        if (setjmp(transcoder->give_up))
                return transcoder_fail(transcoder, why);

        coefficients = jpeg_read_coefficients(&transcoder->source);
        check_coefficients(transcoder);
        before = transcoder_sum_up(transcoder, coefficients);
        write_target(transcoder, coefficients);

        transcoder_open_source(transcoder, transcoder->file.block.bytes, transcoder->file.n_bytes);
        after = transcoder_sum_up(transcoder, jpeg_read_coefficients(&transcoder->source));
        if (!XXH128_isEqual(before, after))
                transcoder_refuse(transcoder, TRANSCODER_CANNOT, "what was written is not what was read");

        transcoder_check_rows(transcoder);
        jpeg_file_take(&transcoder->file, ret_file, ret_n_bytes);
        transcoder_forget(transcoder);
        return 0;
}
