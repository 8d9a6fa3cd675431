/* The daemon's version, its settings, what it obtained, and its counters. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/machine/linked.h"
#include "daemon/base/machine/machine_memory.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/number_values.h"
#include "daemon/ctl/users/access.h"
#include "daemon/io/reader.h"
#include "daemon/plugin/plugins.h"
#include "daemon/ring/numa.h"
#include "proto/base/bytes.h"
#include "proto/base/clock.h"

#define FACTS_MAX        64u
#define SETTING_LINE_MAX 128u

_Static_assert(N_SETTINGS <= FACTS_MAX, "FACTS_MAX is too small for settings");
_Static_assert(sizeof(struct counters) / sizeof(uint64_t) <= FACTS_MAX, "FACTS_MAX is too small for counters");

/* The messages of one reply, and the texts that have no other owner. */
struct facts {
        Dlp__Fact messages[FACTS_MAX];
        Dlp__Fact *pointers[FACTS_MAX];
        char values[FACTS_MAX][128];
        size_t n;
};

static void facts_add(struct facts *facts, const char *name, const char *value, const char *unit, const char *text) {
        Dlp__Fact *fact;

        if (facts->n == FACTS_MAX)
                return;
        fact = &facts->messages[facts->n];
        dlp__fact__init(fact);
        snprintf(facts->values[facts->n], sizeof(facts->values[0]), "%s", value);
        fact->name = (char *)(uintptr_t)name;
        fact->value = facts->values[facts->n];
        fact->unit = (char *)(uintptr_t)unit;
        fact->text = (char *)(uintptr_t)text;
        facts->pointers[facts->n] = fact;
        facts->n++;
}

static void facts_add_number(struct facts *facts, const char *name, uint64_t value, const char *unit,
                             const char *text) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
        facts_add(facts, name, digits, unit, text);
}

/* What it says of itself in one line: a table has no room for more, nor has a packet for twenty clients that ask. */
static const char *setting_line(const struct setting *setting, char ret_line[SETTING_LINE_MAX]) {
        const char *stop = strstr(setting->prose, ". "), *semicolon = strstr(setting->prose, "; ");
        size_t n = stop ? (size_t)(stop - setting->prose) : strlen(setting->prose) - 1; /* without the full stop */

        if (semicolon && (size_t)(semicolon - setting->prose) < n)
                n = (size_t)(semicolon - setting->prose);
        snprintf(ret_line, SETTING_LINE_MAX, "%.*s", (int)n, setting->prose);
        return ret_line;
}

static void add_settings(struct facts *facts, const struct settings *settings) {
        static char lines[N_SETTINGS][SETTING_LINE_MAX]; /* main thread only */
        char value[32];

        for (size_t i = 0; i < N_SETTINGS; i++)
                facts_add(facts, SETTINGS[i].name, setting_value(&SETTINGS[i], settings, value),
                          SETTINGS[i].unit ? SETTINGS[i].unit : "", setting_line(&SETTINGS[i], lines[i]));
}

/* The word in brackets: the kernel's current mode of huge pages for shared memory. */
static void transparent_huge_pages(char *word, size_t capacity) {
        FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
        char line[128] = "", *begin, *end;

        if (file && !fgets(line, sizeof(line), file))
                line[0] = '\0';
        if (file)
                fclose(file);
        begin = strchr(line, '[');
        end = begin ? strchr(begin, ']') : NULL;
        snprintf(word, capacity, "%.*s", end ? (int)(end - begin - 1) : 7, end ? begin + 1 : "unknown");
}

/* Nothing while no dataset lies elsewhere and none is compressed. */
static void ctl_status_add_cache(struct facts *facts, struct server *server) {
        static char others[128]; /* main thread only; stays valid until the reply is sent */
        struct cache_counts cache;

        number_values_take_cache(server, &cache);
        if (!cache.dir)
                return;
        others[0] = '\0';
        if (cache.n_others > 0)
                snprintf(others, sizeof(others),
                         "%u more daemon%s use%s cache_dir, each a folder; they share cache_limit", cache.n_others,
                         cache.n_others > 1 ? "s" : "", cache.n_others > 1 ? "" : "s");
        facts_add(facts, "cache_folder", cache.dir, "", others);
        facts_add_number(facts, "cache_used", cache.n_bytes, "bytes",
                         "held there: what was fetched, and what was unpacked");
        facts_add_number(facts, "cache_most", cache.limit, "bytes",
                         cache.n_others > 0 ? "that may be held there: a part of cache_limit"
                                            : "that may be held there: cache_limit");
        if (cache.horizon_ns > 0)
                facts_add_number(
                        facts, "fetch_horizon", cache.horizon_ns / 1000000000, "seconds",
                        "that is looked ahead for a rank: fetch_ahead, or longer where an origin answers late");
}

