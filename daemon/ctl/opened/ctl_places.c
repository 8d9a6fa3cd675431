/* Where the samples of a dataset lie, a page at a time, so that a client can count what an order of them fetches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/handlers.h"
#include "daemon/ctl/opened/ctl_opened.h"
#include "daemon/data/orders/source_blocks.h"
#include "proto/fetching.h"
#include "proto/order/epoch_plan.h"

#define PAGE_BYTES   (DLP_PACKET_MAX - 1024u) /* the rest of the reply takes a few dozen */
#define PAGE_SAMPLES 8192u                    /* some milliseconds of the main thread */
#define PARTS_MAX    256u                     /* of a sample that are told */
#define PIECES_MAX   16u                      /* of a gathered field, as they are fetched ahead */
#define VARINT_BYTES 10u
#define PAGE_NUMBERS (PAGE_BYTES + 1u + 3u * PARTS_MAX) /* one takes a byte at least */

struct part {
        uint64_t file, offset, n_bytes;
};

/* What lies closer together than a chunk is long touches the same chunks as one part. */
static void add_part(struct part *parts, uint32_t *n, const struct extent *extent, uint64_t base) {
        struct part *last = *n > 0 ? &parts[*n - 1] : NULL;
        uint64_t end = extent->offset + extent->length;
        uint64_t file = base + (extent->shard ? extent->idx_shard : extent->file);

        if (extent->length == 0 || (extent->flags & (EXTENT_ABSENT | EXTENT_NOT_REGULAR)))
                return;
        if (last && last->file == file && extent->offset >= last->offset &&
            extent->offset - last->offset < last->n_bytes + DLP_CHUNK_BYTES) {
                if (end - last->offset > last->n_bytes)
                        last->n_bytes = end - last->offset;
                return;
        }
        if (*n < PARTS_MAX)
                parts[(*n)++] = (struct part){ file, extent->offset, extent->length };
}

/* Each part of a joined dataset numbers its own files. */
static uint64_t files_before(const struct source *source, uint64_t sample) {
        uint64_t n = 0;

        for (uint32_t k = source->n_parts > 0 ? source_part_of(source, sample) : 0; k > 0; k--) {
                const struct source *part = source->parts[k - 1].source;

                n += part->n_shards > 0 ? part->n_shards : part->n_samples;
        }
        return n;
}

static uint32_t find_parts(const struct source *source, uint64_t sample, struct part parts[PARTS_MAX]) {
        uint64_t base = files_before(source, sample);
        uint32_t n = 0;

        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                struct source_piece piece = { 0 };
                struct extent extent;

                if (!source->schema.fields[i].is_stored)
                        continue;
                source_locate(source, sample, i, &extent);
                if (!source->schema.fields[i].is_gathered) {
                        add_part(parts, &n, &extent, base);
                        continue;
                }
                for (uint32_t k = 0; k < PIECES_MAX && source_next_piece(source, sample, i, &piece); k++) {
                        extent.offset = piece.offset;
                        extent.length = piece.n_bytes;
                        add_part(parts, &n, &extent, base);
                }
        }
        return n;
}

/* ---- a page ------------------------------------------------------------------------------------------------------ */

struct page {
        int64_t numbers[PAGE_NUMBERS];
        size_t n, n_bytes;
};

static void add_number(struct page *page, uint64_t value) {
        int64_t number = (int64_t)value;
        uint64_t zigzag = (value << 1) ^ (uint64_t)(number >> 63);

        page->numbers[page->n++] = number;
        do
                page->n_bytes++;
        while (zigzag >>= 7);
}

static void fill_parts(struct page *page, const struct source *source, uint64_t first, Dlp__PlacesReply *reply) {
        struct part parts[PARTS_MAX], last = { 0 };
        uint64_t n_samples = source->n_samples, sample = first;

        page->n = page->n_bytes = 0;
        for (; sample < n_samples && sample - first < PAGE_SAMPLES; sample++) {
                uint32_t n = find_parts(source, sample, parts);

                if (page->n_bytes + (1 + 3u * n) * VARINT_BYTES > PAGE_BYTES)
                        break;
                add_number(page, n);
                for (uint32_t i = 0; i < n; i++) {
                        add_number(page, parts[i].file - last.file);
                        add_number(page, parts[i].offset - (last.offset + last.n_bytes));
                        add_number(page, parts[i].n_bytes);
                        last = parts[i];
                }
        }
        reply->parts = page->numbers;
        reply->n_parts = page->n;
        reply->next = sample < n_samples ? sample : 0;
}

static int fill_ends(const struct source *source, struct budget *budget, uint64_t first, uint64_t *ends,
                     Dlp__PlacesReply *reply, struct why *why) {
        struct dlp_blocks blocks;
        int r = source_blocks_find(source, budget, &blocks, why);

        if (r < 0)
                return r;
        for (; first < blocks.n && reply->n_ends < DLP_SAMPLES_ASKED_MAX; first++)
                ends[reply->n_ends++] = blocks.ends[first];
        reply->ends = ends;
        reply->next = first < blocks.n ? first : 0;
        free((void *)(uintptr_t)blocks.ends);
        budget_release(budget, blocks.n * sizeof(*blocks.ends));
        return 0;
}

/* ---- which dataset ----------------------------------------------------------------------------------------------- */

static int find_source(struct session *session, const char *name, const struct source **ret_source, struct why *why) {
        struct catalog_entry *entry;
        const struct source *source;
        int r = opened_find(session, name, &entry, why);

        if (r < 0)
                return r;
        source = dataset_source(entry->open->dataset);
        if (source->growth || source->n_samples == DLP_UNKNOWN)
                return why_set(why, -EINVAL, "%s: is still being written, so where its samples lie is not known",
                               entry->name);
        *ret_source = source;
        return 0;
}

void handle_places(struct session *session, const Dlp__Request *request) {
        static struct page page; /* main thread only, as is the next */
        static uint64_t ends[DLP_SAMPLES_ASKED_MAX];
        const Dlp__PlacesRequest *asked = request->places;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__PlacesReply places = DLP__PLACES_REPLY__INIT;
        const struct source *source = NULL;
        struct why why;
        int r = find_source(session, asked->dataset, &source, &why);

        if (r == 0 && source->n_samples > 0 && asked->blocks)
                r = fill_ends(source, session->server->options.budget, asked->first, ends, &places, &why);
        else if (r == 0 && !asked->blocks)
                fill_parts(&page, source, asked->first, &places);
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        places.n_samples = source->n_samples;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_PLACES;
        reply.places = &places;
        session_reply(session, &reply, NULL, 0);
}
