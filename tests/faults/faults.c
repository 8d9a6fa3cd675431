/* faults: runs scenarios again and again, each time with another point failing.
 *
 *         faults [--scenario NAME] [--mode alone|on] [--occurrences N] [--every K --offset J] [--jobs N] [--limit S]
 *         faults --list [--scenario NAME]                                      the sites alone
 *         faults ... --reached FILE                                            which calls were passed: unreached.py
 *         faults --scenario NAME --mode MODE --point SITE:OCCURRENCE:ERRNO     one again; its log is shown
 *
 * A run without failures says which sites there are and how often each is passed. Then each is made to fail: "alone",
 * the call at this occurrence only, and "on", every call from there until the trouble ends. Each errno of a call is
 * tried at a site's first occurrence; up to N occurrences (2; 0: all) are tried of each site, the last one among them.
 * Each run is a process forked from this one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

#include "daemon/base/cell/cell_messages.h"
#include "tests/faults/points.h"
#include "tests/faults/scene.h"

int dataloaderd_main(int argc, char **argv);

#define JOBS_MAX     32
#define FLOORS_MAX   32
#define PATIENCE_S   90 /* for one run; only tells a hang from none */
#define FAILURES_MAX 40 /* shown */

struct point {
        uint64_t site;
        uint32_t occurrence, idx_errno;
};

struct run {
        struct points *points;
        int points_fd;
        const struct scenario *scenario;
        struct point point;
        pid_t pid; /* 0: none */
        time_t since;
        char folder[80];
};

struct floor {
        char name[32];
        unsigned long n_points, n_sites;
};

static struct {
        const char *scenario, *mode;
        uint32_t occurrences, every, offset;
        unsigned jobs, limit_s, first;
        bool one, list;
        const char *reached;
        struct point point;
} options = { .occurrences = 2, .every = 1, .jobs = 6 };

static char base[64];
static struct run runs[JOBS_MAX];
static struct floor floors[FLOORS_MAX];
static unsigned n_floors;
static unsigned long n_points, n_unreached, n_bad, n_dropped;
static time_t begun;

/* ---- names --------------------------------------------------------------------------------------------------- */

/* "daemon/pipeline/workers/pool.c:31 start" of an address; relative to the tree. */
static void describe(uintptr_t address, char *text, size_t n) {
        char *at;

        if (*points_library(address)) {
                snprintf(text, n, "%s", points_library(address));
                return;
        }
        __sanitizer_symbolize_pc((void *)(address - 1), "%s:%l %f", text, n);
        for (const char *const *top = (const char *const[]){ "daemon/", "client/", "proto/", "tests/", NULL }; *top;
             top++)
                if (text[0] == '/' && (at = strstr(text, *top)))
                        memmove(text, at, strlen(at) + 1);
}

static void floor_name(const struct site *site, char name[32]) {
        char text[512];

        for (uint32_t i = 0; i < SITE_DEPTH && site->frames[i]; i++) {
                unsigned n_slashes = 0;

                if (*points_library(site->frames[i]))
                        continue;
                describe(site->frames[i], text, sizeof(text));
                if (strncmp(text, "build/", 6) == 0 || strstr(text, "generated") || strncmp(text, "tests/", 6) == 0)
                        continue;
                for (char *at = text; *at && n_slashes < 2; at++)
                        if (*at == '/' && ++n_slashes == 2)
                                *at = '\0';
                snprintf(name, 32, "%.31s", n_slashes == 2 ? text : "proto");
                return;
        }
        snprintf(name, 32, "library");
}

static struct floor *floor_of(const struct site *site) {
        char name[32];

        floor_name(site, name);
        for (unsigned i = 0; i < n_floors; i++)
                if (strcmp(floors[i].name, name) == 0)
                        return &floors[i];
        if (n_floors == FLOORS_MAX)
                return &floors[0];
        snprintf(floors[n_floors].name, sizeof(name), "%s", name);
        return &floors[n_floors++];
}

static const struct site *find_site(const struct points *from, uint64_t hash) {
        for (uint32_t i = 0; i < SITES_MAX; i++)
                if (from->sites[i].hash == hash)
                        return &from->sites[i];
        return NULL;
}

/* ---- which calls were passed --------------------------------------------------------------------------------- */

#define REACHED_MAX 16384

static struct {
        uintptr_t address; /* where the call returns to, as it is in the file; 0: empty */
        bool by_itself;    /* it needed no failure before it, so it was made to fail itself */
} reached[REACHED_MAX];