static void add_memory_limit(struct facts *facts, const struct server *server) {
        static char text[128]; /* main thread only; stays valid until the reply is sent */
        uint64_t limit = server->options.budget->limit_bytes, ours = memory_of_ours();
        char bytes[BYTES_TEXT_MAX];

        if (limit <= ours)
                return;
        snprintf(text, sizeof(text),
                 "the machine, or the control group, has only %s: lower it, or the kernel may end the daemon",
                 format_bytes(bytes, ours));
        facts_add(facts, "memory_limit", "too high", "", text);
}

/* Shows what memory_used consists of: even a daemon without clients uses a good part of it. */
static void ctl_status_add_memory(struct facts *facts, struct server *server) {
        uint64_t used = budget_used(server->options.budget), held, others;
        struct pipeline_memory memory;

        pipeline_memory(server->options.pipeline, &memory);
        held = atomic_load_explicit(&pipeline_held(server->options.pipeline)->n_bytes, memory_order_relaxed);
        facts_add_number(facts, "read_buffers", memory.read_buffers, "bytes",
                         "of memory used: one for each sample under way");
        facts_add_number(facts, "worker_scratch", memory.worker_scratch, "bytes",
                         "of memory used: what each worker has for ordinary pictures");
        facts_add_number(facts, "large_picture_scratch", memory.large_picture_scratch, "bytes",
                         "of memory used: the pool that large pictures share");
        facts_add_number(facts, "held_by_left_clients", held, "bytes",
                         "of memory used: rings of ranks that have left and keep mappings or descriptors");
        others = memory.read_buffers + memory.worker_scratch + memory.large_picture_scratch + held;
        facts_add_number(facts, "jobs_and_datasets", used > others ? used - others : 0, "bytes",
                         "of memory used: rings, orders and indexes");
}

static void add_obtained(struct facts *facts, struct server *server) {
        const struct reader_report *report = pipeline_reader_report(server->options.pipeline);
        static char workers[POOL_TEXT_MAX]; /* main thread only; stays valid until the reply is sent */
        struct rlimit limit = { 0 };
        char word[32], kib[32];

        facts_add(facts, "libraries", linked_libraries(), "", linked_text());
        facts_add_number(facts, "workers", pipeline_n_workers(server->options.pipeline), "threads",
                         pool_text(pipeline_pool(server->options.pipeline), workers));
        facts_add(facts, "reader", report->backend, "", report->backend_why.text);
        facts_add(facts, "registered_buffers", report->has_fixed_buffers ? "yes" : "no", "", report->buffers_why.text);
        facts_add_number(facts, "samples_under_way", pipeline_read_depth(server->options.pipeline), "samples",
                         "read_depth, or as many as a quarter of memory_limit has buffers for");
        transparent_huge_pages(word, sizeof(word));
        facts_add(facts, "transparent_huge_pages", word, "",
                  "the kernel's setting for shared memory; dlctl jobs says what each ring got");
        getrlimit(RLIMIT_MEMLOCK, &limit);
        snprintf(kib, sizeof(kib), "%llu", (unsigned long long)limit.rlim_cur >> 10);
        facts_add(facts, "memlock_limit", limit.rlim_cur == RLIM_INFINITY ? "unlimited" : kib,
                  limit.rlim_cur == RLIM_INFINITY ? "" : "KiB",
                  "what may be locked without CAP_IPC_LOCK; dlctl jobs says what each ring got");
        ctl_status_add_cache(facts, server);
        add_memory_limit(facts, server);
        ctl_status_add_memory(facts, server);
        facts_add_number(facts, "numa_nodes", numa_n_nodes(), "nodes",
                         numa_n_nodes() > 1
                                 ? "a ring is bound to the node of its client's device, else to that of all its CPUs"
                                 : "one node: all memory is equally near");
}

