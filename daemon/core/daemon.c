#include "daemon/core/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/base/cell/cell.h"
#include "daemon/base/log.h"
#include "daemon/base/machine/machine_memory.h"
#include "daemon/base/work/closer.h"
#include "daemon/core/config.h"
#include "daemon/core/core_private.h"
#include "daemon/core/listen.h"
#include "daemon/core/path_dataset.h"
#include "daemon/ctl/ctl_server.h"
#include "daemon/ctl/metrics/metrics_http.h"
#include "daemon/ctl/users/authority.h"
#include "daemon/io/reader.h"
#include "daemon/plugin/plugins.h"
#include "daemon/ring/numa.h"
#include "daemon/store/cache/cache.h"
#include "daemon/store/cache/peers/peer_server.h"
#include "daemon/store/cache/peers/peers.h"
#include "daemon/tokenize/tokenizers.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/late/mhd_functions.h"
#include "proto/version.h"

#define DRAIN_TICK_US   20000
#define DRAIN_TICKS_MAX 50u           /* a second for the batches that were begun: others are made after the restart */
#define OWN_BYTES       (64ull << 20) /* in addition to memory_limit: code, heap, stacks */
#define LOOK_S          1 /* seconds between checks of the stamps of staged datasets, and of memory that clients hold */

struct daemon {
        struct config *config;
        const struct settings *settings; /* the config's: those in force, at this place for the daemon's life */
        struct daemon_options options;
        uint64_t connected_ns; /* when somebody was last connected */

        struct event_base *base;
        struct event *signal_events[4];
        size_t n_signal_events;
        struct event *background_event, *watchdog_event, *drain_event, *look_event;
        struct background *background;
        struct budget budget;
        struct catalog catalog;
        struct tokenizers *tokenizers;
        struct cells cells; /* of decoders and plug-ins */
        struct plugins *plugins;
        struct pipeline *pipeline;
        struct listener listener, metrics_listener;
        struct server server;
        struct metrics_http *metrics;
        struct cache *cache; /* of what lies elsewhere */
        struct peers *peers; /* NULL: no other nodes are asked, and nothing is served to them */
        struct peer_server *peer_server;
        bool catalog_started, server_started, signalled;
        uint32_t n_drain_ticks;

        struct {
                struct config next;
                struct why why;
                int result;
                bool is_running, again;
        } reload;
};

/* ---- callbacks of the floors below --------------------------------------------------------------------------- */

static void on_feed_news(void *userdata, struct feed *feed) {
        struct daemon *daemon = userdata;

        server_on_news(&daemon->server, feed);
}

/* ---- events -------------------------------------------------------------------------------------------------- */

static void on_background(evutil_socket_t fd, short what, void *userdata) {
        struct daemon *daemon = userdata;

        background_reap(daemon->background);
}

static void on_watchdog(evutil_socket_t fd, short what, void *userdata) {
        sd_notify(0, "WATCHDOG=1");
}

static void on_drain_tick(evutil_socket_t fd, short what, void *userdata) {
        struct daemon *daemon = userdata;

        if (server_is_busy(&daemon->server) && ++daemon->n_drain_ticks < DRAIN_TICKS_MAX)
                return;
        event_base_loopbreak(daemon->base);
}

static void begin_end(struct daemon *daemon, const char *why) {
        if (daemon->signalled)
                return;
        daemon->signalled = true;
        log_info("core", "%s: completing the batches that are begun; a second signal ends at once", why);
        sd_notify(0, "STOPPING=1\nSTATUS=Completing the batches that are begun");
        server_drain(&daemon->server);
        if (event_add(daemon->drain_event, &(struct timeval){ .tv_usec = DRAIN_TICK_US }) < 0)
                event_base_loopbreak(daemon->base); /* no memory for the timer: end at once rather than never */
}

static void daemon_on_end(evutil_socket_t number, short what, void *userdata) {
        struct daemon *daemon = userdata;

        if (daemon->signalled) {
                log_info("core", "%s again: ending at once", strsignal((int)number));
                event_base_loopbreak(daemon->base);
                return;
        }
        begin_end(daemon, strsignal((int)number));
}

