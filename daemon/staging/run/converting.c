#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/work/crew.h"
#include "daemon/data/format.h"
#include "daemon/staging/prepare/converter.h"
#include "daemon/staging/run/conversions.h"
#include "daemon/staging/run/stage_made.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/shorten.h"
#include "proto/base/text.h"

#define PART           ".part"
#define TICK_NS        200000000ull
#define GROWTH_DEFAULT 100u /* what a command may write for each byte of the file, unless unpack_limit says more */
#define NAME_KEPT      200  /* bytes of a file's name that the new file's name has */
#define LIMIT_MIN      (1ull << 30) /* bytes: a small file may be a list of large ones */

/* Each file of the dataset goes through a program; what it writes is a file of the new version. */
struct converting {
        struct making making; /* first: the making's functions get this */
        struct run *run;
        uint64_t *idx_source; /* of the file that is converted, in the plan of the source */
        uint64_t n_files;
        const char *command; /* of all files; NULL: by their endings */
        struct conversions conversions;
        char folder[PATH_MAX]; /* of the source, without links */

        _Atomic uint64_t next;
        _Atomic bool is_over; /* one failed */
        pthread_mutex_t lock; /* covers the rest */
        int error;            /* of the first that failed */
        struct why why;
};

static const struct converting *converting_of(const struct making *making) {
        return (const struct converting *)(const void *)making;
}

static const char *source_path(const struct converting *converting, uint64_t idx) {
        return plan_file(converting->making.source->plan, converting->idx_source[idx])->path;
}

static void name_file(const struct making *making, uint64_t idx, char ret_name[MADE_NAME_SIZE]) {
        snprintf(ret_name, MADE_NAME_SIZE, "%08llu%s", (unsigned long long)idx,
                 converted_suffix(making->files[idx].kind));
}

/* NULL: the file is not converted. */
static const struct format_conversion *find_conversion(const struct converting *converting, const char *path) {
        return converting->command ? NULL : conversion_of(path, &converting->conversions);
}

/* In one folder, because not every format looks for its files in folders below, and in the order of the source:
 * "a/x.tar.gz" becomes "000007-x.tar". A long name is cut where a character of UTF-8 ends. */
static void path_of_file(const struct making *making, uint64_t idx, char ret_path[PATH_MAX]) {
        const struct converting *converting = converting_of(making);
        const char *path = source_path(converting, idx);
        const char *name = text_after_slash(path), *suffix = converted_suffix(making->files[idx].kind);
        const struct format_conversion *conversion = find_conversion(converting, path);
        int n;

        if (conversion && conversion->becomes) {
                conversion_path(conversion, path, ret_path, PATH_MAX);
                return;
        }
        n = (int)strlen(name) - (conversion ? (int)strlen(conversion->ending) : 0);

        if (n > NAME_KEPT)
                for (n = NAME_KEPT; n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80;)
                        n--;
        snprintf(ret_path, PATH_MAX, "%06llu-%.*s", (unsigned long long)idx, n, name);
        if (!text_ends_with(ret_path, suffix))
                strncat(ret_path, suffix, PATH_MAX - strlen(ret_path) - 1);
}

/* A dataset has one format, so files of another one would not be served. */
static int check_kinds(const struct making *making, struct why *why) {
        const struct converting *converting = converting_of(making);
        const struct format *format;
        uint64_t first = 0;

        while (first < making->n_files && making->files[first].kind == CONVERTED_NOTHING)
                first++;
        if (first == making->n_files)
                return why_set(why, -EINVAL, "the command wrote nothing for any of the %llu files",
                               (unsigned long long)making->n_files);
        for (uint64_t i = first; i < making->n_files; i++)
                if (making->files[i].kind != CONVERTED_NOTHING && making->files[i].kind != making->files[first].kind)
                        return why_set(why, -EINVAL,
                                       "the command wrote a %s file for %s, and a %s file for %s; it must write "
                                       "the same form for all files",
                                       converted_suffix(making->files[first].kind), source_path(converting, first),
                                       converted_suffix(making->files[i].kind), source_path(converting, i));
        format = converted_format(making->files[first].kind);
        for (uint64_t i = first + 1; i < making->n_files && format && format->written->is_alone; i++)
                if (making->files[i].kind == making->files[first].kind)
                        return why_set(why, -EINVAL,
                                       "%s and %s are archives of arrays, and a dataset is one of them: stage "
                                       "each as a dataset of its own, whose origin names it",
                                       source_path(converting, first), source_path(converting, i));
        return 0;
}

/* ---- is it what it seems? ---------------------------------------------------------------------------------------- */

/* The samples of the new file are looked for, as they will be when all files are there: what a program left unfinished
 * must not stay as if it were whole. */
