#include "client/dlctl/forecast/places.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/dlctl/waiting.h"
#include "client/lib/orders/column_file.h"
#include "proto/base/cleanup.h"
#include "proto/fetching.h"

#define FILES_MAX (1u << 26)

/* What is being put together: chunks are numbered within their files at first. */
struct building {
        struct forecast_places *places;
        uint64_t n_samples, n_parts, n_room;
        uint32_t *files; /* of each part */
        uint64_t *sizes; /* of each file, as far as it is known */
        uint64_t n_files, n_files_room;
};

static int places_refuse_memory(void) {
        return fail(EXIT_REFUSED, "plan: out of memory");
}

static int building_begin(struct building *b, struct forecast_places *places, uint64_t n_samples) {
        *b = (struct building){ .places = places };
        if (n_samples > PLACES_SAMPLES_MAX)
                return fail(EXIT_REFUSED,
                            "plan: %" PRIu64 " samples; at most %u are computed: take a part of them (split)",
                            n_samples, PLACES_SAMPLES_MAX);
        places->n_samples = n_samples;
        places->starts = calloc(n_samples + 1, sizeof(*places->starts));
        return places->starts ? EXIT_DONE : places_refuse_memory();
}

static void building_fini(struct building *b) {
        free(b->files);
        free(b->sizes);
}

static bool know_file(struct building *b, uint64_t file, uint64_t size) {
        if (file >= b->n_files_room) {
                uint64_t n = file + 1 > 2 * b->n_files_room ? file + 1024 : 2 * b->n_files_room;
                uint64_t *sizes = realloc(b->sizes, n * sizeof(*sizes));

                if (!sizes)
                        return false;
                b->sizes = sizes;
                b->n_files_room = n;
        }
        for (; b->n_files <= file; b->n_files++)
                b->sizes[b->n_files] = 0;
        if (b->sizes[file] < size)
                b->sizes[file] = size;
        return true;
}

static bool places_grow(struct building *b) {
        uint64_t n = b->n_room > 0 ? 2 * b->n_room : b->places->n_samples + 64;
        struct forecast_part *parts = realloc(b->places->parts, n * sizeof(*parts));
        uint32_t *files;

        if (parts)
                b->places->parts = parts;
        files = parts ? realloc(b->files, n * sizeof(*files)) : NULL;
        if (!files)
                return false;
        b->files = files;
        b->n_room = n;
        return true;
}

/* Of the sample that is begun. */
static int places_add(struct building *b, uint64_t file, uint64_t offset, uint64_t n_bytes) {
        uint64_t first = offset / DLP_CHUNK_BYTES, last = (offset + n_bytes - 1) / DLP_CHUNK_BYTES;

        if (n_bytes == 0)
                return EXIT_DONE;
        if (file >= FILES_MAX || offset + n_bytes < offset || last >= UINT32_MAX)
                return fail(EXIT_REFUSED, "plan: there are %" PRIu64 " files or more; at most %u are computed", file,
                            FILES_MAX);
        if ((b->n_parts == b->n_room && !places_grow(b)) || !know_file(b, file, offset + n_bytes))
                return places_refuse_memory();
        b->files[b->n_parts] = (uint32_t)file;
        b->places->parts[b->n_parts++] = (struct forecast_part){ .chunk = (uint32_t)first,
                                                                 .n_chunks = (uint32_t)(last - first + 1),
                                                                 .n_bytes = n_bytes < UINT32_MAX ? (uint32_t)n_bytes
                                                                                                 : UINT32_MAX };
        return EXIT_DONE;
}

static void end_sample(struct building *b) {
        b->places->starts[++b->n_samples] = b->n_parts;
}

