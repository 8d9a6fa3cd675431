#include "tests/fuzz/inside.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/ctl/ctl_server.h"
#include "daemon/ring/numa.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/frame.h"
#include "tests/fuzz/folder.h"

#define PATIENCE_NS  50000000000ull /* below the limit of an input, which run.py says */
#define N_FILES      12u
#define MEMORY_LIMIT (256ull << 20) /* so that each worker gets as much as any other, however many there are */
#define N_WORKERS    2u
#define LOG_NOTHING  ((enum log_level) - 1) /* above errors; FUZZ_LOG=1 in the environment shows all of it */

static const char *const PICTURES[] = { "size_8x8.jpg",    "grey_8.png",    "lossy.webp",
                                        "cut_in_data.jpg", "palette_4.png", "empty.jpg",
                                        "size_17x16.jpg",  "psd.jpg",       "grey_progressive.jpg" };

static void give_up(const char *what) {
        fprintf(stderr, "fuzz: %s\n", what);
        _exit(2);
}

/* ---- datasets ------------------------------------------------------------------------------------------------ */

static void make_files(void) {
        char name[64], text[64];

        folder_make("files");
        folder_make("files/a");
        folder_make("files/b");
        for (uint32_t i = 0; i < N_FILES; i++) {
                snprintf(name, sizeof(name), "files/%s/%02u.jpg", i < N_FILES / 2 ? "a" : "b", i);
                folder_write(name, text, (size_t)snprintf(text, sizeof(text), "file number %u", i * i * i));
        }
        folder_age("files/a");
        folder_age("files/b");
        folder_age("files");
}

static void make_pictures(void) {
        char name[64], path[128];

        folder_make("pictures");
        folder_make("pictures/all");
        for (size_t i = 0; i < ARRAY_SIZE(PICTURES); i++) {
                size_t n;
                char *bytes;

                snprintf(path, sizeof(path), "tests/vectors/pictures/%s", PICTURES[i]);
                snprintf(name, sizeof(name), "pictures/all/%s", PICTURES[i]);
                bytes = tree_bytes(path, &n);
                folder_write(name, bytes, n);
                free(bytes);
        }
        folder_age("pictures/all");
        folder_age("pictures");
}

/* ---- its parts, from the bottom ------------------------------------------------------------------------------ */

static void on_background(evutil_socket_t fd, short what, void *userdata) {
        background_reap(((struct inside *)userdata)->background);
}

static void on_feed_news(void *userdata, struct feed *feed) {
        server_on_news(&((struct inside *)userdata)->server, feed);
}

static void start_events(struct inside *inside) {
        inside->base = event_base_new();
        if (!inside->base || background_new(&inside->background) < 0)
                give_up("no event loop");
        inside->background_event = event_new(inside->base, background_fd(inside->background), EV_READ | EV_PERSIST,
                                             on_background, inside);
        if (!inside->background_event || event_add(inside->background_event, NULL) < 0)
                give_up("no event");
        background_reap(inside->background); /* arms it */
}

static void start_datasets(struct inside *inside) {
        char files[PATH_MAX], pictures[PATH_MAX], gone[PATH_MAX], index[PATH_MAX];
        const struct catalog_wish wishes[] = { { "files", folder_path("files", files), "imagefolder", "" },
                                               { "pictures", folder_path("pictures", pictures), "imagefolder", "" },
                                               { "gone", folder_path("gone", gone), "imagefolder", "" } };
        struct catalog_entry *entry;
        struct why why;

        make_files();
        make_pictures();
        folder_make("index");
        if (catalog_init(&inside->catalog, inside->background, folder_path("index", index), &inside->budget) < 0 ||
            catalog_configure(&inside->catalog, wishes, ARRAY_SIZE(wishes), &why) < 0)
                give_up("no datasets");
        for (uint64_t begin_ns = clock_now_ns(); clock_now_ns() - begin_ns < PATIENCE_NS;) {
                bool is_opening = false;

                inside_step(inside);
                TAILQ_FOREACH(entry, &inside->catalog.entries, entry)
                        is_opening = is_opening || entry->is_opening;
                if (!is_opening)
                        return;
        }
        give_up("the datasets were not opened");
}

static void configure(struct inside *inside) {
        struct settings *settings = &inside->settings;
        struct why why;

        settings->workers = N_WORKERS;
        settings->read_depth = 16;
        settings->reader = strdup("threads");
        settings->max_pixels = 1 << 16;
        settings->max_scans = 20;
        settings->memory_limit = 4 << 20; /* of a decoder's scratch */
        settings->huge_pages = strdup("no");
        settings->lock_memory = strdup("no");
        if (settings_complete(settings, &why) < 0)
                give_up(why.text);
}

