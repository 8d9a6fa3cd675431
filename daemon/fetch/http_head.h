/* fetch/http_head.h: what an answer says before its body. Only what staging asks for is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_ERROR_BYTES 1024u /* of an error's body: an object store says there what is wrong */

struct http_head {
        int status;           /* 0: none (file:) */
        uint64_t n_bytes;     /* Content-Length; UINT64_MAX: it does not say */
        bool has_range;       /* there is a Content-Range that can be read */
        uint64_t range_first; /* of it */
        uint64_t range_last;
        uint64_t range_total; /* UINT64_MAX: '*' */
        bool has_ranges;      /* Accept-Ranges: bytes */
        bool is_html;
        bool is_encoded;   /* compressed, says its Content-Encoding */
        char etag[256];    /* "" if there is none, or none that fits */
        char modified[64]; /* Last-Modified; "" if there is none */
        char retry_after[64];
        char rate_reset[16]; /* of a RateLimit: seconds until more may be asked; "" */
        char date[64];
        bool has_xxh3; /* a node of ours says at the end what the digest of the chunk is, */
        uint64_t xxh3; /* as its Chunk-XXH3 has it */
        char bucket_region[64];
        char link_next[2048]; /* of a Link: the next page; "" */
        char error_code[64];  /* the hub's word for what is wrong; "" */
        char error_message[128];
        size_t n_error_bytes;
        char error[HTTP_ERROR_BYTES]; /* the beginning of the body of a status >= 300; not terminated */
};

/* Of no answer yet. */
void http_head_clear(struct http_head *head);

/* Takes one line as it came, with or without its end. A status line (of a redirect's next answer, after 100 Continue)
 * begins anew. */
void http_head_line(struct http_head *head, const char *line, size_t n_bytes);

/* Are these the same entity? A weak mark ("W/") on either side is passed over: what it leaves open is the encoding, and
 * nothing encoded is taken. True if one of them is empty or NULL: nothing speaks against it. */
bool http_etag_agrees(const char *one, const char *other);

/* May its Last-Modified tell one content from the next? Not if it is no earlier than the answer itself: the file may
 * change again within that second, and some servers say "now" each time. */
bool http_head_is_dated(const struct http_head *head);

/* The text of an element of the error's XML ("Code"), printable, cut to fit; "" if there is none. Returns `text`. */
const char *http_head_error_element(const struct http_head *head, const char *name, char *text, size_t size);
