/* dlctl: the command line of dataloaderd. One table row and one file per command. */

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/command.h"
#include "client/dlctl/dlctl_ending.h"
#include "client/dlctl/dlctl_options.h"
#include "client/include/dlclient.h"
#include "proto/base/nearest.h"

static const struct command COMMANDS[] = {
        { "status", "", "version, settings, what was obtained, memory, counters",
          "Shows version, settings, what was obtained from the system, memory and counters.", status_run },
        { "datasets", "[NAME]", "the datasets that are served, or one with its fields",
          "Shows each dataset: whether it is ready, its samples, its digest, and the damaged samples met. With NAME, shows "
          "that one with its fields: their kinds, dtypes and shapes, as a pipeline without steps delivers them. DATASET and NAME, here and in other commands, may also be a path: what has a / in it.",
          datasets_run },
        { "jobs", "[JOB]", "the jobs that are being served, with their ranks",
          "Shows each job, or one, and its ranks: where they are, how full their rings are, how fast they have been since they "
          "attached, and what would help. dlctl diagnose says what holds a job up now.",
          jobs_run },
        { "diagnose", "[JOB]", "is a job held up by its data, by what, and what would help",
          "Looks on for some seconds, and says of each job, or of one: for how much of the time its trainer waits, what "
          "limits it (the training step, storage, workers, a step of the pipeline, one rank), what to change, and what "
          "rate that would give. Changes nothing.",
          diagnose_run },
        { "errors", "[DATASET]", "the damaged samples that were met",
          "Shows the damaged samples of a dataset, or of all: which, why, how often and when they were met.",
          errors_run },
        { "metrics", "", "all numbers as Prometheus reads them",
          "Prints the numbers of the daemon, its datasets, and your jobs and their ranks as text in the exposition format "
          "of Prometheus, 0.0.4, whatever --format says. Admins see the jobs of all users.",
          metrics_run },
        { "workers", "[N]", "show or set the number of decode threads",
          "Shows how many threads decode, and why. With N, sets the number; 0 means as many as CPUs. No batch is lost. "
          "The number applies until the daemon reads its configuration again. Only admins may "
          "change it.",
          workers_run },
        { "stop", "", "end the private daemon of this user",
          "Ends the private daemon: what is begun is completed. A loader with a path starts another one. While ranks are "
          "attached, it is refused unless --now is given: then their loaders start another one and continue.",
          stop_run },
        { "stage", "DATASET|URL", "bring a dataset to this node, or to all, before it is needed",
          "Of a URL, or of a dataset of the configuration whose path is one: has the daemon fetch into its cache what "
          "is not there yet, and make the index, after what running jobs need. It may be interrupted, and goes on "
          "where it was. Compressed files are unpacked. On several nodes at once with the setting peers, each byte "
          "leaves the origin once. "
          "Of a dataset with an origin in the configuration: runs dataloaderd-stage, which fetches what is missing of "
          "the dataset, once for all nodes of the configuration, "
          "checks it, and puts it in place. It continues an interrupted run. Its exit codes are those of "
          "dataloaderd-stage(8): 0 done, 64 usage, 69 origin or node, 71 system error, 75 another staging is running, "
          "76 files differ from what they should be, 78 configuration.",
          stage_run },
        { "index", "DATASET", "write out the index of a dataset, to be laid beside the data",
          "Writes the index to standard output. Of tar, TFRecord, jsonl and csv it is made by reading all of the data. "
          "As a file .dataloaderd.index below the dataset's URL, beside the data, it spares that to all other nodes "
          "and people: dlctl index s3://bucket/train | aws s3 cp - s3://bucket/train/.dataloaderd.index. It is of just "
          "these files and options: once one of them changes, it is passed over, with a line in the log.",
          index_run },
        { "order", "", "the sample indices of a rank, without a daemon",
          "Prints the sample indices that a rank gets in an epoch, one on each line, as torch's DistributedSampler "
          "gives them for the same seed and epoch. Needs no daemon.",
          order_run },
        { "plan", "[DATASET]", "what an order fetches of a dataset that lies elsewhere",
          "Computes from the order alone what jobs fetch of a dataset through the cache of a node: requests and bytes of the "
          "first epoch and of a later one, how many reads find their bytes there, and, at a given rate of the trainer and a "
          "given latency and bandwidth of the origin, how long an epoch and the first batch take. Nothing is fetched. The "
          "daemon says where the samples lie; with --files instead of DATASET, none is asked.",
          plan_run },
        { "read", "DATASET", "attach as a rank and print a line for each sample",
          "Attaches as a rank and prints a line for each sample, in the order received: epoch, step, index, and for "
          "each field its type, shape and the SHA-256 of its bytes, or its value if it is a single number. "
          "Rank and world come from the launcher's environment (RANK, WORLD_SIZE, ...) unless they are given.",
          read_run },
        { "look", "DATASET [INDEX...]", "show some samples",
          "Shows samples of a dataset as a person wants to see them: values, the beginning of texts, the sizes of "
          "pictures. Without INDEX the first five. With --save, the stored bytes of pictures and other files are "
          "written to a folder, as INDEX.FIELD.",
          look_run },
        { "check-steps", "DATASET", "is each sample the same, whoever makes it",
          "Reads some samples twice: as one rank, and as two ranks with batches of another size, one after the other, so "
          "that other workers make them at other times. All fields have to be equal to the last bit. Exit code 1: they "
          "are not, and the samples and fields that differ are named.",
          check_steps_run },
        { "bench", "DATASET", "how fast this node serves a dataset, before a trainer is written",
          "Attaches as a rank that takes no time for a batch, reads for some seconds, and says how many samples a second "
          "this node delivers, for how much CPU, how long next() takes, what the limit is and how far away the others "
          "are. With --gpus and --rate: whether that is enough. Damaged samples are left out and counted.",
          bench_run },
        { "top", "", "jobs, ranks, rates and waits, live",
          "Shows what the daemon does, live: jobs and their ranks, how fast they are served, how long their trainers wait, "
          "workers, memory, reads, damaged samples, and what is being indexed or staged. h shows the keys, q ends it. With "
          "--once, prints it once as text, or with --format json for programs: of the time between two looks.",
          top_run },
        { "web", "", "a status page of the daemon, for a browser",
          "Serves a page that shows the daemon live: jobs and their ranks, with the last ten minutes, datasets, staging, "
          "damaged samples. Prints its address, and runs until it is interrupted. Only processes of your own and root's on "
          "this machine can read it; from another machine: ssh -L 9750:localhost:9750 NODE.",
          web_run },
        { "trace", "[JOB]", "record what the daemon does for some seconds, for a viewer",
          "Records what workers, reads, the planner and the ranks' rings do, of all jobs that you may see or of JOB, and "
          "writes a file that ui.perfetto.dev and chrome://tracing open, also beside a profile of torch. Ctrl-C ends it "
          "early.",
          trace_run },
        { "once", "COMMAND...", "run a command once per node or cluster, while the others wait",
          "Runs COMMAND in one of the processes that call this with the same name; the others wait until it ends and "
          "exit with its status. If it fails, they print its last output. If its runner dies, another one takes over. "
          "Once it is done it is remembered, together with the command line, --key and the content of --input: a call "
          "with the same ones ends at once. Needs no daemon. Put -- in front of COMMAND.",
          once_run },
        { "help", "[WORD]", "what a command, a step, a sampler or a format does",
          "Says what a command does, or what may be written in a pipeline, a sampler or a configuration: a step with its "
          "arguments, their defaults and bounds, and an example. Without WORD, lists the steps, samplers and formats that "
          "there are. Needs no daemon.",
          help_run },
        { "completion", "bash|zsh|fish", "print the script by which a shell completes dlctl's words",
          "Prints the script by which a shell completes commands, options and names of datasets. Packages and make "
          "install bring it; elsewhere: source <(dlctl completion bash), the same for zsh, and dlctl completion fish | "
          "source.",
          completion_run },
};
#define N_COMMANDS (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

