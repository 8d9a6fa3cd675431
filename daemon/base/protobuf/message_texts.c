#include "daemon/base/protobuf/message_texts.h"

#include <errno.h>

#define STEP_LEVELS 2 /* messages around the one text of a step */

void message_texts_begin(struct message_texts *texts, const void *bytes, size_t n_bytes, bool has_steps) {
        *texts = (struct message_texts){ .left = { .at = bytes, .end = (const uint8_t *)bytes + n_bytes },
                                         .has_steps = has_steps };
}

/* The next field with the number 1. */
static int next_first(struct wire *message, struct wire *ret_bytes) {
        struct wire_field field;

        while (wire_left(message) > 0) {
                if (!wire_next(message, &field))
                        return -EBADMSG;
                if (field.number != 1)
                        continue;
                *ret_bytes = field.bytes;
                return field.type == WIRE_BYTES ? 1 : -EBADMSG;
        }
        return 0;
}

/* That of a message which has exactly one. */
static int only_first(struct wire message, struct wire *ret_bytes) {
        struct wire another;
        int r = next_first(&message, ret_bytes);

        if (r == 1 && next_first(&message, &another) != 0)
                r = -EBADMSG;
        return r;
}

int message_texts_next(struct message_texts *texts, struct wire *ret_text, struct why *why) {
        int r = next_first(&texts->left, ret_text);

        if (r < 0)
                return why_set(why, r, "its list of texts is damaged");
        for (int i = 0; i < STEP_LEVELS && texts->has_steps && r == 1; i++)
                if (only_first(*ret_text, ret_text) != 1)
                        return why_set(why, -EBADMSG, "a step of its list does not hold one text");
        return r;
}
