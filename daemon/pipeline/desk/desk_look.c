/* pipeline/desk/desk_look.c: what a desk waits for, seen from time to time by the planner, and how long it may. */
#include "daemon/pipeline/desk/desk_private.h"

#include <stdio.h>

#include "daemon/base/machine/machine_process.h"

static struct dlp_wait wait_of(const struct desk *desk, enum dlp_wait_reason reason, uint64_t since_ns) {
        struct dlp_wait wait = { .reason = reason, .since_ns = since_ns };

        snprintf(wait.detail, sizeof(wait.detail), "%s", desk_function(desk));
        return wait;
}

/* No process is there for what waits. */
static bool look_alone(struct desk *desk, uint64_t now_ns, struct dlp_wait *ret_wait) {
        const char *function = desk_function(desk);
        uint64_t alone_ns;
        struct why why;

        pthread_mutex_lock(&desk->lock);
        alone_ns = desk->n_waiting == 0 || desk->n_room > 0 ? 0 : desk->alone_ns;
        pthread_mutex_unlock(&desk->lock);
        if (alone_ns == 0 || now_ns < alone_ns + TELL_NS)
                return false;
        *ret_wait = wait_of(desk, DLP_WAIT_PROCESS, alone_ns);
        if (now_ns < alone_ns + GIVE_UP_NS)
                return true;
        why_set(&why, 0,
                "python(%s): no worker process of the trainer came within %llu s: functions are named when a loader is "
                "opened, as in dlclient.Loader(..., workers={\"%s\": function})",
                function, GIVE_UP_NS / 1000000000u, function);
        desk_end_all(desk, &why);
        return true;
}

/* A process does not come back from its sample. One that is stopped, with its trainer or alone, is waited for. */
static bool look_overdue(struct desk *desk, uint64_t now_ns, struct dlp_wait *ret_wait, bool *ret_tell) {
        struct overdue overdue;
        uint64_t passed_ns;

        pthread_mutex_lock(&desk->lock);
        overdue = desk->overdue;
        pthread_mutex_unlock(&desk->lock);
        passed_ns = now_ns > overdue.begun_ns ? now_ns - overdue.begun_ns : 0;
        if (overdue.limit_ns == 0 || passed_ns < overdue.limit_ns / 2)
                return false;
        *ret_wait = wait_of(desk, DLP_WAIT_FUNCTION, overdue.begun_ns);
        ret_wait->until_ns = overdue.begun_ns + overdue.limit_ns;
        ret_wait->process = (uint32_t)overdue.pid;
        ret_wait->sample = overdue.sample;
        ret_wait->n_samples = overdue.is_run ? DLP_RUN_MAX : 1;
        if (passed_ns < overdue.limit_ns || process_is_stopped(overdue.pid))
                return true;
        pthread_mutex_lock(&desk->lock);
        desk->is_late = desk->overdue.begun_ns == overdue.begun_ns; /* else it has just come back */
        *ret_tell = desk->is_late && !desk->is_told;
        desk->is_told |= *ret_tell;
        pthread_mutex_unlock(&desk->lock);
        return true;
}

/* It is not said how a process ended. */
static bool look_lost(struct desk *desk, uint64_t now_ns, struct dlp_wait *ret_wait) {
        struct tasks late = STAILQ_HEAD_INITIALIZER(late);
        uint64_t lost_ns = 0;
        struct task *task;

        pthread_mutex_lock(&desk->lock);
        while ((task = STAILQ_FIRST(&desk->lost)) && now_ns >= task->function.lost_ns + LOST_NS) {
                STAILQ_REMOVE_HEAD(&desk->lost, entry);
                STAILQ_INSERT_TAIL(&late, task, entry);
        }
        if (task)
                lost_ns = task->function.lost_ns;
        pthread_mutex_unlock(&desk->lock);
        while ((task = STAILQ_FIRST(&late))) {
                STAILQ_REMOVE_HEAD(&late, entry);
                desk_release(desk, task, "it ended, and the process that supervises did not say how");
        }
        if (lost_ns == 0 || now_ns < lost_ns + TELL_NS)
                return false;
        *ret_wait = wait_of(desk, DLP_WAIT_ENDING, lost_ns);
        return true;
}

bool desk_look(struct desk *desk, uint64_t now_ns, struct dlp_wait *ret_wait, bool *ret_tell) {
        bool is_lost = look_lost(desk, now_ns, ret_wait);

        *ret_tell = false;
        return look_alone(desk, now_ns, ret_wait) || look_overdue(desk, now_ns, ret_wait, ret_tell) || is_lost;
}
