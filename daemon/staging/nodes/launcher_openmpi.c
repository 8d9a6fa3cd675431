/* Open MPI's mpirun, 4.1: its command line, and what its words mean. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/hosts.h"
#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/launcher.h"
#include "daemon/staging/nodes/launcher_openmpi_late.h"
#include "proto/base/cleanup.h"

#define DASHES_MIN    60u /* its lines have 74 */
#define STATUSES_FROM 128 /* 137 a kill, 205 a lost connection, 255 a node out of reach */

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* Measured with 4.1.4: docs/internals/staging-run.md. */
static const struct {
        const char *name, *value;
} SETTINGS[] = {
        { "plm", "rsh" },
        { "plm_rsh_no_tree_spawn", "1" }, /* nodes need not reach each other by ssh */
        { "orte_keep_fqdn_hostnames", "1" },
        { "oob_tcp_keepalive_time", "3" }, /* a cut link is noticed in 6 s; else never */
        { "oob_tcp_keepalive_intvl", "1" },
        { "oob_tcp_keepalive_probes", "3" },
        { "oob_tcp_retry_delay", "1" }, /* or a node whose link just came up asks ten times at once, and gives up */
        { "pml", "ob1" },
        { "btl", "tcp,self" },
        { "mpi_yield_when_idle", "1" },
};

/* Without ConnectTimeout a dead host takes two minutes; with BatchMode nobody waits for a password to be typed. */
#define SSH "ssh -o ConnectTimeout=5 -o BatchMode=yes"

static const char *const FORWARDED[] = {
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "NO_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "CURL_CA_BUNDLE",
        "DATALOADERD_STAGE_TERMINAL", /* staging/run/stage_report.h: the first node draws on our terminal */
};

static void launcher_openmpi_add(struct launch_command *command, const char *word) {
        if (command->n_words < LAUNCH_WORDS_MAX - 1)
                command->words[command->n_words++] = word;
}

static void add_setting(struct launch_command *command, const char *name, const char *value) {
        launcher_openmpi_add(command, "--mca");
        launcher_openmpi_add(command, name);
        launcher_openmpi_add(command, value);
}

static int list_hosts(struct launch_command *command, const char *hosts, struct why *why) {
        size_t n_bytes = 0, n;
        struct why inner;
        const char *host;
        int r;

        while ((r = hosts_next(&hosts, &host, &n, &inner)) > 0) {
                if (n_bytes + n + 2 > sizeof(command->hosts))
                        return why_set(why, -EINVAL, "hosts: more than %u bytes", LAUNCH_HOSTS_SIZE);
                if (n_bytes > 0)
                        command->hosts[n_bytes++] = ',';
                memcpy(command->hosts + n_bytes, host, n);
                n_bytes += n;
                command->n_hosts++;
        }
        command->hosts[n_bytes] = '\0';
        if (r < 0)
                return why_set(why, r, "hosts: %s", inner.text);
        return command->n_hosts > 0 ? 0 : why_set(why, -EINVAL, "hosts: there is none");
}

static int compose(struct launch_command *command, const struct launch_options *options, struct why *why) {
        int r = list_hosts(command, options->hosts, why);

        if (r < 0)
                return r;
        launcher_openmpi_add(command, "mpirun");
        launcher_openmpi_add(command, "--map-by");
        launcher_openmpi_add(command, "ppr:1:node"); /* one process a node, */
        launcher_openmpi_add(command, "--bind-to");
        launcher_openmpi_add(command, "none"); /* which has threads: the default is one core */
        launcher_openmpi_add(command, "--stdin");
        launcher_openmpi_add(command, "none");
        for (size_t i = 0; i < ARRAY_SIZE(SETTINGS); i++)
                add_setting(command, SETTINGS[i].name, SETTINGS[i].value);
        if (geteuid() == 0)
                launcher_openmpi_add(command, "--allow-run-as-root");
        launcher_openmpi_add(command, "--host");
        launcher_openmpi_add(command, command->hosts);
        add_setting(command, "plm_rsh_agent", options->agent[0] ? options->agent : SSH);
        if (options->network[0]) {
                add_setting(command, "btl_tcp_if_include", options->network);
                add_setting(command, "oob_tcp_if_include", options->network);
        }
        if (options->timeout_s > 0) {
                snprintf(command->timeout, sizeof(command->timeout), "%u", options->timeout_s);
                launcher_openmpi_add(command, "--timeout");
                launcher_openmpi_add(command, command->timeout);
        }
        for (size_t i = 0; i < ARRAY_SIZE(FORWARDED); i++)
                if (getenv(FORWARDED[i])) {
                        launcher_openmpi_add(command, "-x");
                        launcher_openmpi_add(command, FORWARDED[i]);
                }
        launcher_openmpi_add(command, "-x");
        launcher_openmpi_add(command, LAST_WORD_VARIABLE);
        for (char *const *word = options->arguments; *word; word++)
                launcher_openmpi_add(command, *word);
        if (command->n_words == LAUNCH_WORDS_MAX - 1)
                return why_set(why, -E2BIG, "more than %u words on a command line", LAUNCH_WORDS_MAX);
        command->words[command->n_words] = NULL;
        return 0;
}

