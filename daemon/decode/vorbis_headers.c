#include "daemon/decode/vorbis_headers.h"

#include <errno.h>
#include <ogg/ogg.h>
#include <stdbool.h>
#include <string.h>
#include <vorbis/codec.h>

#include "daemon/decode/vorbis_codebooks.h"

#define N_HEADERS   3
#define PIECE_BYTES 4096u

struct headers {
        ogg_sync_state sync;
        ogg_stream_state stream;
        vorbis_info info;
        vorbis_comment comment;
        int n_read;
        bool has_stream, is_other; /* a stream of another codec */
};

static bool is_vorbis(const ogg_packet *packet) {
        return packet->bytes >= 7 && memcmp(packet->packet, "\x01vorbis", 7) == 0;
}

/* The packets of a page. Returns false if one of them is not the header that is due. */
static bool vorbis_headers_take_page(struct headers *headers, ogg_page *page) {
        ogg_packet packet;
        int r;

        if (!headers->has_stream) {
                if (!ogg_page_bos(page) || ogg_stream_init(&headers->stream, ogg_page_serialno(page)) != 0)
                        return false;
                headers->has_stream = true;
        }
        ogg_stream_pagein(&headers->stream, page); /* fails for pages of other streams, which are left out */
        while (headers->n_read < N_HEADERS) {
                r = ogg_stream_packetout(&headers->stream, &packet);
                if (r <= 0)
                        return r == 0;
                if (headers->n_read == 0 && !is_vorbis(&packet)) {
                        headers->is_other = true;
                        return true;
                }
                if (headers->n_read == N_HEADERS - 1 && !vorbis_codebooks_fit(packet.packet, (size_t)packet.bytes))
                        return false;
                if (vorbis_synthesis_headerin(&headers->info, &headers->comment, &packet) < 0)
                        return false;
                headers->n_read++;
        }
        return true;
}

/* Returns the number of bytes given to libogg: 0 at the end, or -ENOMEM. */
static long vorbis_headers_feed(struct headers *headers, const uint8_t *bytes, size_t n_bytes) {
        long n = n_bytes < PIECE_BYTES ? (long)n_bytes : PIECE_BYTES;
        char *piece;

        if (n == 0)
                return 0;
        piece = ogg_sync_buffer(&headers->sync, n);
        if (!piece)
                return -ENOMEM;
        memcpy(piece, bytes, (size_t)n);
        ogg_sync_wrote(&headers->sync, n);
        return n;
}

static int read_headers(struct headers *headers, const uint8_t *bytes, size_t n_bytes, struct why *why) {
        ogg_page page;
        size_t at = 0;

        while (headers->n_read < N_HEADERS && !headers->is_other) {
                int r = ogg_sync_pageout(&headers->sync, &page);
                long n;

                if (r < 0 || (r > 0 && !vorbis_headers_take_page(headers, &page)))
                        return why_set(why, -EBADMSG,
                                       "is damaged: its Vorbis headers, or they ask for too much memory");
                if (r > 0)
                        continue;
                n = vorbis_headers_feed(headers, bytes + at, n_bytes - at);
                if (n < 0)
                        return why_errno(why, (int)n, "the headers of a sound");
                if (n == 0)
                        return why_set(why, -EBADMSG, "is cut short within its headers");
                at += (size_t)n;
        }
        return 0;
}

int vorbis_headers_check(const uint8_t *bytes, size_t n_bytes, struct why *why) {
        struct headers headers = { .n_read = 0 };
        int r;

        ogg_sync_init(&headers.sync);
        vorbis_info_init(&headers.info);
        vorbis_comment_init(&headers.comment);
        r = read_headers(&headers, bytes, n_bytes, why);
        if (headers.has_stream)
                ogg_stream_clear(&headers.stream);
        vorbis_comment_clear(&headers.comment);
        vorbis_info_clear(&headers.info);
        ogg_sync_clear(&headers.sync);
        return r;
}