static void note_reached(const struct points *from, bool by_itself) {
        for (uint32_t i = 0; options.reached && i < SITES_MAX; i++) {
                const struct site *site = &from->sites[i];
                uintptr_t address = site->hash && site->frames[0] ? points_relative(site->frames[0]) : 0;
                size_t at = address * 0x9e3779b97f4a7c15ull % REACHED_MAX;

                if (!address || *points_library(site->frames[0]))
                        continue;
                while (reached[at].address && reached[at].address != address)
                        at = (at + 1) % REACHED_MAX;
                reached[at].address = address;
                reached[at].by_itself |= by_itself;
        }
}

static void write_reached(void) {
        FILE *file = options.reached ? fopen(options.reached, "w") : NULL;

        if (options.reached && !file)
                fprintf(stderr, "faults: %s: %s\n", options.reached, strerror(errno));
        for (size_t i = 0; file && i < REACHED_MAX; i++)
                if (reached[i].address)
                        fprintf(file, "%zx %s\n", (size_t)reached[i].address,
                                reached[i].by_itself ? "failed" : "passed");
        if (file)
                fclose(file);
}

/* ---- one run ------------------------------------------------------------------------------------------------- */

static unsigned open_files(void) {
        DIR *folder = opendir("/proc/self/fd");
        unsigned n = 0;

        while (folder && readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* Never returns. */
static void be_child(struct run *run) {
        static struct scene scene;
        unsigned n_before;
        char path[128];
        int log;

        setpgid(0, 0);
        snprintf(path, sizeof(path), "%s/log", run->folder);
        log = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        dup2(log, STDERR_FILENO);
        dup2(log, STDOUT_FILENO);
        close(log);
        signal(SIGTERM, SIG_IGN);
        dup2(run->points_fd, POINTS_FD); /* stays open in what the daemon starts */
        points = run->points;
        points_exempt = true;
        snprintf(scene.folder, sizeof(scene.folder), "%s", run->folder);
        snprintf(path, sizeof(path), "%s/data", base);
        scene.data = path;

        n_before = open_files();
        run->scenario->run(&scene);
        points_disarm();
        if (open_files() != n_before)
                scene_problem(&scene, "%u descriptors are open, before it were %u", open_files(), n_before);
        points = NULL;
        if (__lsan_do_recoverable_leak_check())
                scene_problem(&scene, "memory leaks");
        _exit(scene.n_problems ? 1 : 0);
}

static void remove_folder(const char *folder) {
        char command[256];

        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        if (system(command) != 0)
                fprintf(stderr, "faults: %s stays\n", folder);
}

static void start_run(struct run *run, const struct scenario *scenario, const struct point *point) {
        static unsigned number;

        run->scenario = scenario;
        run->point = *point;
        memset(run->points, 0, sizeof(*run->points));
        run->points->base = points_base();
        run->points->target = point->site;
        run->points->occurrence = point->occurrence;
        run->points->idx_errno = point->idx_errno;
        run->points->from_then_on = strcmp(options.mode, "on") == 0;
        snprintf(run->folder, sizeof(run->folder), "%s/%u", base, number++);
        mkdir(run->folder, 0755);
        run->since = time(NULL);
        fflush(NULL);
        run->pid = fork();
        if (run->pid == 0)
                be_child(run);
        if (run->pid < 0) {
                perror("faults: fork");
                exit(1);
        }
}

static void show_log(const struct run *run, bool all) {
        char command[256];

        snprintf(command, sizeof(command),
                 all ? "cat '%s/log'" : "tail -n 60 '%s/log' | cut -c1-300 | sed 's/^/    | /'", run->folder);
        if (system(command) != 0)
                fprintf(stderr, "faults: no log\n");
}

static void show_site(const struct site *site) {
        char text[512];

        for (uint32_t i = 0; i < SITE_DEPTH && site->frames[i]; i++) {
                describe(site->frames[i], text, sizeof(text));
                printf("    %s %s\n", i == 0 ? site->call : "   from", text);
        }
}

static void show_point(const struct run *run) {
        const struct site *site = find_site(run->points, run->point.site);

        printf("    %s, %s", run->scenario->name, options.mode);
        if (!run->point.site)
                printf(", nothing failed");
        else
                printf(": --scenario %s --mode %s --point %016llx:%u:%u", run->scenario->name, options.mode,
                       (unsigned long long)run->point.site, run->point.occurrence, run->point.idx_errno);
        printf("\n");
        if (site)
                show_site(site);
}

static void show_threads(const struct run *run) {
        char command[256];

        printf("FAILED: it hangs\n");
        snprintf(command, sizeof(command),
                 "gdb -p %d -batch -ex 'thread apply all bt 12' 2>/dev/null | grep '^[T#]' | cut -c1-200",
                 (int)run->pid);
        fflush(NULL);
        if (system(command) != 0)
                printf("    (gdb shows where, if it is installed)\n");
}

/* Returns true if the run was well. */
static bool end_run(struct run *run, int status) {
        bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

        kill(-run->pid, SIGKILL); /* whatever it started */
        run->pid = 0;
        note_reached(run->points, run->point.site == 0);
        if (run->points->n_unstored)
                n_dropped++;
        if (run->point.site && !run->points->hit)
                n_unreached++;
        if (!good && n_bad++ < FAILURES_MAX) {
                printf("FAILED: %s %d\n", WIFEXITED(status) ? "exit status" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
                show_point(run);
                fflush(NULL);
                show_log(run, false);
        } else if (options.one) {
                show_point(run);
                fflush(NULL);
                show_log(run, true);
        }
        remove_folder(run->folder);
        fflush(NULL);
        return good;
}

/* Waits until a place is free; NULL: all of them, then none is returned. */
static struct run *free_place(bool all) {
        for (;;) {
                unsigned n_busy = 0;
                int status;

                for (unsigned i = 0; i < options.jobs; i++) {
                        struct run *run = &runs[i];

                        if (run->pid && waitpid(run->pid, &status, WNOHANG) == run->pid) {
                                end_run(run, status);
                        } else if (run->pid && time(NULL) - run->since > PATIENCE_S) {
                                show_threads(run);
                                kill(run->pid, SIGKILL);
                                waitpid(run->pid, &status, 0);
                                end_run(run, status);
                        }
                        if (!run->pid && !all)
                                return run;
                        n_busy += run->pid != 0;
                }
                if (all && n_busy == 0)
                        return NULL;
                usleep(2000);
        }
}

/* ---- all points ---------------------------------------------------------------------------------------------- */

static bool time_is_over(void) {
        return options.limit_s && time(NULL) - begun > (time_t)options.limit_s;
}

static void try_point(const struct scenario *scenario, const struct site *site, uint32_t occurrence,
                      uint32_t idx_errno) {
        static unsigned long number;
        struct point point = { site->hash, occurrence, idx_errno };

        if (number++ % options.every != options.offset || time_is_over())
                return;
        floor_of(site)->n_points++;
        n_points++;
        start_run(free_place(false), scenario, &point);
}

static void try_site(const struct scenario *scenario, const struct site *site) {
        uint32_t n = options.occurrences && site->n > options.occurrences ? options.occurrences : site->n;

        floor_of(site)->n_sites++;
        if (options.list) {
                printf("  %016llx passed %u times, %u errnos\n", (unsigned long long)site->hash, site->n,
                       site->n_errnos);
                show_site(site);
                return;
        }
        for (uint32_t i = 0; i < site->n_errnos; i++)
                if (i == 0 || strcmp(options.mode, "alone") == 0)
                        try_point(scenario, site, 1, i);
        for (uint32_t i = 2; i <= n; i++)
                try_point(scenario, site, i == n ? site->n : i, i - 1);
}

static void try_scenario(const struct scenario *scenario, const char *mode) {
        static struct points seen;
        unsigned long before = n_points, bad_before = n_bad;
        struct timespec from, to;

        options.mode = mode;
        clock_gettime(CLOCK_MONOTONIC, &from);
        start_run(&runs[0], scenario, &(struct point){ 0 });
        free_place(true);
        seen = *runs[0].points;
        for (uint32_t i = 0; i < SITES_MAX; i++)
                if (seen.sites[i].hash)
                        try_site(scenario, &seen.sites[i]);
        free_place(true);
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("%-14s %-5s  %5lu points, %lu bad, %.0f s\n", scenario->name, mode, n_points - before,
               n_bad - bad_before, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
        fflush(NULL);
}

static void try_one(const struct scenario *scenario) {
        start_run(&runs[0], scenario, &options.point);
        free_place(true);
        printf("%s\n", n_unreached ? "the point was not reached" : n_bad ? "bad" : "good");
}

static void parse_point(const char *text) {
        unsigned long long site;

        if (sscanf(text, "%llx:%u:%u", &site, &options.point.occurrence, &options.point.idx_errno) != 3) {
                fprintf(stderr, "faults: --point %s: SITE:OCCURRENCE:ERRNO is wanted\n", text);
                exit(64);
        }
        options.point.site = site;
        options.one = true;
        options.jobs = 1;
}

/* Without arguments, as `make check` calls it: a minute, another part of the points each day, and another scenario
 * first, because on a slow machine the time is over before the last one. */
static void be_short(void) {
        options.every = 80;
        options.first = (unsigned)(time(NULL) / 86400 % N_SCENARIOS);
        options.offset = (uint32_t)(time(NULL) / 86400 % options.every);
        options.limit_s = 60;
}

static void parse_arguments(int argc, char **argv) {
        static const struct option OPTIONS[] = {
                { "scenario", required_argument, NULL, 's' },
                { "mode", required_argument, NULL, 'm' },
                { "occurrences", required_argument, NULL, 'n' },
                { "every", required_argument, NULL, 'e' },
                { "offset", required_argument, NULL, 'o' },
                { "jobs", required_argument, NULL, 'j' },
                { "limit", required_argument, NULL, 'l' },
                { "list", no_argument, NULL, 'L' },
                { "point", required_argument, NULL, 'p' },
                { "reached", required_argument, NULL, 'r' },
                { 0 },
        };
        int option;

        if (argc == 1)
                be_short();
        while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) >= 0)
                switch (option) {
                case 's':
                        options.scenario = optarg;
                        break;
                case 'm':
                        options.mode = optarg;
                        break;
                case 'n':
                        options.occurrences = (uint32_t)atoi(optarg);
                        break;
                case 'e':
                        options.every = (uint32_t)atoi(optarg);
                        break;
                case 'o':
                        options.offset = (uint32_t)atoi(optarg);
                        break;
                case 'j':
                        options.jobs = (unsigned)atoi(optarg);
                        break;
                case 'l':
                        options.limit_s = (unsigned)atoi(optarg);
                        break;
                case 'L':
                        options.list = true;
                        break;
                case 'r':
                        options.reached = optarg;
                        break;
                case 'p':
                        parse_point(optarg);
                        break;
                default:
                        exit(64);
                }
        if (options.jobs < 1 || options.jobs > JOBS_MAX || options.every < 1) {
                fprintf(stderr, "faults: --jobs is 1 .. %d, --every at least 1\n", JOBS_MAX);
                exit(64);
        }
}

int main(int argc, char **argv) {
        static const char *const MODES[] = { "alone", "on" };
        const char *wanted;
        char data[80];

        if (argc == 3 && strcmp(argv[1], CELL_ARGUMENT) == 0) { /* the daemon starts itself so */
                points_join();
                return dataloaderd_main(argc, argv);
        }
        parse_arguments(argc, argv);
        wanted = options.mode;
        points_begin();
        begun = time(NULL);
        snprintf(base, sizeof(base), "/tmp/dl-faults-XXXXXX");
        if (!mkdtemp(base))
                return 1;
        snprintf(data, sizeof(data), "%s/data", base);
        scene_make_data(data);
        for (unsigned i = 0; i < options.jobs; i++) {
                runs[i].points_fd = memfd_create("points", MFD_CLOEXEC);
                if (runs[i].points_fd < 0 || ftruncate(runs[i].points_fd, sizeof(struct points)) < 0)
                        return 1;
                runs[i].points = mmap(NULL, sizeof(struct points), PROT_READ | PROT_WRITE, MAP_SHARED,
                                      runs[i].points_fd, 0);
                if (runs[i].points == MAP_FAILED)
                        return 1;
        }
        if (options.every > 1)
                printf("every %u. point from number %u on (--every %u --offset %u)\n", options.every, options.offset,
                       options.every, options.offset);

        for (unsigned i = 0; i < N_SCENARIOS; i++) {
                const struct scenario *scenario = &SCENARIOS[(options.first + i) % N_SCENARIOS];

                for (unsigned m = 0; m < 2; m++)
                        if ((!options.scenario || strcmp(options.scenario, scenario->name) == 0) &&
                            (!wanted || strcmp(wanted, MODES[m]) == 0)) {
                                options.mode = MODES[m];
                                if (options.one)
                                        try_one(scenario);
                                else
                                        try_scenario(scenario, MODES[m]);
                        }
        }
        for (unsigned i = 0; i < n_floors; i++)
                printf("  %-18s %5lu points, %5lu sites\n", floors[i].name, floors[i].n_points, floors[i].n_sites);
        printf("faults: %lu points failed, %lu of them not reached again, %lu bad%s%s\n", n_points, n_unreached, n_bad,
               n_dropped ? "; there were more sites than fit" : "", time_is_over() ? "; the time was over" : "");
        remove_folder(base);
        write_reached();
        printf("%lu passed, %lu failed, 0 skipped\n", n_points - n_bad, n_bad);
        return n_bad ? 1 : 0;
}
