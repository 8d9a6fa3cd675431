#include "daemon/plugin/wire.h"

#include <errno.h>
#include <sys/socket.h>

int wire_send(int fd, const struct area *area, const struct plugin_request *request) {
        struct wire_question question = { .n_bytes = area->n_bytes, .output_offset = area->output_offset };
        ssize_t n;

        if (request)
                question.request = *request;
        do
                n = send(fd, &question, sizeof(question), MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}