const struct command *commands_table(size_t *ret_n) {
        *ret_n = N_COMMANDS;
        return COMMANDS;
}

int fail(int code, const char *format, ...) {
        bool colours = output_colours(STDERR_FILENO);
        va_list arguments;

        output_flush();
        fputs(colours ? "\033[1;31mdlctl:\033[0m " : "dlctl: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        return code;
}

static void dlctl_main_print_help(void) {
        printf("Usage: dlctl [--socket PATH | --private] [--format text|json] COMMAND ...\n"
               "Shows what the daemon dataloaderd does, and reads samples from it.\n\n");
        for (size_t i = 0; i < N_COMMANDS; i++)
                printf("  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
        printf("\n  --socket PATH       the daemon's socket (default: DATALOADERD_SOCKET; else\n"
               "                      /run/dataloaderd/dataloaderd.sock, if a daemon is there;\n"
               "                      else that of this user's private daemon)\n"
               "  --private           ask this user's private daemon\n"
               "  --format text|json  json: one object a line on stdout; messages go to stderr\n"
               "  --version           print the version and exit\n"
               "  --help              print this and exit; 'dlctl help WORD' for a\n                      command, a step, a sampler or a format\n\n"
               "Exit codes: 0 done, 1 refused or found wrong, 2 usage, 3 no daemon is reachable.\n\n"
               "See dlctl(1), dataloaderd(8).\n");
}

static int dlctl_main_usage(void) {
        fprintf(stderr, "Try 'dlctl --help'.\n");
        return EXIT_USAGE;
}

/* Parses the options before the command. Returns -1 to continue, else the exit code. */
static int parse_globals(struct context *context, int argc, char **argv) {
        static const struct option LONGS[] = {
                { "socket", required_argument, NULL, 's' }, { "private", no_argument, NULL, 'p' },
                { "format", required_argument, NULL, 'f' }, { "version", no_argument, NULL, 'v' },
                { "help", no_argument, NULL, 'h' },         { 0 },
        };
        struct nearest nearest;
        int value;

        opterr = 0;
        while ((value = getopt_long(argc, argv, "+:", LONGS, NULL)) != -1)
                switch (value) {
                case 's':
                        context->socket = optarg;
                        break;
                case 'p':
                        context->is_private = true;
                        break;
                case 'f':
                        if (output_format_from_name(optarg, &context->format) == 0)
                                break;
                        fail(EXIT_USAGE, "--format: \"%s\" is not allowed; choose one of: text json", optarg);
                        return dlctl_main_usage();
                case 'v':
                        printf("dlctl %s\n", dlc_version());
                        return EXIT_DONE;
                case 'h':
                        dlctl_main_print_help();
                        return EXIT_DONE;
                case ':':
                        fail(EXIT_USAGE, "%s needs an argument", argv[optind - 1]);
                        return dlctl_main_usage();
                default:
                        fail(EXIT_USAGE, "unknown option %s%s", argv[optind - 1],
                             option_hint(&nearest, argv[optind - 1], LONGS, 4));
                        return dlctl_main_usage();
                }
        return -1;
}

/* Runs the command that `argv` names. Returns an exit code. */
static int dlctl_main_run(int argc, char **argv) {
        struct context context = { .format = OUTPUT_TEXT };
        struct nearest nearest;
        int r = parse_globals(&context, argc, argv);

        if (r >= 0)
                return r;
        if (optind == argc) {
                fail(EXIT_USAGE, "a command is missing");
                return dlctl_main_usage();
        }
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(argv[optind], COMMANDS[i].name) == 0)
                        return COMMANDS[i].run(&context, &COMMANDS[i], argc - optind, argv + optind);
        nearest_begin(&nearest, argv[optind], strlen(argv[optind]));
        for (size_t i = 0; i < N_COMMANDS; i++)
                nearest_offer(&nearest, COMMANDS[i].name);
        fail(EXIT_USAGE, "unknown command \"%s\"%s", argv[optind], nearest_hint(&nearest));
        return dlctl_main_usage();
}

/* A standard descriptor that is closed would become the daemon's socket, and what is printed would go there. What is
 * opened here cannot be written to, so that printing fails as it would without it. */
static void fill_standard_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
}

int main(int argc, char **argv) {
        fill_standard_descriptors();
        /* A reader that has seen enough (head) must not kill us in the middle: the write fails, the command cleans up
         * and ends by itself, and output_end() then does what SIGPIPE would have done. */
        signal(SIGPIPE, SIG_IGN);
        return output_end(dlctl_main_run(argc, argv));
}
