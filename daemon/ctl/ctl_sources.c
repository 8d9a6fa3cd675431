#include "daemon/ctl/ctl_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/ctl/users/access.h"
#include "daemon/data/format.h"
#include "proto/base/path_url.h"

struct look {
        struct session *session;
        Dlp__Source *const *sources;
        size_t n_sources;
        bool in_blocks;
        void (*done)(void *userdata, int result, const char *text, const struct why *why);
        void *userdata;
        int result;
        struct why why;
};

static int ctl_sources_look_at(const Dlp__Source *source, struct why *why) {
        struct stat status;

        if (source->name[0])
                return 0;
        if (path_is_url(source->path)) /* nothing of it is here */
                return 0;
        if (source->anchor[0] != '/')
                return why_set(why, -EINVAL, "dataset: the path \"%s\" is not absolute", source->anchor);
        if (stat(source->anchor, &status) < 0)
                return why_errno(why, -errno,
                                 "dataset: the client sees %s, and the daemon does not (is one of them in a "
                                 "container?)",
                                 source->anchor);
        if (status.st_dev == source->device && status.st_ino == source->inode)
                return 0;
        return why_set(why, -ESTALE,
                       "dataset: the client sees another %s than the daemon: one of them has another root or is in a "
                       "container, or the path was replaced a moment ago",
                       source->anchor);
}

static void ctl_sources_look_work(void *userdata) {
        struct look *look = userdata;

        for (size_t i = 0; i < look->n_sources && look->result == 0; i++)
                look->result = ctl_sources_look_at(look->sources[i], &look->why);
}

/* A Dataset object of the trainer's does not come as files that could be found elsewhere. */
static bool is_object(const Dlp__Source *source) {
        const struct format *format;
        struct why why;

        for (size_t i = 0; i < source->n_options; i++)
                if (strncmp(source->options[i], "format=", strlen("format=")) == 0 &&
                    format_find(source->options[i] + strlen("format="), &format, &why) == 0 && format->is_object)
                        return true;
        return false;
}

static int refuse_paths(const struct session *session, bool was_object, struct why *why) {
        const char *whom = session->server->options.settings->paths ? "paths and Dataset objects to its own user only"
                                                                    : "the datasets of its configuration only";

        return why_set(why, -EPERM,
                       "dataset: this daemon serves %s; without DATALOADERD_SOCKET and the socket option, %s is served "
                       "by a daemon of your own, which starts by itself",
                       whom, was_object ? "the object that from_dataset() was given" : "a path");
}

static int check_may_ask(const struct session *session, Dlp__Source *const *sources, size_t n_sources,
                         struct why *why) {
        if (n_sources > DLP_PARTS_MAX)
                return why_set(why, -EINVAL, "dataset: %zu datasets; at most %u are allowed", n_sources, DLP_PARTS_MAX);
        return access_paths(session) ? 0 : refuse_paths(session, n_sources > 0 && is_object(sources[0]), why);
}

static int name_one(struct session *session, const Dlp__Source *source, bool in_blocks, char ret_name[DLP_DATASET_MAX],
                    struct why *why) {
        const struct server_options *options = &session->server->options;
        const struct path_wish wish = { .path = source->path,
                                        .options = (const char *const *)source->options,
                                        .n_options = source->n_options,
                                        .in_blocks = in_blocks };

        if (!source->name[0])
                return options->add_path(options->userdata, &wish, ret_name, why);
        if (strlen(source->name) >= DLP_NAME_MAX)
                return why_set(why, -EINVAL, "dataset: \"%s\" is %zu bytes long, %u are allowed", source->name,
                               strlen(source->name), DLP_NAME_MAX - 1);
        strcpy(ret_name, source->name);
        return 0;
}

static int name_all(const struct look *look, char ret_text[DLP_DATASET_MAX], struct why *why) {
        char text[DLP_DATASET_MAX] = "", name[DLP_DATASET_MAX];
        size_t n = 0;

        for (size_t i = 0; i < look->n_sources; i++) {
                int r = name_one(look->session, look->sources[i], look->in_blocks, name, why);

                if (r < 0)
                        return r;
                if (n + strlen(name) + 3 >= sizeof(text))
                        return why_set(why, -EINVAL, "dataset: the paths take more than %u bytes", DLP_DATASET_MAX - 1);
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? " + " : "", name);
        }
        strcpy(ret_text, text);
        return 0;
}

static void ctl_sources_look_done(void *userdata) {
        struct look *look = userdata;
        struct session *session = look->session;
        struct server *server = session->server;
        char text[DLP_DATASET_MAX] = "";

        session->state = SESSION_OPEN;
        session_asks(session);
        if (session->closed) { /* the client has left meanwhile */
                session_give_back(session);
                look->result = -ECANCELED;
        } else {
                session_listen(session, true);
                if (look->result == 0)
                        look->result = name_all(look, text, &look->why);
        }
        look->done(look->userdata, look->result, text, &look->why);
        session_asked(server);
        free(look);
}

int sources_find(struct session *session, Dlp__Source *const *sources, size_t n_sources, bool in_blocks,
                 void (*done)(void *userdata, int result, const char *text, const struct why *why), void *userdata,
                 struct why *why) {
        struct look *look;
        int r = check_may_ask(session, sources, n_sources, why);

        if (r < 0)
                return r;
        look = calloc(1, sizeof(*look));
        if (!look)
                return why_errno(why, -ENOMEM, "dataset");
        *look = (struct look){
                .session = session,
                .sources = sources,
                .n_sources = n_sources,
                .in_blocks = in_blocks && n_sources == 1,
                .done = done,
                .userdata = userdata,
        };
        r = background_run(session->server->options.background, ctl_sources_look_work, ctl_sources_look_done, look);
        if (r < 0) {
                free(look);
                return why_errno(why, r, "dataset");
        }
        session_listen(session, false);
        session->state = SESSION_ATTACHING;
        return 0;
}
