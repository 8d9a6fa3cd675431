#include "client/dlctl/diagnose/job_name.h"

#include <stdio.h>
#include <string.h>

#include "client/dlctl/command.h"
#include "proto/base/nearest.h"

int job_name_check(const struct glance *glance, const char *command, const char *name) {
        struct nearest nearest;
        char names[400] = "";
        size_t n = 0;

        nearest_begin(&nearest, name, strlen(name));
        for (size_t i = 0; i < glance->n_jobs; i++) {
                const Dlp__Job *job = glance->jobs[i].job;

                if (strcmp(job->name, name) == 0)
                        return EXIT_DONE;
                nearest_offer(&nearest, job->name);
                if (n < sizeof(names))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.128s", n > 0 ? ", " : "", job->name);
        }
        if (n == 0)
                return fail(EXIT_REFUSED, "%s: there is no job \"%.128s\": nobody is attached", command, name);
        return fail(EXIT_REFUSED, "%s: there is no job \"%.128s\"%s; there are: %s", command, name,
                    nearest_hint(&nearest), names);
}
