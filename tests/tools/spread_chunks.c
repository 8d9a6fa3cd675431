/* spread_chunks [OPTION...] check|rate|rates|beat|late|freeze: a program on several nodes, for tests of
 * staging/nodes/cluster.h and of staging/nodes/launch.h, and for measuring a line.
 *
 *   --launch HOSTS [--agent PROGRAM] [--network CIDR] [--timeout S] [--startup S]  starts itself there with the other
 *                   arguments
 *   --stall S       no progress for so long ends it (60)
 *   --chunks N      of 4 MiB (16)      --chunk-bytes N      --window N  under way at once (4)
 *
 *   check   every call with data that can be told apart; a line of JSON a node with digests of what it saw
 *   rate    node 0 spreads the chunks; MB/s and CPU time on each node
 *   rates   each node in turn spreads a chunk: a node then gets all but its own
 *   beat    does nothing but tell that it gets on, until it is ended
 *   late    tells, gets on for a second, then stops getting on at "writing slowly" on the last node; the others wait
 *   freeze  all but node 0 wait at a barrier that it never comes to
 *
 * SPREAD_CHUNKS_PROGRAM: what --launch starts in its place.
 * "ready NAME PID" on stdout when joined. Exit: 0, or 71 after a sentence on stderr. */

#include <getopt.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/staging/nodes/cluster.h"
#include "daemon/staging/nodes/launch.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define NODES_MAX 256u

struct run {
        struct cluster *cluster;
        struct node_progress news;
        uint32_t n_chunks, chunk_bytes, window;
        uint64_t n_idle_calls;
};

static _Noreturn void give_up(struct run *run, const struct why *why) {
        log_error("spread_chunks", "%s", why->text);
        if (run->cluster)
                cluster_abort(run->cluster, EX_OSERR);
        exit(EX_OSERR);
}

static void must(struct run *run, int r, const struct why *why) {
        if (r < 0)
                give_up(run, why);
}

static void digest(const void *bytes, size_t n_bytes, char ret_text[65]) {
        unsigned char sum[32];

        EVP_Digest(bytes, n_bytes, sum, NULL, EVP_sha256(), NULL);
        for (size_t i = 0; i < sizeof(sum); i++)
                snprintf(ret_text + 2 * i, 3, "%02x", sum[i]);
}

/* Bytes that tell where they are from and where they belong. */
static void fill(uint8_t *bytes, uint64_t n_bytes, uint64_t from) {
        for (uint64_t i = 0; i < n_bytes; i++)
                bytes[i] = (uint8_t)((i ^ i >> 8 ^ i >> 16) * 31 + from * 7 + 1);
}

static uint8_t *allocate(uint64_t n_bytes) {
        uint8_t *bytes = calloc(n_bytes, 1);

        if (!bytes)
                abort();
        return bytes;
}

