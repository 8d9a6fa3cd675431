/* dlctl index: the index of a dataset on standard output, to be laid beside the data. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "proto/base/cleanup.h"

static int index_copy(int fd, uint64_t n_bytes) {
        char part[65536];

        while (n_bytes > 0) {
                ssize_t n = read(fd, part, sizeof(part)), n_written = 0, w;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return fail(EXIT_REFUSED, "index: the file ends early%s%s", n < 0 ? ": " : "",
                                    n < 0 ? strerror(errno) : "");
                for (; n_written<n; n_written += w> 0 ? w : 0) {
                        w = write(STDOUT_FILENO, part + n_written, (size_t)(n - n_written));
                        if (w < 0 && errno != EINTR)
                                return fail(EXIT_REFUSED, "index: standard output: %s", strerror(errno));
                }
                n_bytes -= (uint64_t)n < n_bytes ? (uint64_t)n : n_bytes;
        }
        return EXIT_DONE;
}

static int index_ask(struct control *control, const char *dataset) {
        Dlp__IndexRequest index = DLP__INDEX_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        _cleanup_(closep) int fd = -1;
        Dlp__Reply *reply;
        int r;

        index.dataset = (char *)(uintptr_t)dataset;
        request.body_case = DLP__REQUEST__BODY_INDEX;
        request.index = &index;
        r = control_ask_for(control, &request, DLP__REPLY__BODY_INDEX, &reply, &fd, 1);
        if (r != EXIT_DONE)
                return r;
        r = index_copy(fd, reply->index->n_bytes);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

int index_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct control *control;
        const char *dataset;
        int r = options_parse(context, command, NULL, 0, 1, argc, argv);

        if (r >= 0)
                return r;
        if (isatty(STDOUT_FILENO))
                return fail(EXIT_USAGE, "index: it is not text: write it to a file, as in dlctl index %s > index",
                            argv[optind]);
        r = control_open_dataset(context, argv[optind], &control, &dataset);
        if (r != EXIT_DONE)
                return r;
        r = index_ask(control, dataset);
        control_close(control);
        return r;
}
