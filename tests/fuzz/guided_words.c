/* Any text as what other programs print or leave for us: mpirun's words, in pieces as they come; the kernel's files
 * about processes, memory and control groups; the record of work that is done once. The first byte says which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/once/once_record.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/base/machine/machine_memory.h"
#include "daemon/base/machine/machine_process.h"
#include "daemon/staging/nodes/launch_said.h"
#include "daemon/store/record/record_steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void on_pass(void *userdata, const char *bytes, size_t n_bytes) {
        for (size_t i = 0; i < n_bytes; i++)
                *(unsigned *)userdata += (unsigned char)bytes[i];
}

static void hear(const char *text, size_t n_bytes, size_t piece) {
        unsigned sum = 0;
        struct said said = { .launcher = &LAUNCHER_OPENMPI, .hosts = "one,two", .pass_on = on_pass, .userdata = &sum };

        for (size_t at = 0; at < n_bytes; at += piece)
                said_feed(&said, text + at, n_bytes - at < piece ? n_bytes - at : piece);
        said_end(&said);
        if (strlen(said.sentence) >= SAID_SENTENCE_SIZE)
                abort();
        said_is_ending(&said);
        said_program_ended_it(&said);
}

static void read_kernel(const char *text) {
        struct cpu_share share;
        char one[64], other[64];

        process_stat_is_ending(text);
        process_status_is_ending(text);
        memory_parse_available(text);
        cpus_parse_max(text);
        if (cpus_parse_cgroup(text, one, sizeof(one)) && strlen(one) >= sizeof(one))
                abort();
        if (cpus_parse_mounts(text, one, other, sizeof(one)) && strlen(other) >= sizeof(other))
                abort();
        cpu_share_parse(text, &share);
}

static void read_steps(const char *text) {
        struct steps steps;
        struct why why = { 0 };

        if (steps_parse(text, &steps, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (steps.converts || steps.command)
                return;
        if (steps.short_side > STEPS_SHORT_MAX || steps.quality < 1 || steps.quality > 100)
                abort();
}

static void read_record(const char *text, size_t n_bytes) {
        static int fd = -1;
        struct dli_once_record record, again;

        if (fd < 0)
                fd = memfd_create("once", MFD_CLOEXEC);
        if (ftruncate(fd, 0) < 0 || pwrite(fd, text, n_bytes, 0) != (ssize_t)n_bytes)
                _exit(2);
        if (dli_once_record_read(fd, &record) != 0)
                return;
        if (dli_once_record_write(fd, &record) < 0 || dli_once_record_read(fd, &again) != 0 ||
            record.attempt != again.attempt || strcmp(record.text, again.text) != 0 ||
            strcmp(record.result, again.result) != 0 || strcmp(record.key, again.key) != 0)
                abort();
        dli_once_record_clear(&record);
        dli_once_record_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        char *text;

        if (n_bytes < 1)
                return 0;
        text = strndup((const char *)data + 1, n_bytes - 1);
        switch (data[0] % 4) {
        case 0:
                hear((const char *)data + 1, n_bytes - 1, 1 + data[0] / 4u);
                break;
        case 1:
                read_kernel(text);
                break;
        case 2:
                read_steps(text);
                break;
        default:
                read_record((const char *)data + 1, n_bytes - 1);
        }
        free(text);
        return 0;
}
