/* plugin/wire.h: what the daemon and a process of a plug-in send each other. Private to this floor.
 *
 * Both are the same program, so a message is a struct. A question has one answer, a struct plugin_reply. */
#pragma once

#include "daemon/plugin/area.h"
#include "daemon/plugin/library.h"

/* The descriptors with which the process begins. */
#define WIRE_SOCKET 3
#define WIRE_AREA   4

struct wire_question {
        uint64_t n_bytes, output_offset; /* of the shared memory, as it is now; 0: none is mapped */
        struct plugin_request request;   /* question 0: what does the plug-in say of itself? */
};

/* `request` NULL: the first question. -EPIPE and the like. */
int wire_send(int fd, const struct area *area, const struct plugin_request *request);
