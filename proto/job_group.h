/* proto/job_group.h: the job, pod or service in which a process lives, and with which it is ended, by its control group.
 *
 * A batch system or a service manager kills whatever is in the control group of what ends. Of the group's path counts
 *
 *         .../job_7/step_0/user/task_1                      up to job_7 (Slurm): its steps and tasks are one
 *         /kubepods.slice/...-pod1234.slice/cri-....scope   up to the pod: its containers are one
 *         /user.slice/.../user@1000.service/a.service       the user's service; sessions are none, for what was
 *         /user.slice/user-1000.slice/session-3.scope       started there lives on after them
 *         /system.slice/a.service/x                         up to the service or scope
 *         /docker/0123...ef/x                               up to the container
 *         any other                                         all of it
 *
 * Groups below a service, scope or container do not count, because its processes may be allowed to make some, with
 * names of their choice. Slurm's scope is the exception. */
#pragma once

#include <stdint.h>

/* The number of the job that the text of a /proc/PID/cgroup names; 0: none. Slurm and Kubernetes may use any of the
 * hierarchies; for all others only version 2 and systemd's count, because processes are kept in these. */
uint64_t dlp_job_group_parse(const char *text);

/* The same for a file, such as "/proc/self/cgroup"; 0 also if it cannot be read. */
uint64_t dlp_job_group(const char *path);