static double cpu_seconds(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Every node's chunks in turn to all members; of chunk i node i % n is the source. `all` holds those of this node and
 * gets the others'. */
static void spread_all(struct run *run, struct cluster_group *group, const uint32_t *sources, uint32_t n_sources,
                       uint8_t *all) {
        struct cluster_spread *under_way[64] = { NULL };
        uint32_t n_started = 0, n_through = 0;
        struct why why;

        while (n_through < run->n_chunks) {
                int r;

                while (n_started < run->n_chunks && n_started - n_through < run->window) {
                        must(run,
                             spread_start(group, sources[n_started % n_sources],
                                          all + (uint64_t)n_started * run->chunk_bytes, run->chunk_bytes,
                                          &under_way[n_started % 64], &why),
                             &why);
                        n_started++;
                }
                r = spread_test(under_way[n_through % 64], &why);
                must(run, r, &why);
                if (r == 0)
                        n_through++;
                else
                        usleep(200);
                run->news.n_bytes_done = (uint64_t)n_through * run->chunk_bytes;
                must(run, cluster_tell(run->cluster, &run->news, &why), &why);
        }
}

static void check_group(struct run *run, const uint8_t *members, const char *name) {
        uint32_t n_nodes = cluster_n_nodes(run->cluster), node = cluster_node(run->cluster), n_sources = 0;
        uint64_t n_bytes = (uint64_t)run->n_chunks * run->chunk_bytes;
        _cleanup_(freep) uint32_t *sources = calloc(n_nodes, sizeof(*sources));
        _cleanup_(freep) uint8_t *all = allocate(n_bytes);
        struct cluster_group *group = NULL;
        struct why why;
        char text[65];

        for (uint32_t i = 0; i < n_nodes; i++)
                if (members[i / 8] >> i % 8 & 1)
                        sources[n_sources++] = i;
        must(run, cluster_group_new(run->cluster, members, &group, &why), &why);
        if (!group)
                return;
        for (uint32_t i = 0; i < run->n_chunks; i++)
                if (sources[i % n_sources] == node)
                        fill(all + (uint64_t)i * run->chunk_bytes, run->chunk_bytes, i);
        spread_all(run, group, sources, n_sources, all);
        cluster_group_free(group);
        digest(all, n_bytes, text);
        printf(",\"%s\":\"%s\"", name, text);
}

/* Waits for all. */
static void meet(struct run *run) {
        uint8_t mine = 1, all[NODES_MAX];
        struct why why;

        must(run, cluster_gather(run->cluster, &mine, 1, all, &why), &why);
}

/* Pieces that are more than one message, and shared bytes of no round number. */
static void check(struct run *run) {
        uint32_t n_nodes = cluster_n_nodes(run->cluster), node = cluster_node(run->cluster);
        uint64_t n_mine = (16u << 20) / n_nodes + (64u << 10), n_shared = (9u << 20) + 4321;
        _cleanup_(freep) uint8_t *mine = allocate(n_mine), *all = allocate(n_mine * n_nodes);
        _cleanup_(freep) uint8_t *shared = allocate(n_shared);
        uint8_t members[NODES_MAX / 8] = { 0 };
        uint32_t number = node * node + 5, numbers[NODES_MAX] = { 0 };
        struct why why;
        char text[65];

        printf("{\"node\":%u,\"name\":\"%s\"", node, cluster_name(run->cluster, node));
        must(run, cluster_gather(run->cluster, &number, sizeof(number), numbers, &why), &why);
        printf(",\"numbers\":[");
        for (uint32_t i = 0; i < n_nodes; i++)
                printf("%s%u", i ? "," : "", numbers[i]);
        fill(mine, n_mine, node);
        must(run, cluster_gather(run->cluster, mine, n_mine, all, &why), &why);
        digest(all, n_mine * n_nodes, text);
        printf("],\"gathered\":\"%s\"", text);
        if (node == n_nodes - 1)
                fill(shared, n_shared, 99);
        must(run, cluster_share(run->cluster, n_nodes - 1, shared, n_shared, &why), &why);
        must(run, cluster_share(run->cluster, 0, shared, 0, &why), &why);
        digest(shared, n_shared, text);
        printf(",\"shared\":\"%s\"", text);
        for (uint32_t i = 0; i < n_nodes; i++)
                members[i / 8] |= (uint8_t)(1u << i % 8);
        check_group(run, members, "all");
        for (uint32_t i = 0; i < n_nodes; i += 2)
                members[i / 8] &= (uint8_t) ~(1u << i % 8);
        if (n_nodes > 1)
                check_group(run, members, "odd");
        meet(run);
        printf("}\n");
}

static void measure(struct run *run, uint32_t n_sources) {
        uint64_t n_bytes = (uint64_t)run->n_chunks * run->chunk_bytes, begin_ns;
        _cleanup_(freep) uint8_t *all = allocate(n_bytes);
        struct cluster_group *group = NULL;
        uint8_t members[NODES_MAX / 8];
        uint32_t sources[NODES_MAX];
        double cpu, seconds;
        struct why why;

        memset(members, 0xff, sizeof(members));
        for (uint32_t i = 0; i < n_sources; i++)
                sources[i] = i;
        must(run, cluster_group_new(run->cluster, members, &group, &why), &why);
        memset(all, 1, n_bytes);
        meet(run);
        begin_ns = clock_now_ns();
        cpu = cpu_seconds();
        spread_all(run, group, sources, n_sources, all);
        seconds = (double)(clock_now_ns() - begin_ns) / 1e9;
        printf("%s: %.1f MB/s, %.1f %% of a CPU\n", cluster_name(run->cluster, cluster_node(run->cluster)),
               (double)n_bytes / seconds / 1e6, (cpu_seconds() - cpu) / seconds * 100);
        cluster_group_free(group);
}

static void rate(struct run *run) {
        measure(run, 1);
}

static void rates(struct run *run) {
        measure(run, cluster_n_nodes(run->cluster));
}

static void beat(struct run *run) {
        struct why why;

        for (;;) {
                run->news.n_bytes_done++;
                must(run, cluster_tell(run->cluster, &run->news, &why), &why);
                usleep(10000);
        }
}

static void late(struct run *run) {
        bool is_last = cluster_node(run->cluster) == cluster_n_nodes(run->cluster) - 1;
        uint64_t begin_ns = clock_now_ns();
        struct why why;

        for (;;) {
                bool gets_on = clock_now_ns() - begin_ns < 1000000000ull;

                run->news.n_bytes_done += gets_on;
                strcpy(run->news.doing, gets_on ? "hurrying" : is_last ? "writing slowly" : "waiting for more");
                must(run, cluster_tell(run->cluster, &run->news, &why), &why);
                usleep(10000);
        }
}

static void freeze(struct run *run) {
        struct why why;

        strcpy(run->news.doing, "dreaming");
        while (cluster_node(run->cluster) == 0) {
                must(run, cluster_tell(run->cluster, &run->news, &why), &why);
                usleep(10000);
        }
        meet(run);
}

static void note_idle(void *userdata) {
        ((struct run *)userdata)->n_idle_calls++;
}

static const struct {
        const char *name;
        void (*go)(struct run *run);
} MODES[] = {
        { "check", check }, { "rate", rate }, { "rates", rates },
        { "beat", beat },   { "late", late }, { "freeze", freeze },
};

static int start(struct launch_options *options, int argc, char **argv, int first) {
        char **arguments = calloc((size_t)argc + 2, sizeof(*arguments));
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
        struct why why = { 0 };
        int n = 0, r;

        if (length < 0 || !arguments)
                abort();
        path[length] = '\0';
        arguments[n++] = getenv("SPREAD_CHUNKS_PROGRAM") ? getenv("SPREAD_CHUNKS_PROGRAM") : path;
        while (first < argc)
                arguments[n++] = argv[first++];
        options->arguments = arguments;
        r = launch(options, &why);
        if (why.text[0])
                log_error("launch", "%s", why.text);
        free(arguments);
        return r < 0 ? EX_UNAVAILABLE : r;
}

int main(int argc, char **argv) {
        static const struct option OPTIONS[] = {
                { "launch", required_argument, NULL, 'l' },
                { "agent", required_argument, NULL, 'a' },
                { "network", required_argument, NULL, 'n' },
                { "timeout", required_argument, NULL, 't' },
                { "stall", required_argument, NULL, 's' },
                { "chunks", required_argument, NULL, 'c' },
                { "window", required_argument, NULL, 'w' },
                { "chunk-bytes", required_argument, NULL, 'b' },
                { "startup", required_argument, NULL, 'u' },
                { "debug", no_argument, NULL, 'd' },
                { NULL, 0, NULL, 0 },
        };
        struct run run = { .n_chunks = 16, .chunk_bytes = 4u << 20, .window = 4 };
        struct cluster_options options = { .stall_s = 60, .idle = note_idle, .userdata = &run };
        struct launch_options launched = { .network = "", .agent = "" };
        struct why why = { 0 };
        int option;

        while ((option = getopt_long(argc, argv, "+", OPTIONS, NULL)) != -1) {
                if (option == 'l')
                        launched.hosts = optarg;
                else if (option == 'a')
                        launched.agent = optarg;
                else if (option == 'n')
                        launched.network = optarg;
                else if (option == 't')
                        launched.timeout_s = (uint32_t)atoi(optarg);
                else if (option == 's')
                        options.stall_s = (uint32_t)atoi(optarg);
                else if (option == 'c')
                        run.n_chunks = (uint32_t)atoi(optarg);
                else if (option == 'b')
                        run.chunk_bytes = (uint32_t)atoi(optarg);
                else if (option == 'w')
                        run.window = (uint32_t)atoi(optarg) % 65;
                else if (option == 'u')
                        launched.startup_s = (uint32_t)atoi(optarg);
                else if (option == 'd')
                        log_set_level(LOG_LEVEL_DEBUG);
                else
                        return EX_USAGE;
                if (launched.hosts && optind < argc && strcmp(argv[optind], "--") == 0)
                        return start(&launched, argc, argv, optind + 1);
        }
        setvbuf(stdout, NULL, _IOLBF, 0);
        must(&run, cluster_join(&options, &run.cluster, &why), &why);
        if (cluster_n_nodes(run.cluster) > NODES_MAX)
                cluster_abort(run.cluster, EX_USAGE);
        printf("ready %s %d\n", cluster_name(run.cluster, cluster_node(run.cluster)), (int)getpid());
        for (size_t i = 0; i < ARRAY_SIZE(MODES); i++)
                if (optind < argc && strcmp(argv[optind], MODES[i].name) == 0) {
                        MODES[i].go(&run);
                        cluster_leave(run.cluster);
                        return 0;
                }
        cluster_abort(run.cluster, EX_USAGE);
}