/* A client asked for it. */
static void on_stop(void *userdata) {
        begin_end(userdata, "stop");
}

/* Has it been of no use for long, or can nobody find it any more? */
static void look_at_idleness(struct daemon *daemon) {
        uint64_t now_ns = clock_now_ns(), limit_ns = daemon->settings->idle_timeout * 1000000000u;

        if (daemon->server.n_sessions > 0)
                daemon->connected_ns = now_ns;
        else if (limit_ns > 0 && now_ns - daemon->connected_ns >= limit_ns)
                begin_end(daemon, "nobody has been connected for idle_timeout");
        else if (daemon->options.private && !listener_is_there(&daemon->listener))
                begin_end(daemon, "the socket is gone");
}

static void daemon_on_look(evutil_socket_t fd, short what, void *userdata) {
        struct daemon *daemon = userdata;

        catalog_look(&daemon->catalog);
        lent_look(pipeline_held(daemon->pipeline));
        look_at_idleness(daemon);
        if (daemon->options.private)
                private_trim_log(daemon->options.private);
}

static enum log_level log_level_of(const char *name) {
        static const char *const NAMES[] = { "error", "warning", "info", "debug" };

        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                if (strcmp(NAMES[i], name) == 0)
                        return (enum log_level)i;
        return LOG_LEVEL_INFO;
}

static int configure_catalog(struct daemon *daemon, struct why *why) {
        const struct config *config = daemon->config;
        struct catalog_wish *wishes = calloc(config->n_datasets ? config->n_datasets : 1, sizeof(*wishes));
        int r;

        if (!wishes)
                return why_errno(why, -ENOMEM, "datasets");
        for (size_t i = 0; i < config->n_datasets; i++) {
                const struct dataset_setting *dataset = &config->datasets[i];

                wishes[i] = (struct catalog_wish){ .name = dataset->name,
                                                   .path = dataset->path,
                                                   .format = dataset->format,
                                                   .origin = dataset->origin,
                                                   .allow = &dataset->groups,
                                                   .weight = (uint32_t)dataset->weight,
                                                   .options = dataset->options,
                                                   .follows_links = strcmp(dataset->links, "follow") == 0,
                                                   .remote = { [REMOTE_ENDPOINT] = dataset->endpoint,
                                                               [REMOTE_REGION] = dataset->region,
                                                               [REMOTE_ADDRESSING] = dataset->addressing,
                                                               [REMOTE_CREDENTIALS] = dataset->credentials,
                                                               [REMOTE_CA_FILE] = dataset->ca_file,
                                                               [REMOTE_MIRROR] = dataset->mirror },
                                                   .n_connections = (uint32_t)dataset->connections };
        }
        r = catalog_configure(&daemon->catalog, wishes, config->n_datasets, why);
        free(wishes);
        return r;
}

/* ---- applying settings ------------------------------------------------------------------------------------- */

static void configure_workers(struct daemon *daemon) {
        struct pool *pool = pipeline_pool(daemon->pipeline);
        uint32_t n_before = pool_n_workers(pool);
        char text[POOL_TEXT_MAX];
        struct why why;
        int r = pipeline_configure(daemon->pipeline, &why);

        if (r < 0)
                log_error("workers", "%s; %u go on", why.text, pool_n_workers(pool));
        else if (r == POOL_NICE_STAYS)
                log_warning("workers",
                            "nice: lowering it for running workers needs a privilege (RLIMIT_NICE) or a restart; "
                            "they keep their value, new ones get nice %u",
                            (unsigned)daemon->settings->nice);
        if (pool_n_workers(pool) != n_before)
                log_info("workers", "%u -> %u: %s", n_before, pool_n_workers(pool), pool_text(pool, text));
}

/* A rank has named a dataset by its path. */
static int on_add_path(void *userdata, const struct path_wish *path, char ret_name[DLP_DATASET_MAX], struct why *why) {
        struct daemon *daemon = userdata;

        return path_dataset_add(&daemon->catalog, path, ret_name, why);
}

