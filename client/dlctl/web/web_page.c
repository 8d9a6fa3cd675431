#include "client/dlctl/web/web_page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"

#define FOLDER "client/dlctl/web/page/"

/* The assembler takes the files as they are; the Makefile knows that this file depends on them. */
#define EMBED(name, ...)                                                                                               \
        __asm__(".pushsection .rodata\n" #name ":\n" __VA_ARGS__ #name "_end:\n.byte 0\n.popsection\n");               \
        extern const char name[] __attribute__((visibility("hidden")));                                                \
        extern const char name##_end[] __attribute__((visibility("hidden")))
#define FILE_OF(path) ".incbin \"" FOLDER path "\"\n"

EMBED(page_html, FILE_OF("page.html"));
EMBED(page_css, FILE_OF("page.css"));
/* One function around all of them, so that they share names with each other alone. */
EMBED(page_js, ".ascii \"'use strict';(() => {\\n\"\n" FILE_OF("text.js") FILE_OF("store.js") FILE_OF("draw.js")
                       FILE_OF("job.js") FILE_OF("lists.js") FILE_OF("head.js") FILE_OF("keys.js")
                               FILE_OF("main.js") ".ascii \"})();\\n\"\n");

static const char STYLE[] = "<!--style-->", SCRIPT[] = "<!--script-->";

struct text {
        char *bytes;
        size_t n;
};

static void web_page_add(struct text *text, const char *bytes, size_t n) {
        text->bytes = realloc(text->bytes, text->n + n + 1);
        if (!text->bytes)
                exit(fail(EXIT_REFUSED, "no memory"));
        memcpy(text->bytes + text->n, bytes, n);
        text->n += n;
}

/* As a policy names a text: 'sha256-...'. */
static void web_page_digest(const char *bytes, size_t n, char ret_text[64]) {
        unsigned char hash[SHA256_DIGEST_LENGTH], base64[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];

        SHA256((const unsigned char *)bytes, n, hash);
        EVP_EncodeBlock(base64, hash, sizeof(hash));
        snprintf(ret_text, 64, "'sha256-%s'", (const char *)base64);
}

void page_make(struct page *page) {
        size_t n_html = (size_t)(page_html_end - page_html), n_css = (size_t)(page_css_end - page_css),
               n_js = (size_t)(page_js_end - page_js);
        const char *style = memmem(page_html, n_html, STYLE, strlen(STYLE)),
                   *script = memmem(page_html, n_html, SCRIPT, strlen(SCRIPT));
        char style_digest[64], script_digest[64];
        struct text text = { .n = 0 };

        web_page_add(&text, page_html, (size_t)(style - page_html));
        web_page_add(&text, "<style>", 7);
        web_page_add(&text, page_css, n_css);
        web_page_add(&text, "</style>", 8);
        style += strlen(STYLE);
        web_page_add(&text, style, (size_t)(script - style));
        web_page_add(&text, "<script>", 8);
        web_page_add(&text, page_js, n_js);
        web_page_add(&text, "</script>", 9);
        script += strlen(SCRIPT);
        web_page_add(&text, script, (size_t)(page_html_end - script));
        page->text = piece_new(text.bytes, text.n);
        free(text.bytes);

        web_page_digest(page_css, n_css, style_digest);
        web_page_digest(page_js, n_js, script_digest);
        snprintf(page->policy, sizeof(page->policy),
                 "default-src 'none'; script-src %s; style-src %s; connect-src 'self'; img-src data:; base-uri 'none'; "
                 "form-action 'none'; frame-ancestors 'none'",
                 script_digest, style_digest);
}

void page_free(struct page *page) {
        piece_unref(page->text);
}