static void start_pipeline(struct inside *inside) {
        struct pipeline_options options = {
                .settings = &inside->settings,
                .budget = &inside->budget,
                .broken = on_feed_news,
                .desk_filled = on_feed_news,
                .userdata = inside,
        };
        struct why why;

        if (pipeline_start(&options, &inside->pipeline, &why) < 0)
                give_up(why.text);
}

static int listen_at(const char *path) {
        struct sockaddr_un address;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        unlink(path);
        if (fd < 0 || dlp_socket_address(path, &address) < 0 ||
            bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 64) < 0)
                give_up("cannot listen");
        return fd;
}

static void start_server(struct inside *inside) {
        struct server_options options = {
                .base = inside->base,
                .listen_fd = listen_at(inside->socket),
                .pipeline = inside->pipeline,
                .catalog = &inside->catalog,
                .background = inside->background,
                .budget = &inside->budget,
                .settings = &inside->settings,
                .version = "0.1.0",
                .userdata = inside,
        };
        struct why why;

        if (server_start(&inside->server, &options, &why) < 0)
                give_up(why.text);
}

void inside_start(struct inside *inside) {
        char path[PATH_MAX];

        signal(SIGPIPE, SIG_IGN);
        log_set_level(getenv("FUZZ_LOG") ? LOG_LEVEL_DEBUG : LOG_NOTHING);
        snprintf(inside->socket, sizeof(inside->socket), "%.100s", folder_path("socket", path));
        inside->budget.limit_bytes = MEMORY_LIMIT;
        start_events(inside);
        numa_start();
        start_datasets(inside);
        configure(inside);
        start_pipeline(inside);
        start_server(inside);
        inside->idle_bytes = budget_used(&inside->budget);
}

/* ---- stepping ------------------------------------------------------------------------------------------------ */

void inside_step(struct inside *inside) {
        event_base_loop(inside->base, EVLOOP_NONBLOCK);
}

bool inside_wait(struct inside *inside, int fd) {
        for (uint64_t begin_ns = clock_now_ns(); clock_now_ns() - begin_ns < PATIENCE_NS;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

                inside_step(inside);
                if (poll(&poll_fd, 1, 0) > 0)
                        return true;
                usleep(50);
        }
        return false;
}

/* What is still held that should be free; NULL if nothing is. Memory only if clients hold none. */
static const char *what_is_left(const struct inside *inside, bool memory_too) {
        if (background_stop_within(inside->background, 0) < 0)
                return "work in the background"; /* or the process might end before its thread was joined */
        if (!TAILQ_EMPTY(&inside->server.sessions))
                return "a session of a connection that was closed";
        if (!LIST_EMPTY(&inside->server.jobs))
                return "a job without ranks";
        if (pool_n_workers(pipeline_pool(inside->pipeline)) != N_WORKERS)
                return "another number of workers";
        if (memory_too && atomic_load(&inside->budget.used_bytes) != inside->idle_bytes)
                return "memory of the budget";
        return NULL;
}

static void settle(struct inside *inside, bool memory_too) {
        const char *left = "";
        struct why why;

        for (uint64_t begin_ns = clock_now_ns(); clock_now_ns() - begin_ns < PATIENCE_NS;) {
                inside_step(inside); /* which may still find a request for another number */
                if (pool_n_workers(pipeline_pool(inside->pipeline)) != N_WORKERS)
                        pool_set_workers(pipeline_pool(inside->pipeline), N_WORKERS, &why);
                lent_look(pipeline_held(inside->pipeline)); /* which the daemon does once a second */
                left = what_is_left(inside, memory_too);
                if (!left)
                        return;
                usleep(50);
        }
        fprintf(stderr, "fuzz: after all clients have left, this did not come back: %s (%llu bytes, idle are %llu)\n",
                left, (unsigned long long)budget_used(&inside->budget), (unsigned long long)inside->idle_bytes);
        abort();
}

void inside_settle(struct inside *inside) {
        settle(inside, true);
}

static void move_users(struct users *from, struct users *to) {
        struct user *user;

        while ((user = LIST_FIRST(from))) {
                LIST_REMOVE(user, entry);
                LIST_INSERT_HEAD(to, user, entry);
        }
}

/* The users' accounts stay: a daemon that ends stops its planner first, while here it goes on, and feeds that are on
 * their way out still count for them. */
void inside_restart(struct inside *inside) {
        struct users kept = LIST_HEAD_INITIALIZER(kept);

        server_stop(&inside->server);
        if (background_stop(inside->background) < 0)
                give_up("work in the background does not end");
        settle(inside, false);
        move_users(&inside->server.users, &kept);
        server_fini(&inside->server);
        start_server(inside);
        move_users(&kept, &inside->server.users);
}
