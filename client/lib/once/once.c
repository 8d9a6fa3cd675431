/* One of many processes does the work, the others wait.
 *
 * A process that gets the lock reads the record. If the work is done, or if the attempt that the process waited for has
 * failed, that is the outcome. Otherwise it writes "running" and keeps the lock until the work has ended. The kernel
 * releases the lock of a dead process; a record that says "running" while the lock is free was left by a dead runner,
 * and the work begins again.
 *
 * Waiting means polling: a network file system cannot wake anybody, and on one node a few processes that look 20 times
 * a second cost nothing compared with the work that they wait for. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/include/dlclient.h"
#include "client/lib/client_clock.h"
#include "client/lib/once/once_file.h"
#include "client/lib/once/once_record.h"
#include "client/lib/reason.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/shown/shorten.h"

#define PAUSE_MIN_NS      1000000ull
#define PAUSE_NODE_NS     50000000ull
#define PAUSE_CLUSTER_NS  2000000000ull /* a thousand nodes may poll one server */
#define FIRST_PROGRESS_NS 3000000000ull
#define PROGRESS_STEP_NS  60000000000ull

struct dlc_once {
        struct dli_once_file file;
        struct why reason;
        char name[DLC_ONCE_NAME_MAX];
        char key[DLI_ONCE_KEY_MAX];
        bool cluster, again;
        dlc_progress_fn on_progress;
        void *userdata;

        pid_t owner;                 /* the process that opened it: a fork's child is another process */
        struct dli_once_record seen; /* the end of an attempt that was there when we opened, without its texts */
        int outcome;                 /* enum dlc_once_outcome; 0: still waiting */
        bool was_ended;              /* we have reported the end of the work */
        uint64_t since_ns, next_progress_ns; /* of waiting; 0: not yet */
        struct dli_once_record record;       /* the record of the outcome, or of the process that is waited for */
        struct why remark;
        struct dlc_once_info info;
};

