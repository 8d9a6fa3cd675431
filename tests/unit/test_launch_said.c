/* What mpirun says on stderr and stdout: the processes' own lines pass, its paragraphs become a sentence. The texts are
 * those of Open MPI 4.1.4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/staging/nodes/cluster_guard.h"
#include "daemon/staging/nodes/launch_said.h"
#include "tests/support/suite.h"

#define DASHES "--------------------------------------------------------------------------\n"

#define LOST                                                                                                           \
        DASHES                                                                                                         \
        "ORTE has lost communication with a remote daemon.\n\n"                                                        \
        "  HNP daemon   : [[31958,0],0] on node node0\n"                                                               \
        "  Remote daemon: [[31958,0],2] on node node2\n\n"                                                             \
        "This is usually due to either a failure of the TCP network\n"                                                 \
        "connection to the node, or possibly an internal failure of\n"                                                 \
        "the daemon itself. We cannot recover from this failure, and\n"                                                \
        "therefore will terminate the job.\n" DASHES

#define ABORTED                                                                                                        \
        DASHES                                                                                                         \
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 71.\n\n"                       \
        "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n" DASHES

#define KILLED                                                                                                         \
        DASHES "Primary job  terminated normally, but 1 process returned\n"                                            \
               "a non-zero exit code. Per user-direction, the job has been aborted.\n" DASHES DASHES                   \
               "mpirun noticed that process rank 2 with PID 8220 on node node2 exited on signal 9 (Killed).\n" DASHES

#define UNREACHED                                                                                                      \
        DASHES "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n"                \
               "* not finding the required libraries and/or binaries on\n  one or more nodes.\n" DASHES

#define ERRED                                                                                                          \
        "[node0:19898] [[4241,0],0] ORTE_ERROR_LOG: Out of resource in file ../orte/util/show_help.c at line 501\n"

#define AGGREGATED                                                                                                     \
        "[node0:08181] 1 more process has sent help message help-mpi-btl-tcp.txt / client connect fail\n"              \
        "[node0:17007] plm:rsh: Warning: setpgid(17163,17163) failed in parent with errno=Permission denied(13)\n"     \
        "[warn] Epoll MOD(4) on fd 26 failed. Old events were 6; read change was 2 (del): Bad file descriptor\n" ERRED \
        "[node0:08181] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\n"

static const struct {
        const char *text;
        const char *passed;   /* on to the user */
        const char *sentence; /* holds this; "": there is none */
        bool is_ending, program_ended_it;
} TEXTS[] = {
        { "", "", "", false, false },
        { "error: x\nwarning: y\n", "error: x\nwarning: y\n", "", false, false },
        { "no line's end", "no line's end", "", false, false },
        { LOST, "", "lost node2:", true, false },
        { "before\n" LOST "after\n" AGGREGATED, "before\nafter\n", "lost node2:", true, false },
        { "error: no word from node2\n" ABORTED, "error: no word from node2\n", "", true, true },
        { KILLED, "", "the process on node2 was ended by signal 9", true, true },
        { LOST KILLED, "", "lost node2:", true, true }, /* the first word is the cause */
        { ABORTED LOST, "", "lost node2:", true, true },
        { "ssh: connect to host node3 port 22: No route to host\n" UNREACHED,
          "ssh: connect to host node3 port 22: No route to host\n",
          "a node cannot be reached: ssh: connect to host node3 port 22: No route to host", true, false },
        { "ssh: connect to host node3 port 22: Connection refused\r\n" UNREACHED,
          "ssh: connect to host node3 port 22: Connection refused\r\n", "refused", true, false },
        { "Host key verification failed.\n" UNREACHED, "Host key verification failed.\n",
          "Host key verification failed.: one of node0,node1,node2,node3", true, false },
        { DASHES "mpirun was unable to launch the specified application as it could not access\n"
                 "or execute an executable:\n\nExecutable: /x/program\nNode: node1\n\n"
                 "while attempting to start process rank 0.\n" DASHES "4 total processes failed to start\n",
          "", "/x/program cannot be run on node1", true, false },
        { DASHES "The user-provided time limit for job execution has been reached:\n\n  Timeout: 3 seconds\n" DASHES,
          "", "not done within 3 s", true, false },
        { DASHES "What nobody knows.\n" DASHES, DASHES "What nobody knows.\n" DASHES, "", false, false },
        { DASHES "cut off", DASHES "cut off", "", false, false },
        { "{\"message\":\"4 total processes failed to start\"}\n2 total processes killed (some possibly by mpirun)\n{}\n",
          "{\"message\":\"4 total processes failed to start\"}\n{}\n", "", false, false },
        { "-----\n-- x\n", "-----\n-- x\n", "", false, false },
        { "[node1:77] *** Process received signal ***\n", "[node1:77] *** Process received signal ***\n", "", false,
          false },
};

static char passed[65536];
static size_t n_passed;

static void pass_on(void *userdata, const char *bytes, size_t n_bytes) {
        ck_assert_uint_lt(n_passed + n_bytes, sizeof(passed));
        memcpy(passed + n_passed, bytes, n_bytes);
        n_passed += n_bytes;
}

static struct said *begin(void) {
        static struct said said;

        n_passed = 0;
        said = (struct said){ .launcher = &LAUNCHER_OPENMPI, .hosts = "node0,node1,node2,node3", .pass_on = pass_on };
        return &said;
}