/* Chunks get their numbers among those of all files. */
static int number_chunks(struct building *b) {
        struct forecast_places *places = b->places;
        _cleanup_(freep) uint64_t *first = calloc(b->n_files + 1, sizeof(*first));

        if (!first)
                return places_refuse_memory();
        for (uint64_t i = 0; i < b->n_files; i++)
                first[i + 1] = first[i] + (b->sizes[i] + DLP_CHUNK_BYTES - 1) / DLP_CHUNK_BYTES;
        places->n_chunks = first[b->n_files];
        if (places->n_chunks >= UINT32_MAX)
                return fail(EXIT_REFUSED, "plan: %" PRIu64 " chunks of %u MiB; at most %u are computed",
                            places->n_chunks, DLP_CHUNK_BYTES >> 20, UINT32_MAX);
        places->chunk_bytes = calloc(places->n_chunks + 1, sizeof(*places->chunk_bytes));
        if (!places->chunk_bytes)
                return places_refuse_memory();
        for (uint64_t i = 0; i < b->n_files; i++)
                for (uint64_t k = first[i]; k < first[i + 1]; k++) {
                        uint64_t n_left = b->sizes[i] - (k - first[i]) * DLP_CHUNK_BYTES;

                        places->chunk_bytes[k] = n_left < DLP_CHUNK_BYTES ? (uint32_t)n_left : DLP_CHUNK_BYTES;
                        places->n_bytes += places->chunk_bytes[k];
                }
        for (uint64_t i = 0; i < b->n_parts; i++)
                places->parts[i].chunk += (uint32_t)first[b->files[i]];
        return EXIT_DONE;
}

void places_free(struct forecast_places *places) {
        free(places->starts);
        free(places->parts);
        free(places->chunk_bytes);
        *places = (struct forecast_places){ 0 };
}

/* ---- the daemon -------------------------------------------------------------------------------------------------- */

static int ask_page(struct control *control, const char *dataset, uint64_t first, bool blocks, Dlp__Reply **ret_reply) {
        Dlp__PlacesRequest places = DLP__PLACES_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        int r;

        places.dataset = (char *)(uintptr_t)dataset;
        places.first = first;
        places.blocks = blocks;
        request.body_case = DLP__REQUEST__BODY_PLACES;
        request.places = &places;
        r = control_ask(control, &request, DLP__REPLY__BODY_PLACES, ret_reply);
        if (r == EXIT_DONE && (*ret_reply)->places->next != 0 && (*ret_reply)->places->next <= first) {
                dlp__reply__free_unpacked(*ret_reply, NULL);
                return fail(EXIT_REFUSED, "plan: the daemon's pages do not end");
        }
        return r;
}

static int places_take(struct building *b, const Dlp__PlacesReply *reply) {
        uint64_t file = 0, end = 0;
        size_t i = 0;

        while (i < reply->n_parts && b->n_samples < b->places->n_samples) {
                uint64_t n = (uint64_t)reply->parts[i++];

                if (n > (reply->n_parts - i) / 3)
                        return fail(EXIT_REFUSED, "plan: the daemon's answer cannot be read");
                for (; n > 0; n--, i += 3) {
                        uint64_t offset = end + (uint64_t)reply->parts[i + 1];
                        int r;

                        file += (uint64_t)reply->parts[i];
                        end = offset + (uint64_t)reply->parts[i + 2];
                        r = places_add(b, file, offset, (uint64_t)reply->parts[i + 2]);
                        if (r != EXIT_DONE)
                                return r;
                }
                end_sample(b);
        }
        return EXIT_DONE;
}

static int take_all(struct building *b, struct control *control, const char *dataset, struct forecast_places *places) {
        struct dlp_progress progress = { .phase = "asking where the samples lie", .unit = "samples" };
        uint64_t first = 0;
        int r = EXIT_DONE;

        do {
                Dlp__Reply *reply;

                r = ask_page(control, dataset, first, false, &reply);
                if (r == EXIT_DONE && first == 0)
                        r = building_begin(b, places, reply->places->n_samples);
                if (r == EXIT_DONE)
                        r = places_take(b, reply->places);
                if (r != EXIT_DONE)
                        break;
                progress.total = places->n_samples;
                progress.done = b->n_samples;
                waiting_draw("", &progress);
                first = reply->places->next;
                dlp__reply__free_unpacked(reply, NULL);
        } while (first != 0);
        waiting_end();
        if (r == EXIT_DONE && b->n_samples < places->n_samples)
                r = fail(EXIT_REFUSED, "plan: the dataset has changed meanwhile; ask again");
        return r == EXIT_DONE ? number_chunks(b) : r;
}

int places_ask(struct control *control, const char *dataset, struct forecast_places *ret_places) {
        struct building b = { .places = ret_places };
        int r = take_all(&b, control, dataset, ret_places);

        building_fini(&b);
        return r;
}