static void on_stays(void *userdata, const struct setting *setting, const char *now, const char *next) {
        const struct daemon *daemon = userdata;

        if (!(daemon->options.socket_is_fixed && strcmp(setting->name, "socket") == 0))
                log_warning("core", "%s: the new value \"%s\" takes a restart; \"%s\" stays in force", setting->name,
                            next, now);
}

/* Puts what was read in force: settings are read where they are used, and what has to be done is done here. */
static void take_config(struct daemon *daemon, struct config *next) {
        struct dataset_setting *datasets = daemon->config->datasets;
        size_t n_datasets = daemon->config->n_datasets;
        struct why why;

        settings_reload(&daemon->config->settings, &next->settings, on_stays, daemon);
        daemon->config->datasets = next->datasets;
        daemon->config->n_datasets = next->n_datasets;
        next->datasets = datasets;
        next->n_datasets = n_datasets;
        config_fini(next);
        log_set_level(log_level_of(daemon->settings->log_level));
        configure_workers(daemon);
        if (configure_catalog(daemon, &why) < 0)
                log_error("core", "%s", why.text);
        if (tokenizers_set_folder(daemon->tokenizers, daemon->settings->tokenizers) < 0)
                log_error("core", "tokenizers: out of memory; the old folder stays in force");
        log_info("core", "configuration read again file=%s", daemon->options.config_path);
}

/* The file is read in the background: it may lie on a network file system, and its groups have to be looked up. */
static void reload_work(void *userdata) {
        struct daemon *daemon = userdata;

        daemon->reload.result = config_read(daemon->options.config_path, &daemon->reload.next, &daemon->reload.why);
}

static void begin_reload(struct daemon *daemon);

static void reload_done(void *userdata) {
        struct daemon *daemon = userdata;
        bool is_read = daemon->reload.result == 0;

        daemon->reload.is_running = false;
        if (is_read && daemon->signalled)
                config_fini(&daemon->reload.next);
        else if (is_read)
                take_config(daemon, &daemon->reload.next);
        else
                log_error("config", "%s; the old configuration stays in force", daemon->reload.why.text);
        if (daemon->reload.again && !daemon->signalled)
                begin_reload(daemon);
        else
                sd_notify(0, "READY=1");
}

static void begin_reload(struct daemon *daemon) {
        int r;

        daemon->reload.again = false;
        daemon->reload.is_running = true;
        r = background_run(daemon->background, reload_work, reload_done, daemon);
        if (r < 0) {
                daemon->reload.is_running = false;
                log_error("config", "reload: %s; the old configuration stays in force", strerror(-r));
                sd_notify(0, "READY=1");
        }
}

static void on_reload(evutil_socket_t number, short what, void *userdata) {
        struct daemon *daemon = userdata;

        if (daemon->signalled || !daemon->options.config_path)
                return;
        if (daemon->reload.is_running) { /* the file may have changed since it was last read */
                daemon->reload.again = true;
                return;
        }
        sd_notify(0, "RELOADING=1");
        begin_reload(daemon);
}

/* ---- start --------------------------------------------------------------------------------------------------- */

