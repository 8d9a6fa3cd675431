#include "client/dlctl/web/piece.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"

struct piece *piece_new(const char *text, size_t n) {
        struct piece *piece = malloc(sizeof(*piece) + n);

        if (!piece)
                exit(fail(EXIT_REFUSED, "no memory"));
        piece->n_references = 1;
        piece->n = n;
        memcpy(piece->bytes, text, n);
        return piece;
}

struct piece *piece_of_record(cJSON *record) {
        char *text = cJSON_PrintUnformatted(record);
        struct piece *piece;

        if (!text)
                exit(fail(EXIT_REFUSED, "no memory"));
        piece = piece_new(text, strlen(text));
        cJSON_free(text);
        cJSON_Delete(record);
        return piece;
}

void piece_unref(struct piece *piece) {
        if (piece && --piece->n_references == 0)
                free(piece);
}

static void sent(const void *bytes, size_t n, void *arg) {
        (void)bytes;
        (void)n;
        piece_unref(arg);
}

void piece_send(struct piece *piece, struct evbuffer *buffer) {
        if (!piece || piece->n == 0)
                return;
        piece->n_references++;
        if (evbuffer_add_reference(buffer, piece->bytes, piece->n, sent, piece) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
}