static int verify(struct converting *converting, uint64_t idx, uint64_t kind, const char *name, struct why *why) {
        const struct format *format = converted_format(kind);
        const struct making *making = &converting->making;
        const struct files files = { .root = making->folder, .names = &name, .n_names = 1 };
        struct index_watch watch = { .cancel = converting->run->cancel };
        struct index_builder *builder = NULL;
        struct format_options options = { 0 };
        struct source *source = NULL;
        struct why inner;
        int r;

        if (!format) /* it may need the others */
                return 0;
        r = format_options_parse(converting->run->dataset->options, format, &options, why);
        if (r < 0)
                return r;
        if (format->build)
                r = format_build(format, making->folder_fd, &files, &options, &watch, &builder, &inner);
        else
                r = format->open(making->folder_fd, &files, &options, &watch, NULL, &source, &inner);
        format_options_fini(&options);
        source_close(source);
        index_builder_free(builder);
        if (r < 0 && r != -ECANCELED)
                why_set(why, -EINVAL, "what the command wrote for %s cannot be served: %s",
                        source_path(converting, idx), inner.text);
        return r < 0 && r != -ECANCELED ? -EINVAL : r;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static uint64_t converting_limit_of(const struct converting *converting, uint64_t idx) {
        const struct plan_file *file = plan_file(converting->making.source->plan, converting->idx_source[idx]);
        uint64_t limit = converting->run->dataset->unpack_limit;

        if (limit > 0)
                return limit;
        return file->n_bytes * GROWTH_DEFAULT < LIMIT_MIN ? LIMIT_MIN : file->n_bytes * GROWTH_DEFAULT;
}

/* Did an earlier run convert it? Only what is whole has such a name. */
static bool converting_find_kept(struct converting *converting, uint64_t idx) {
        struct making *making = &converting->making;
        struct stat status;

        for (uint64_t kind = 0; kind < CONVERTED_FORMATS || format_at(kind - CONVERTED_FORMATS); kind++) {
                char name[MADE_NAME_SIZE];

                if (!converted_suffix(kind))
                        continue;
                making->files[idx].kind = kind;
                name_file(making, idx, name);
                if (fstatat(making->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
                        return true;
        }
        making->files[idx].kind = CONVERTED_NOTHING;
        return false;
}

/* The program for a file: words of which the last is NULL. */
static void find_words(const struct converting *converting, const char *path, const char *ret_words[FORMAT_WORDS]) {
        const char *python = getenv("DATALOADERD_PYTHON");

        if (converting->command) {
                ret_words[0] = "/bin/sh";
                ret_words[1] = "-c";
                ret_words[2] = converting->command;
                return;
        }
        memcpy(ret_words, find_conversion(converting, path)->words, FORMAT_WORDS * sizeof(*ret_words));
        if (!ret_words[0])
                ret_words[0] = python ? python : "python3";
}

static int convert_into(struct converting *converting, uint64_t idx, const char *part, struct why *why) {
        struct making *making = &converting->making;
        const char *words[FORMAT_WORDS] = { NULL };
        struct converter_job job = {
                .words = words,
                .folder = converting->folder,
                .path = source_path(converting, idx),
                .limit_bytes = converting_limit_of(converting, idx),
                .stall_s = (uint32_t)converting->run->dataset->stall_timeout,
                .cancel = converting->run->cancel,
        };
        const struct format_conversion *conversion = find_conversion(converting, job.path);
        _cleanup_(closep) int fd = openat(making->folder_fd, part,
                                          O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        uint64_t kind = CONVERTED_NOTHING;
        char name[MADE_NAME_SIZE];
        int r;

        if (fd < 0)
                return why_errno(why, -errno, "%s/%s", making->folder, part);
        find_words(converting, job.path, words);
        job.out_fd = fd;
        job.is_named = conversion && conversion->becomes;
        r = converter_run(&job, &kind, why);
        if (r == 0)
                r = verify(converting, idx, kind, part, why);
        if (r == 0 && fsync(fd) < 0)
                r = why_errno(why, -errno, "%s/%s", making->folder, part);
        if (r < 0)
                return r;
        making->files[idx].kind = kind;
        name_file(making, idx, name);
        if (renameat(making->folder_fd, part, making->folder_fd, name) < 0)
                return why_errno(why, -errno, "%s/%s", making->folder, name);
        return 0;
}

static int convert_one(struct converting *converting, uint64_t idx, struct why *why) {
        char part[MADE_NAME_SIZE];
        int r;

        if (converting_find_kept(converting, idx))
                return 0;
        snprintf(part, sizeof(part), "%08llu" PART, (unsigned long long)idx);
        r = convert_into(converting, idx, part, why);
        if (r < 0)
                unlinkat(converting->making.folder_fd, part, 0);
        return r;
}

/* ---- all of this node -------------------------------------------------------------------------------------------- */

static void converting_work(void *userdata) {
        struct converting *converting = userdata;
        struct run *run = converting->run;
        uint64_t n_makers = made_n_makers(run);

        while (!atomic_load(&converting->is_over) && !(run->cancel && atomic_load(run->cancel))) {
                uint64_t idx = run->node + atomic_fetch_add(&converting->next, 1) * n_makers;
                struct why why = { 0 };
                int r;

                if (idx >= converting->n_files)
                        return;
                r = convert_one(converting, idx, &why);
                if (r == 0) {
                        atomic_fetch_add(&run->n_steps_done, 1);
                        continue;
                }
                pthread_mutex_lock(&converting->lock);
                if (converting->error == 0) {
                        converting->error = r;
                        converting->why = why;
                }
                pthread_mutex_unlock(&converting->lock);
                atomic_store(&converting->is_over, true);
        }
}

static void converting_tick(void *userdata) {
}

static int convert_mine(struct run *run, void *argument, struct why *why) {
        struct converting *converting = argument;
        struct cpus cpus;
        uint32_t n_threads;
        int r = made_alloc(&converting->making, converting->n_files, why);

        if (r == 0 && !realpath(tree_root(converting->making.source->tree), converting->folder))
                r = why_errno(why, -errno, "%s", tree_root(converting->making.source->tree));
        if (r < 0)
                return r;
        cpus_find(&cpus);
        n_threads = cpus_n_threads(&cpus);
        r = crew_run("convert", n_threads < CREW_MAX ? n_threads : CREW_MAX, converting_work, TICK_NS, converting_tick,
                     converting);
        if (r < 0)
                return why_errno(why, r, "threads that convert");
        if (run->cancel && atomic_load(run->cancel))
                return -ECANCELED;
        *why = converting->why;
        return converting->error;
}

/* ---- what is converted ------------------------------------------------------------------------------------------- */

/* What is left out is said: it may be there by mistake. */
static void say_left_out(struct run *run, uint64_t n, const char *first) {
        char text[DLP_TEXT_MAX];

        shorten(text, sizeof(text),
                "%llu files are left out, because nothing is to be done to files of such names; the first: %s",
                (unsigned long long)n, first);
        if (run->node == 0)
                run_say(run, "info", text);
}

static int refuse_files(struct why *why) {
        char known[256] = "";
        size_t at = 0;

        for (size_t i = 0; format_at(i); i++)
                if (format_at(i)->converts && at < sizeof(known))
                        at += (size_t)snprintf(known + at, sizeof(known) - at, "%s, ", format_at(i)->converts);
        return why_set(
                why, -EINVAL,
                "prepare = \"convert\" converts %scompressed files (.gz, .zst, .xz, .bz2, .lz4), and the dataset "
                "has none; for other files write prepare = \"command: ...\"",
                known);
}

static int converting_list_files(struct converting *converting, const struct plan *plan, struct why *why) {
        uint64_t n = plan_n_files(plan), n_unneeded = 0, n_left_out;
        const char *first = NULL;

        converting->idx_source = calloc(n, sizeof(*converting->idx_source));
        if (!converting->idx_source)
                return why_errno(why, -ENOMEM, "%llu files", (unsigned long long)n);
        if (!converting->command)
                conversions_find(plan, &converting->conversions);
        for (uint64_t i = 0; i < n; i++) {
                const char *path = plan_file(plan, i)->path;

                if (converting->conversions.keeps_names && conversion_is_needless(plan, path))
                        n_unneeded++;
                else if (converting->command || find_conversion(converting, path))
                        converting->idx_source[converting->n_files++] = i;
                else if (!first)
                        first = path;
        }
        n_left_out = n - converting->n_files - n_unneeded;
        if (converting->n_files == 0)
                return refuse_files(why);
        if (n_left_out > 0)
                say_left_out(converting->run, n_left_out, first);
        return 0;
}

/* Files that another command made are not taken for those of this one. */
static void name_folder(const char *prepare, char *ret_suffix, size_t size) {
        uint64_t hash = 14695981039346656037ull; /* FNV-1a */

        for (const char *c = prepare; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
        snprintf(ret_suffix, size, ".converted-%016llx", (unsigned long long)hash);
}

int version_convert(struct run *run, struct version *version, const struct steps *steps, struct why *why) {
        struct converting converting = {
                .making = { .phase = "converting",
                            .make = convert_mine,
                            .name = name_file,
                            .path = path_of_file,
                            .check = check_kinds,
                            .source = version },
                .run = run,
                .command = steps->command,
        };
        char suffix[40];
        int r;

        name_folder(run->dataset->prepare, suffix, sizeof(suffix));
        converting.making.suffix = suffix;
        pthread_mutex_init(&converting.lock, NULL);
        r = agree(run, converting_list_files(&converting, version->plan, why), why);
        if (r == 0)
                r = version_make(run, version, &converting.making, why);
        pthread_mutex_destroy(&converting.lock);
        free(converting.idx_source);
        return r;
}