static int start_events(struct daemon *daemon, struct why *why) {
        const struct {
                int number;
                event_callback_fn handle;
        } SIGNALS[] = { { SIGTERM, daemon_on_end }, { SIGINT, daemon_on_end }, { SIGHUP, on_reload } };
        uint64_t watchdog_us;

        signal(SIGPIPE, SIG_IGN);
        signal(SIGIO, SIG_IGN); /* sent when another process breaks a lease that ring/lent.c holds for a moment */
        daemon->base = event_base_new();
        if (!daemon->base || background_new(&daemon->background) < 0)
                return why_set(why, -ENOMEM, "event loop");
        for (size_t i = 0; i < ARRAY_SIZE(SIGNALS); i++) {
                struct event *event = evsignal_new(daemon->base, SIGNALS[i].number, SIGNALS[i].handle, daemon);

                if (!event)
                        return why_set(why, -ENOMEM, "signals");
                daemon->signal_events[daemon->n_signal_events++] = event;
                if (event_add(event, NULL) < 0)
                        return why_set(why, -ENOMEM, "signals");
        }
        daemon->background_event = event_new(daemon->base, background_fd(daemon->background), EV_READ | EV_PERSIST,
                                             on_background, daemon);
        daemon->drain_event = event_new(daemon->base, -1, EV_PERSIST, on_drain_tick, daemon);
        daemon->watchdog_event = event_new(daemon->base, -1, EV_PERSIST, on_watchdog, daemon);
        daemon->look_event = event_new(daemon->base, -1, EV_PERSIST, daemon_on_look, daemon);
        if (!daemon->background_event || !daemon->drain_event || !daemon->watchdog_event || !daemon->look_event ||
            event_add(daemon->background_event, NULL) < 0)
                return why_set(why, -ENOMEM, "events");
        background_reap(daemon->background); /* arms it */

        /* Three times in systemd's interval, so that a late tick or two do no harm. */
        if (sd_watchdog_enabled(0, &watchdog_us) > 0 &&
            event_add(daemon->watchdog_event,
                      &(struct timeval){ .tv_sec = (time_t)(watchdog_us / 3000000),
                                         .tv_usec = (suseconds_t)(watchdog_us / 3 % 1000000) }) < 0)
                return why_set(why, -ENOMEM, "events");
        return 0;
}

static int start_pipeline(struct daemon *daemon, struct why *why) {
        const struct settings *settings = daemon->settings;
        struct pipeline_options options = {
                .settings = settings,
                .cells = &daemon->cells,
                .budget = &daemon->budget,
                .broken = on_feed_news,
                .desk_filled = on_feed_news,
                .userdata = daemon,
        };
        const struct reader_report *report;
        char text[POOL_TEXT_MAX];
        int r;

        r = pipeline_start(&options, &daemon->pipeline, why);
        if (r < 0)
                return r;
        log_info("workers", "%u: %s", pipeline_n_workers(daemon->pipeline),
                 pool_text(pipeline_pool(daemon->pipeline), text));
        report = pipeline_reader_report(daemon->pipeline);
        if (report->backend_why.text[0] && strcmp(settings->reader, "threads") != 0)
                log_warning("reader", "%s; reading with %u threads instead", report->backend_why.text,
                            report->n_threads);
        if (report->buffers_why.text[0])
                log_info("reader", "buffers are not registered with the kernel: %s; reading into plain memory",
                         report->buffers_why.text);
        return 0;
}

static unsigned mode_of(const char *octal) {
        return (unsigned)strtoul(octal, NULL, 8) & 0777;
}

static int start_server(struct daemon *daemon, struct why *why) {
        struct server_options options = {
                .base = daemon->base,
                .pipeline = daemon->pipeline,
                .catalog = &daemon->catalog,
                .background = daemon->background,
                .budget = &daemon->budget,
                .tokenizers = daemon->tokenizers,
                .plugins = daemon->plugins,
                .settings = daemon->settings,
                .version = DLP_FULL_VERSION,
                .is_private = daemon->options.private != NULL,
                .add_path = on_add_path,
                .stop = on_stop,
                .userdata = daemon,
        };
        struct private_daemon *ours = daemon->options.private;
        unsigned mode = mode_of(daemon->settings->socket_mode);
        int r;

        if (ours)
                r = listener_bind(&daemon->listener, &LISTENER_PRIVATE, daemon->settings->socket, mode, ours->lock_fd,
                                  why);
        else
                r = listener_open(&daemon->listener, daemon->settings->socket, mode, why);
        if (r < 0)
                return r;
        if (ours)
                ours->lock_fd = -1; /* the listener's now */
        options.listen_fd = daemon->listener.fd;
        r = server_start(&daemon->server, &options, why);
        daemon->server_started = r == 0;
        return r;
}

static int start_metrics(struct daemon *daemon, struct why *why) {
        const struct settings *settings = daemon->settings;
        struct why inner;
        int r;

        if (!settings->metrics_socket[0])
                return 0;
        r = mhd_load(&inner);
        if (r < 0)
                return why_set(why, r, "metrics_socket: %s", inner.text);
        r = listener_bind(&daemon->metrics_listener, &LISTENER_METRICS, settings->metrics_socket,
                          mode_of(settings->metrics_mode), -1, why);
        if (r < 0)
                return r;
        r = metrics_http_open(daemon->base, daemon->metrics_listener.fd, &daemon->server, &daemon->metrics);
        return r < 0 ? why_errno(why, r, "metrics_socket") : 0;
}