static const char *end(struct said *said) {
        said_end(said);
        passed[n_passed] = '\0';
        return passed;
}

START_TEST(of_what_mpirun_says_a_sentence_is_kept_and_the_rest_passes) {
        size_t length = strlen(TEXTS[_i].text);
        struct said *said = begin();

        said_feed(said, TEXTS[_i].text, length);
        ck_assert_str_eq(end(said), TEXTS[_i].passed);
        ck_assert_ptr_nonnull(strstr(said->sentence, TEXTS[_i].sentence));
        ck_assert_int_eq(said->sentence[0] == '\0', TEXTS[_i].sentence[0] == '\0');
        ck_assert_ptr_null(strchr(said->sentence, '?')); /* nothing missing, nothing unprintable */
        ck_assert_int_eq(said_is_ending(said), TEXTS[_i].is_ending);
        ck_assert_int_eq(said_program_ended_it(said), TEXTS[_i].program_ended_it);
}
END_TEST

/* An agent's line in pieces passes all the same, but may not be part of the sentence. */
START_TEST(it_may_come_in_pieces_of_any_size) {
        size_t length = strlen(TEXTS[_i].text);

        for (size_t n = 1; n < 40; n++) {
                struct said *said = begin();

                for (size_t i = 0; i < length; i += n)
                        said_feed(said, TEXTS[_i].text + i, length - i < n ? length - i : n);
                ck_assert_str_eq(end(said), TEXTS[_i].passed);
                ck_assert_int_eq(said->sentence[0] == '\0', TEXTS[_i].sentence[0] == '\0');
                ck_assert_int_eq(said_is_ending(said), TEXTS[_i].is_ending);
        }
}
END_TEST

START_TEST(a_bar_without_an_end_passes_at_once_and_mpirun_may_cut_in) {
        struct said *said = begin();

        said_feed(said, "\r photos  41 %", 14);
        ck_assert_uint_eq(n_passed, 14);
        said_feed(said, LOST, strlen(LOST));
        ck_assert_str_eq(end(said), "\r photos  41 %");
        ck_assert_ptr_nonnull(strstr(said->sentence, "node2"));
}
END_TEST

START_TEST(a_last_word_is_heard_wherever_it_cuts_in_and_seen_by_nobody) {
        static const char TEXT[] = "\r photos 41 %" LAST_WORD "65\nerror: after\n" KILLED LAST_WORD "71\n" LAST_WORD
                                   "x\n";

        for (size_t n = 1; n < sizeof(TEXT); n++) {
                struct said *said = begin();

                for (size_t i = 0; i < sizeof(TEXT) - 1; i += n)
                        said_feed(said, TEXT + i, sizeof(TEXT) - 1 - i < n ? sizeof(TEXT) - 1 - i : n);
                ck_assert_str_eq(end(said), "\r photos 41 %error: after\n");
                ck_assert_int_eq(said->last_word, 65);
                ck_assert_str_eq(said->sentence, "");
                ck_assert(said_is_ending(said));
        }
}
END_TEST

START_TEST(an_error_inside_the_launcher_is_kept_for_a_run_that_nothing_else_explains) {
        struct said *said = begin();

        said_feed(said, "error: x\n", 9);
        ck_assert_str_eq(said->error, "");
        said_feed(said, ERRED "[node0:1] ORTE_ERROR_LOG: what follows from it", strlen(ERRED) + 46);
        ck_assert_str_eq(end(said), "error: x\n");
        ck_assert_str_eq(said->sentence, "");
        ck_assert_uint_eq(strlen(said->error), strlen(ERRED) - 1);
        ck_assert_int_eq(strncmp(said->error, ERRED, strlen(ERRED) - 1), 0);
}
END_TEST

START_TEST(a_paragraph_without_an_end_and_a_line_without_one_are_not_kept_back) {
        static char line[3000];
        struct said *said = begin();

        memset(line, '-', sizeof(line));
        said_feed(said, line, sizeof(line));
        said_feed(said, "\n", 1);
        ck_assert_uint_ge(n_passed + 1024, sizeof(line));
        said_feed(said, DASHES, strlen(DASHES));
        for (int i = 0; i < 300; i++)
                said_feed(said, "a line of fifty bytes that goes on and on and on\n", 49);
        ck_assert_uint_gt(n_passed, 300 * 49);
        end(said);
        ck_assert_uint_eq(n_passed, sizeof(line) + 1 + strlen(DASHES) + 300 * 49);
}
END_TEST

int main(void) {
        const int n = (int)(sizeof(TEXTS) / sizeof(TEXTS[0]));
        const struct suite_row rows[] = {
                { "said", of_what_mpirun_says_a_sentence_is_kept_and_the_rest_passes, n },
                { "said", it_may_come_in_pieces_of_any_size, n },
                { "said", a_bar_without_an_end_passes_at_once_and_mpirun_may_cut_in },
                { "said", a_last_word_is_heard_wherever_it_cuts_in_and_seen_by_nobody },
                { "said", an_error_inside_the_launcher_is_kept_for_a_run_that_nothing_else_explains },
                { "said", a_paragraph_without_an_end_and_a_line_without_one_are_not_kept_back },
        };

        return suite_run("launch_said", rows, sizeof(rows) / sizeof(rows[0]));
}