/* ---- its words --------------------------------------------------------------------------------------------------- */

static const struct said_paragraph PARAGRAPHS[] = {
        { "lost communication with a remote daemon", SAID_CAUSE,
          "lost {Remote daemon:*on node }: its link was cut, the machine is down, or Open MPI's orted there was "
          "killed" },
        { "mpirun noticed that process rank", SAID_CAUSE,
          "the process on {on node } was ended by signal {on signal }" },
        { "execute an executable", SAID_CAUSE, "{Executable: } cannot be run on {Node: }: install the same there" },
        { "unable to find the specified executable", SAID_CAUSE,
          "{Executable: } is not to be found on {Node: }: install the same there" },
        { "user-provided time limit", SAID_CAUSE, "not done within {Timeout: } s: the limit" },
        { "unable to reliably start one or more daemons", SAID_CAUSE, "a node cannot be reached: {}" },
        { "daemon has unexpectedly failed after launch", SAID_CAUSE,
          "Open MPI's orted does not come up on a node, or cannot connect back to mpirun (a firewall, two networks, no "
          "Open MPI there): {}" },
        { "does not know how to route a message", SAID_ENDING, NULL },
        { "failed to start within", SAID_CAUSE, "the nodes did not come up in time: {}" },
        { "MPI_ABORT was invoked", SAID_PROGRAM, NULL },
        { "returned\na non-zero exit code", SAID_PROGRAM, NULL },
        { "processes exited with non-zero status", SAID_PROGRAM, NULL },
        { "failed to TCP connect to a peer", SAID_NOISE, NULL },
        { "peer process has unexpectedly disconnected", SAID_NOISE, NULL },
        { "not able to send all output", SAID_NOISE, NULL },
};

#define ERROR_LINE "ORTE_ERROR_LOG: "

static const char *const NOISY_LINES[] = { "has sent help message", "have sent help message",
                                           "Set MCA parameter \"orte_base_help_aggregate\"",
                                           "total processes failed to start", "total processes killed",
                                           /* On a busy machine: the agent had begun before, and has its own group. */
                                           "plm:rsh: Warning: setpgid(",
                                           /* When the run ends, its threads meet what others of them have closed. */
                                           "[warn] Epoll ", ERROR_LINE };

static bool is_dashes(const char *line, size_t n) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
                n--;
        if (n < DASHES_MIN)
                return false;
        for (size_t i = 0; i < n; i++)
                if (line[i] != '-')
                        return false;
        return true;
}

/* "-----", "[host:1234] ", "4 total processes". Bars of ours have no line's end, so they must not be held up. */
static bool may_be_own(const char *line, size_t n) {
        static const char TOTAL[] = " total processes ";
        size_t n_name = strspn(line + 1, HOST_CHARACTERS) + 1, n_digits = strspn(line, "0123456789");

        if (line[0] == '-')
                return true;
        if (line[0] == '[')
                return n_name == n || line[n_name] == ']';
        return n_digits > 0 &&
               strncmp(line + n_digits, TOTAL, n - n_digits < strlen(TOTAL) ? n - n_digits : strlen(TOTAL)) == 0;
}

const struct launcher LAUNCHER_OPENMPI = {
        .name = "mpirun",
        .package = "Debian: openmpi-bin",
        .agent = "Open MPI's orted",
        .statuses_from = STATUSES_FROM,
        .compose = compose,
        .late_hosts = late_hosts,
        .is_rule = is_dashes,
        .may_be_own = may_be_own,
        .paragraphs = PARAGRAPHS,
        .n_paragraphs = ARRAY_SIZE(PARAGRAPHS),
        .noisy_lines = NOISY_LINES,
        .n_noisy_lines = ARRAY_SIZE(NOISY_LINES),
        .error_line = ERROR_LINE,
};