static void add_counters(struct facts *facts, struct server *server) {
        struct counters *counters = pipeline_counters(server->options.pipeline);
        struct cache_counts cache;

        number_values_take_cache(server, &cache);
#define ROW(name, kind, unit, where, metric, help)                                                                     \
        facts_add_number(facts, #name, counter_get(&counters->name), unit, help);                                      \
        facts->messages[facts->n - 1].watched = NUMBER_##where == NUMBER_WATCHED;
        NODE_COUNTERS(ROW)
#undef ROW
}

/* As many as certainly fit into a packet; `dlctl datasets` lists all. */
#define STAGING_MAX 16u

/* Datasets with an origin. The texts stay until the reply is sent: main thread only. */
static void ctl_status_add_staging(struct facts *facts, const struct session *session) {
        static char texts[STAGING_MAX][DLP_TEXT_MAX];
        struct catalog_entry *entry;

        TAILQ_FOREACH(entry, &session->server->options.catalog->entries, entry) {
                char *text = texts[facts->n];
                const char *state = catalog_state_name(entry->state);

                if (!entry->staged || !access_dataset(session, entry))
                        continue;
                if (facts->n == STAGING_MAX - 1)
                        break;
                if (catalog_is_being_staged(entry) || entry->state == CATALOG_STAGING)
                        catalog_staging_text(entry, text);
                else if (entry->state == CATALOG_READY)
                        snprintf(text, DLP_TEXT_MAX, "version %s", entry->staged->stamp.version);
                else
                        snprintf(text, DLP_TEXT_MAX, "%s", entry->text.text);
                if (entry->state == CATALOG_STAGING && catalog_is_being_staged(entry))
                        state = "staging";
                facts_add(facts, entry->name, state, "", text);
        }
}

#define PLUGIN_FACTS_MAX 48u /* that certainly fit into a packet */

/* "size=8, mode=mean" */
static void list_arguments(const struct plugin_step *step, char *text, size_t size) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < step->n_arguments && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%s=%s", i ? ", " : "", step->arguments[i].name,
                                      step->arguments[i].by_default);
}

/* A line for each plug-in, and one for each of its steps. The names stay until the reply is sent: main thread only. */
static void add_plugins(struct facts *facts, const struct server *server) {
        static char names[PLUGIN_FACTS_MAX][2 * DLPLUGIN_NAME_MAX];
        const struct plugins *plugins = server->options.plugins;

        for (size_t i = 0; i < plugins_count(plugins) && facts->n < PLUGIN_FACTS_MAX; i++) {
                const struct plugin *plugin = plugins_at(plugins, i);
                const struct plugin_table *table = plugin_table(plugin);

                facts_add(facts, plugin_name(plugin), table ? "loaded" : "refused", "",
                          table ? table->about : plugin_refusal(plugin));
                for (uint32_t k = 0; table && k < table->n_steps && facts->n < PLUGIN_FACTS_MAX; k++) {
                        char *name = names[facts->n], arguments[sizeof(facts->values[0])];

                        snprintf(name, sizeof(names[0]), "%s.%s", table->name, table->steps[k].name);
                        list_arguments(&table->steps[k], arguments, sizeof(arguments));
                        facts_add(facts, name, arguments, "", table->steps[k].about);
                }
        }
}

void handle_status(struct session *session, const Dlp__Request *request) {
        static struct facts settings, obtained, counters, staging, plugins; /* main thread only */
        struct server *server = session->server;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__StatusReply status = DLP__STATUS_REPLY__INIT;
        Dlp__Node node = DLP__NODE__INIT;
        struct catalog_entry *entry;
        struct job *job;

        lent_look(pipeline_held(server->options.pipeline)); /* so that the reply shows the current state */
        settings.n = obtained.n = counters.n = staging.n = plugins.n = 0;
        add_settings(&settings, server->options.settings);
        add_obtained(&obtained, server);
        add_counters(&counters, server);
        ctl_status_add_staging(&staging, session);
        add_plugins(&plugins, server);

        status.version = (char *)(uintptr_t)server->options.version;
        status.pid = (uint32_t)getpid();
        status.up_seconds = (clock_now_ns() - server->started_ns) / 1000000000ull;
        status.started_unix = server->started_unix;
        status.state = (char *)(uintptr_t)(server->draining ? "draining" : "serving");
        status.settings = settings.pointers;
        status.n_settings = settings.n;
        status.obtained = obtained.pointers;
        status.n_obtained = obtained.n;
        status.counters = counters.pointers;
        status.n_counters = counters.n;
        status.staging = staging.pointers;
        status.n_staging = staging.n;
        status.plugins = plugins.pointers;
        status.n_plugins = plugins.n;
        status.memory_limit_bytes = server->options.budget->limit_bytes;
        status.memory_used_bytes = budget_used(server->options.budget);
        status.n_workers = pipeline_n_workers(server->options.pipeline);
        TAILQ_FOREACH(entry, &server->options.catalog->entries, entry)
                status.n_datasets += access_dataset(session, entry);
        LIST_FOREACH(job, &server->jobs, entry)
                status.n_jobs++;

        number_values_tell_node(server, &node);
        status.node = &node;

        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_STATUS;
        reply.status = &status;
        session_reply(session, &reply, NULL, 0);
}