static int once_check_handle(struct dlc_once *once, const char *function) {
        if (!once)
                return dli_refuse(-EINVAL, "%s: once must not be NULL", function);
        if (once->owner != getpid())
                return dli_refuse(-ECHILD, "%s: opened before a fork; only the parent can use it", function);
        return 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static bool once_is_name(const char *name) {
        static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

        return name[n] == '\0' && n > 0 && n < DLC_ONCE_NAME_MAX && strchr(LETTERS, name[0]);
}

static bool once_is_key(const char *key) {
        size_t n = 0;

        for (; key[n] && n < DLI_ONCE_KEY_MAX; n++)
                if (key[n] < ' ' || key[n] > '~')
                        return false;
        return n > 0 && n < DLI_ONCE_KEY_MAX;
}

/* Options of an older program are shorter; in those of a newer program, fields that we do not know must be zero. */
static int once_copy_options(const struct dlc_once_options *options, struct why *reason,
                             struct dlc_once_options *ret_options) {
        struct dlc_once_options copy = DLC_ONCE_OPTIONS_INIT;
        size_t size = options ? options->size : 0;

        if (size < offsetof(struct dlc_once_options, scope) || size > 4096)
                return why_set(reason, -EINVAL,
                               "options: not initialised; begin with struct dlc_once_options o = "
                               "DLC_ONCE_OPTIONS_INIT");
        for (size_t i = sizeof(copy); i < size; i++)
                if (((const uint8_t *)options)[i] != 0)
                        return why_set(
                                reason, -EINVAL,
                                "options: the program sets one that libdlclient %s does not know; install a newer one",
                                dlc_version());
        memcpy(&copy, options, size < sizeof(copy) ? size : sizeof(copy));
        *ret_options = copy;
        return 0;
}

static int take_options(struct dlc_once *once, const struct dlc_once_options *options, struct why *reason) {
        const char *scope = options->scope ? options->scope : "node", *key = options->key ? options->key : "-";
        struct nearest nearest;

        if (!options->name || !once_is_name(options->name))
                return why_set(reason, -EINVAL,
                               "name: \"%s\" is not allowed; 1 to %u letters, digits, '.', '_' and '-', "
                               "beginning with a letter or digit",
                               options->name ? options->name : "", DLC_ONCE_NAME_MAX - 1);
        if (strcmp(scope, "node") != 0 && strcmp(scope, "cluster") != 0)
                return why_set(reason, -EINVAL, "scope: \"%s\" is not known%s; choose one of: node cluster", scope,
                               nearest_in(&nearest, scope, strlen(scope), "node cluster"));
        if (!once_is_key(key))
                return why_set(reason, -EINVAL,
                               "key: must have 1 to %u printable ASCII characters; take a digest of what is "
                               "longer",
                               DLI_ONCE_KEY_MAX - 1);
        strcpy(once->name, options->name);
        strcpy(once->key, key);
        once->cluster = strcmp(scope, "cluster") == 0;
        once->again = options->again;
        once->on_progress = options->on_progress;
        once->userdata = options->userdata;
        return 0;
}

/* Remembers how the last attempt ended before we opened: this record is not about what we wait for. */
static int look_back(struct dlc_once *once, struct why *reason) {
        struct dli_once_record record = { 0 };
        int r = dli_once_record_read(once->file.fd, &record);

        if (r < 0)
                return why_errno(reason, r, "%s cannot be read", once->file.path);
        if (r == 0 && record.state != DLI_ONCE_RUNNING) {
                once->seen = record;
                once->seen.text = once->seen.result = NULL;
        }
        dli_once_record_clear(&record);
        return 0;
}

static void free_oncep(struct dlc_once **once) {
        if (!*once)
                return;
        dli_once_file_close(&(*once)->file, false);
        free(*once);
}

int dlc_once_open(const struct dlc_once_options *options, struct dlc_once **ret_once) {
        _cleanup_(free_oncep) struct dlc_once *once = calloc(1, sizeof(*once));
        struct dlc_once_options copy = DLC_ONCE_OPTIONS_INIT;
        struct why reason;
        int r;

        if (!once)
                return dli_refuse(-ENOMEM, "no memory");
        once->file.fd = once->file.folder_fd = -1;
        once->owner = getpid();
        if (!ret_once)
                return dli_refuse(-EINVAL, "ret_once must not be NULL");
        r = once_copy_options(options, &reason, &copy);
        if (r == 0)
                r = take_options(once, &copy, &reason);
        if (r == 0)
                r = dli_once_file_open(&once->file, once->name, once->cluster, copy.dir, &reason);
        if (r == 0)
                r = look_back(once, &reason);
        if (r < 0)
                return dli_report(&reason, r);
        *ret_once = once;
        once = NULL;
        return 0;
}

void dlc_once_close(struct dlc_once *once) {
        if (!once)
                return;
        dli_once_file_close(&once->file, once->owner == getpid());
        dli_once_record_clear(&once->record);
        free(once);
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

/* Was the record written after we opened? Its number alone does not tell: where a file was damaged or removed, the
 * numbers begin at 1 again. */
static bool is_later(const struct dlc_once *once, const struct dli_once_record *record) {
        const struct dli_once_record *seen = &once->seen;

        return record->attempt != seen->attempt || record->when != seen->when || record->pid != seen->pid ||
               strcmp(record->host, seen->host) != 0;
}

/* What a record means for this process: an outcome, or 0 if the work still has to be done. */
static int once_judge(const struct dlc_once *once, const struct dli_once_record *record) {
        if (strcmp(record->key, once->key) != 0)
                return 0;
        if (record->state == DLI_ONCE_ENDED_DONE && (is_later(once, record) || !once->again))
                return DLC_ONCE_DONE;
        return record->state == DLI_ONCE_ENDED_FAILED && is_later(once, record) ? DLC_ONCE_FAILED : 0;
}

static int once_settle(struct dlc_once *once, int outcome) {
        const struct dli_once_record *record = &once->record;

        once->outcome = outcome;
        once->info = (struct dlc_once_info){
                .attempt = record->attempt,
                .status = record->status,
                .text = record->text ? record->text : "",
                .result = record->result ? record->result : "",
                .host = record->host,
                .pid = record->pid,
                .when = record->when,
                .remark = once->remark.text,
        };
        return outcome;
}

/* Replaces our copy of the record by the one in the file. 0: there is one; DLI_ONCE_ABSENT, DLI_ONCE_DAMAGED, or an
 * errno. */
static int reread(struct dlc_once *once) {
        struct dli_once_record record;
        int r = dli_once_record_read(once->file.fd, &record);

        if (r < 0)
                return why_errno(&once->reason, r, "%s cannot be read", once->file.path);
        if (r == 0) {
                dli_once_record_clear(&once->record);
                once->record = record;
        }
        return r;
}

/* We have the lock, and the work has to be done. `found`: result of the last reread(). */
static int once_begin(struct dlc_once *once, int found) {
        const struct dli_once_record *before = &once->record;
        struct dli_once_record mine = { .state = DLI_ONCE_RUNNING, .pid = getpid(), .when = time(NULL) };
        int r;

        if (found == DLI_ONCE_DAMAGED)
                why_set(&once->remark, 0, "%s was damaged and is ignored: doing the work again", once->file.path);
        if (found == 0 && before->state == DLI_ONCE_RUNNING)
                why_set(&once->remark, 0, "pid %" PRId64 " on %s died at the work: doing it again", before->pid,
                        before->host);
        mine.attempt = (found == 0 ? before->attempt : once->seen.attempt) + 1;
        strcpy(mine.key, once->key);
        if (gethostname(mine.host, sizeof(mine.host) - 1) < 0 || !*mine.host || strchr(mine.host, '\n'))
                strcpy(mine.host, "localhost");

        r = dli_once_record_write(once->file.fd, &mine); /* so a full disk is noticed now, not after the work */
        if (r < 0)
                return why_errno(&once->reason, r, "%s cannot be written", once->file.path);
        dli_once_record_clear(&once->record);
        once->record = mine;
        return once_settle(once, DLC_ONCE_RUN);
}

/* Looks once. Returns an outcome, 0 (not yet), or an errno. */
static int once_look(struct dlc_once *once) {
        int found, outcome, r;

        /* First without the lock: the process that holds it must not block those that only want to know the outcome. */
        found = reread(once);
        if (found < 0)
                return found;
        outcome = found == 0 ? once_judge(once, &once->record) : 0;
        if (outcome > 0)
                return once_settle(once, outcome);

        r = dli_once_file_lock(&once->file, &once->reason);
        if (r < 0 || !once->file.is_locked)
                return r;
        found = reread(once);
        outcome = found == 0 ? once_judge(once, &once->record) : 0;
        if (found >= 0)
                r = outcome > 0 ? once_settle(once, outcome) : once_begin(once, found);
        if (r != DLC_ONCE_RUN)
                dli_once_file_unlock(&once->file);
        return found < 0 ? found : r;
}

static void once_tell_progress(struct dlc_once *once, uint64_t now_ns) {
        uint64_t waited_ns = now_ns - once->since_ns;
        char text[DLP_TEXT_MAX];

        if (!once->on_progress || now_ns < once->next_progress_ns)
                return;
        if (once->record.attempt > 0)
                snprintf(text, sizeof(text), "%s: waiting for pid %" PRId64 " on %s, %" PRIu64 " s", once->name,
                         once->record.pid, once->record.host, waited_ns / 1000000000u);
        else
                shorten(text, sizeof(text), "%s: waiting for the process that has locked %s, %" PRIu64 " s", once->name,
                        once->file.path, waited_ns / 1000000000u);
        once->next_progress_ns = now_ns + (waited_ns < PROGRESS_STEP_NS ? waited_ns : PROGRESS_STEP_NS);
        once->on_progress(once->userdata, text);
}

/* Sleeps until the next look. Returns 0; -ETIMEDOUT if the deadline has come; -EINTR. */
static int once_pause_until(struct dlc_once *once, uint64_t deadline_ns) {
        uint64_t now_ns = clock_now_ns(), pause_ns, most_ns = once->cluster ? PAUSE_CLUSTER_NS : PAUSE_NODE_NS;
        struct timespec pause;

        if (now_ns >= deadline_ns)
                return -ETIMEDOUT;
        once_tell_progress(once, now_ns);
        pause_ns = (now_ns - once->since_ns) / 10;
        pause_ns += pause_ns * (now_ns >> 10 & 0xff) / 1024; /* so that processes that began together drift apart */
        if (pause_ns > most_ns)
                pause_ns = most_ns;
        if (pause_ns < PAUSE_MIN_NS)
                pause_ns = PAUSE_MIN_NS;
        if (pause_ns > deadline_ns - now_ns)
                pause_ns = deadline_ns - now_ns;
        pause.tv_sec = (time_t)(pause_ns / 1000000000u);
        pause.tv_nsec = (long)(pause_ns % 1000000000u);
        return nanosleep(&pause, NULL) < 0 && errno == EINTR ? -EINTR : 0;
}

int dlc_once_wait(struct dlc_once *once, int timeout_ms) {
        uint64_t deadline_ns = dli_deadline(timeout_ms);
        int r = once_check_handle(once, "dlc_once_wait");

        if (r < 0 || once->outcome > 0)
                return r < 0 ? r : once->outcome;
        if (once->since_ns == 0) {
                once->since_ns = clock_now_ns();
                once->next_progress_ns = once->since_ns + FIRST_PROGRESS_NS;
        }
        while ((r = once_look(once)) == 0) {
                r = once_pause_until(once, deadline_ns);
                if (r == -EINTR)
                        why_set(&once->reason, r, "a signal came while waiting for pid %" PRId64 " on %s",
                                once->record.pid, once->record.host);
                else if (r == -ETIMEDOUT)
                        why_set(&once->reason, r, "%s: still being done by pid %" PRId64 " on %s", once->name,
                                once->record.pid, once->record.host);
                if (r < 0)
                        break;
        }
        return r < 0 ? dli_report(&once->reason, r) : r;
}

/* ---- ending -------------------------------------------------------------------------------------------------- */

/* Keeps the end of a text, because errors stand there. Does not begin in the middle of a character. */
static const char *tail_of(const char *text) {
        size_t n = strlen(text);

        if (n <= DLC_ONCE_TEXT_MAX)
                return text;
        text += n - DLC_ONCE_TEXT_MAX;
        while (((unsigned char)*text & 0xc0) == 0x80)
                text++;
        return text;
}

static int once_end(struct dlc_once *once, enum dlc_once_outcome outcome, int status, const char *text,
                    const char *result) {
        struct dli_once_record record = once->record;
        int r;

        if (once->outcome != DLC_ONCE_RUN || once->was_ended)
                return why_set(&once->reason, -EINVAL, "dlc_once_end: the caller is not running the work");
        if (outcome != DLC_ONCE_DONE && outcome != DLC_ONCE_FAILED)
                return why_set(&once->reason, -EINVAL,
                               "dlc_once_end: outcome %d; DLC_ONCE_DONE or DLC_ONCE_FAILED is expected", (int)outcome);
        if (result && strlen(result) > DLC_ONCE_RESULT_MAX)
                return why_set(&once->reason, -E2BIG,
                               "the result has %zu bytes, at most %u are allowed; write it to a file", strlen(result),
                               DLC_ONCE_RESULT_MAX);
        record.state = outcome == DLC_ONCE_DONE ? DLI_ONCE_ENDED_DONE : DLI_ONCE_ENDED_FAILED;
        record.status = status;
        record.when = time(NULL);
        record.text = text && *text ? strdup(tail_of(text)) : NULL;
        record.result = result && *result ? strdup(result) : NULL;
        if ((text && *text && !record.text) || (result && *result && !record.result)) {
                dli_once_record_clear(&record);
                return why_set(&once->reason, -ENOMEM, "no memory");
        }
        r = dli_once_record_write(once->file.fd, &record);
        if (r < 0)
                why_errno(&once->reason, r, "%s cannot be written: the others will do it again", once->file.path);
        once->was_ended = true;
        dli_once_record_clear(&once->record);
        once->record = record;
        once_settle(once, once->outcome);
        dli_once_file_unlock(&once->file);
        return r;
}

int dlc_once_end(struct dlc_once *once, enum dlc_once_outcome outcome, int status, const char *text,
                 const char *result) {
        int r = once_check_handle(once, "dlc_once_end");

        if (r == 0) {
                r = once_end(once, outcome, status, text, result);
                if (r < 0)
                        dli_report(&once->reason, r);
        }
        return r;
}

const struct dlc_once_info *dlc_once_get_info(const struct dlc_once *once) {
        return once && once->outcome > 0 ? &once->info : NULL;
}
