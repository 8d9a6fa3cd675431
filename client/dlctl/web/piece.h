/* web/piece.h: a text that several answers send at once without copies: each holds a reference. Made by one thread, given
 * up by any. */
#pragma once

#include <event2/buffer.h>
#include <stddef.h>

#include "client/dlctl/output.h"

struct piece {
        _Atomic unsigned n_references;
        size_t n; /* bytes */
        char bytes[];
};

/* A copy of the text, with one reference. Ends the program if there is no memory, as all records of dlctl do. */
struct piece *piece_new(const char *text, size_t n);

/* A record as text; the record is deleted. */
struct piece *piece_of_record(cJSON *record);

void piece_unref(struct piece *piece); /* takes NULL */

/* Adds the text to what is sent, and keeps a reference until it is. NULL: nothing. */
void piece_send(struct piece *piece, struct evbuffer *buffer);