static int start_peers(struct daemon *daemon, struct why *why) {
        const struct settings *settings = daemon->settings;
        struct why inner;
        int r;

        if (!settings->peers[0])
                return 0;
        r = mhd_load(&inner);
        if (r < 0)
                return why_set(why, r, "peers: %s", inner.text);
        r = peers_new(&(struct peers_options){ .nodes = settings->peers,
                                               .listen = settings->peer_listen,
                                               .key_file = settings->peer_key_file,
                                               .socket = settings->socket },
                      &daemon->peers, why);
        if (r == 0)
                r = cache_join(daemon->cache, daemon->peers, why);
        return r == 0 ? peer_server_open(daemon->base, daemon->cache, daemon->peers, &daemon->peer_server, why) : r;
}

/* Starts the parts bottom-up, so that each finds the parts that it calls. daemon_stop() does the reverse. */
static int daemon_start(struct daemon *daemon, struct why *why) {
        int r;

        cells_init(&daemon->cells, "/proc/self/exe");
        daemon->budget.limit_bytes = daemon->settings->memory_limit;
        daemon->budget.variable = daemon->options.private ? PRIVATE_VARIABLE : NULL;
        r = start_events(daemon, why);
        if (r == 0)
                r = closer_start(why);
        if (r < 0)
                return r;
        if (numa_start() < 0)
                log_warning("ring", "the machine's topology cannot be read; rings are not bound to memory nodes");
        settings_make_cache(daemon->settings);
        r = catalog_init(&daemon->catalog, daemon->background, daemon->settings->index_dir, &daemon->budget);
        if (r < 0)
                return why_errno(why, r, "datasets");
        daemon->catalog_started = true;
        r = cache_new(&(struct cache_options){ .dir = daemon->settings->cache_dir,
                                               .limit = daemon->settings->cache_limit,
                                               .fetch_limit = daemon->settings->fetch_limit,
                                               .ahead_s = daemon->settings->fetch_ahead,
                                               .is_private = daemon->options.private },
                      &daemon->cache);
        if (r < 0)
                return why_errno(why, r, "cache_dir");
        daemon->catalog.cache = daemon->cache;
        r = start_peers(daemon, why);
        if (r < 0)
                return r;
        r = tokenizers_new(daemon->settings->tokenizers, &daemon->budget, &daemon->tokenizers);
        if (r < 0)
                return why_errno(why, r, "tokenizers");
        r = plugins_new(daemon->settings, &daemon->cells, &daemon->plugins, why);
        if (r < 0)
                return r;
        daemon->catalog.plugins = daemon->plugins;
        r = start_pipeline(daemon, why);
        if (r < 0)
                return r;
        r = start_server(daemon, why);
        if (r == 0)
                r = start_metrics(daemon, why);
        if (r < 0)
                return r;
        if (event_add(daemon->look_event, &(struct timeval){ .tv_sec = LOOK_S }) < 0)
                return why_set(why, -ENOMEM, "events");
        return configure_catalog(daemon, why);
}

/* ---- stop ---------------------------------------------------------------------------------------------------- */

static void free_events(struct daemon *daemon) {
        for (size_t i = 0; i < daemon->n_signal_events; i++)
                event_free(daemon->signal_events[i]);
        if (daemon->background_event)
                event_free(daemon->background_event);
        if (daemon->drain_event)
                event_free(daemon->drain_event);
        if (daemon->watchdog_event)
                event_free(daemon->watchdog_event);
        if (daemon->look_event)
                event_free(daemon->look_event);
        if (daemon->base)
                event_base_free(daemon->base);
}

/* Ends the process without freeing anything: a thread that hangs in the kernel still uses the memory. */
static void daemon_leave(const char *what) {
        log_error("core", "%s hangs in the kernel (a dead network mount?); ending without it", what);
        log_stop();
        _exit(EX_OSERR);
}