int places_ask_blocks(struct control *control, const char *dataset, struct dlp_blocks *ret_blocks) {
        uint64_t *ends = NULL, n = 0, first = 0;
        int r;

        do {
                Dlp__Reply *reply;
                uint64_t *more;

                r = ask_page(control, dataset, first, true, &reply);
                if (r != EXIT_DONE)
                        break;
                more = realloc(ends, (n + reply->places->n_ends + 1) * sizeof(*ends));
                ends = more ? more : ends;
                for (size_t i = 0; more && i < reply->places->n_ends; i++)
                        ends[n++] = reply->places->ends[i];
                first = reply->places->next;
                dlp__reply__free_unpacked(reply, NULL);
                r = more ? EXIT_DONE : places_refuse_memory();
        } while (r == EXIT_DONE && first != 0);
        *ret_blocks = (struct dlp_blocks){ .ends = ends, .n = (uint32_t)n };
        return r;
}

/* ---- sizes of files ---------------------------------------------------------------------------------------------- */

/* Of n samples those whose share of all bytes ends in this file. */
static uint64_t samples_before(uint64_t n, uint64_t n_bytes, uint64_t n_all) {
        return (uint64_t)((double)n * ((double)n_bytes / (double)n_all) + 0.5);
}

static int places_spread(struct building *b, const uint64_t *sizes, uint64_t n_files, uint64_t n_all, uint64_t *ends) {
        uint64_t n_samples = b->places->n_samples, n_bytes = 0, n_before = 0;
        int r = EXIT_DONE;

        for (uint64_t f = 0; f < n_files && r == EXIT_DONE; f++) {
                uint64_t n, each;

                n_bytes += sizes[f];
                ends[f] = n_samples == n_files ? f + 1 : samples_before(n_samples, n_bytes, n_all);
                n = ends[f] - n_before;
                each = n > 0 ? sizes[f] / n : 0;
                if (!know_file(b, f, sizes[f]))
                        return places_refuse_memory();
                for (uint64_t i = 0; i < n && r == EXIT_DONE; i++) {
                        r = places_add(b, f, i * each, i + 1 < n ? each : sizes[f] - i * each);
                        end_sample(b);
                }
                n_before = ends[f];
        }
        return r;
}

static int read_sizes(const char *path, struct dlp_column *column, uint64_t **ret_sizes, uint64_t *ret_n_all) {
        _cleanup_(freep) void *values = NULL;
        struct why why = { "" };
        uint64_t *sizes, sum = 0;

        if (dli_column_file_read(path, column, &values, &why) < 0)
                return fail(EXIT_REFUSED, "files: %s", why.text);
        sizes = calloc(column->n_values + 1, sizeof(*sizes));
        if (!sizes)
                return places_refuse_memory();
        *ret_sizes = sizes;
        for (uint64_t i = 0; i < column->n_values; i++) {
                double size = dlp_column_real(column, i);

                if (!(size >= 0 && size < 1e15))
                        return fail(EXIT_REFUSED, "files: %s: %.10g is number %" PRIu64 "; bytes of a file are needed",
                                    path, size, i + 1);
                sizes[i] = (uint64_t)size;
                sum += sizes[i];
        }
        if (sum == 0)
                return fail(EXIT_REFUSED, "files: %s: there is no file with a byte", path);
        *ret_n_all = sum;
        return EXIT_DONE;
}

/* An order of blocks has none without a sample. */
static uint32_t leave_out_empty(uint64_t *ends, uint64_t n) {
        uint32_t n_kept = 0;

        for (uint64_t i = 0; i < n; i++)
                if (ends[i] > (n_kept > 0 ? ends[n_kept - 1] : 0))
                        ends[n_kept++] = ends[i];
        return n_kept;
}

int places_read(const char *path, uint64_t n_samples, struct forecast_places *ret_places,
                struct dlp_blocks *ret_blocks) {
        _cleanup_(freep) uint64_t *sizes = NULL;
        struct building b = { .places = ret_places };
        struct dlp_column column;
        uint64_t n_all = 0, *ends = NULL;
        int r = read_sizes(path, &column, &sizes, &n_all);

        if (r == EXIT_DONE)
                r = building_begin(&b, ret_places, n_samples > 0 ? n_samples : column.n_values);
        if (r == EXIT_DONE && !(ends = calloc(column.n_values + 1, sizeof(*ends))))
                r = places_refuse_memory();
        if (r == EXIT_DONE)
                r = places_spread(&b, sizes, column.n_values, n_all, ends);
        if (r == EXIT_DONE)
                r = number_chunks(&b);
        building_fini(&b);
        *ret_blocks = (struct dlp_blocks){ .ends = ends, .n = ends ? leave_out_empty(ends, column.n_values) : 0 };
        return r;
}