static int daemon_stop(struct daemon *daemon) {
        metrics_http_close(daemon->metrics);
        listener_close(&daemon->metrics_listener);
        if (daemon->server_started)
                server_stop(&daemon->server);
        listener_close(&daemon->listener);
        if (daemon->catalog_started)
                catalog_cancel(&daemon->catalog);
        if (daemon->cache)
                cache_cancel(daemon->cache);
        peer_server_close(daemon->peer_server);
        plugins_stop(daemon->plugins); /* neither workers nor an indexing wait for a process of theirs */
        if (daemon->background && background_stop(daemon->background) < 0)
                daemon_leave("work in the background");
        if (pipeline_stop(daemon->pipeline) < 0)
                daemon_leave("a read");
        if (daemon->server_started)
                server_fini(&daemon->server);
        if (daemon->catalog_started)
                catalog_fini(&daemon->catalog);
        cache_free(daemon->cache);
        peers_free(daemon->peers);
        plugins_free(daemon->plugins);
        cells_fini(&daemon->cells);
        tokenizers_free(daemon->tokenizers);
        background_free(daemon->background);
        closer_stop();
        numa_stop();
        free_events(daemon);
        return 0;
}

/* Each connection takes several descriptors, and a job has many ranks. A shell's usual limit is 1,024, because of
 * select(). */
static void raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
}

/* If there is less memory than our own limit allows, the kernel would kill the daemon in the middle of a training run.
 */
static void check_memory_limit(const struct daemon *daemon) {
        uint64_t limit = daemon->settings->memory_limit, ours = memory_of_ours();
        char mine[BYTES_TEXT_MAX], theirs[BYTES_TEXT_MAX];
        bool is_group = memory_of_our_group() == ours;

        if (limit < ours && ours - limit >= OWN_BYTES)
                return;
        log_warning(
                "core",
                "memory_limit: %s and 64 MiB for the daemon itself are more than %s (%s): lower %s%s, or the kernel "
                "may end it",
                format_bytes(mine, limit), is_group ? "its control group may have" : "this machine has",
                format_bytes(theirs, ours), daemon->options.private ? "it in " PRIVATE_VARIABLE : "memory_limit",
                is_group && !daemon->options.private ? ", or raise MemoryMax= of the service" : "");
}

static void check_authority(const struct daemon *daemon) {
        if (daemon->options.private || authority_is_seen())
                return;
        log_warning(
                "core",
                "admins: /proc does not show the processes of other users (hidepid=, ProtectProc= of the service), so "
                "root cannot be told from root of a container, and both are plain users");
}

int daemon_run(struct config *config, const struct daemon_options *options) {
        const struct settings *settings = &config->settings;
        struct daemon daemon = {
                .config = config,
                .settings = settings,
                .options = *options,
                .connected_ns = clock_now_ns(),
                .listener = { .fd = -1 },
                .metrics_listener = { .fd = -1 },
        };
        char limit[BYTES_TEXT_MAX];
        struct why why = { 0 };
        int r;

        log_set_level(log_level_of(settings->log_level));
        raise_descriptor_limit();
        r = log_start(&why);
        if (r == 0) {
                check_memory_limit(&daemon);
                check_authority(&daemon);
                r = daemon_start(&daemon, &why);
        }
        if (r < 0) {
                log_error("core", "%s", why.text);
                daemon_stop(&daemon);
                log_stop();
                return EX_UNAVAILABLE;
        }
        log_info("core", "dataloaderd %s serves %zu datasets socket=%s workers=%u memory_limit=%s reader=%s",
                 DLP_FULL_VERSION, config->n_datasets, settings->socket, pipeline_n_workers(daemon.pipeline),
                 format_bytes(limit, settings->memory_limit), pipeline_reader_report(daemon.pipeline)->backend);
        sd_notifyf(0, "READY=1\nSTATUS=Serving %zu datasets", config->n_datasets);
        if (options->private)
                private_ready(options->private);

        r = event_base_dispatch(daemon.base);
        daemon_stop(&daemon);
        log_info("core", "ended");
        log_stop();
        return r < 0 ? EX_OSERR : 0;
}
