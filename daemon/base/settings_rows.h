/* base/settings_rows.h: one row for each setting of the configuration: SETTING(key, kind, what it says of itself).
 *
 * For who defines SETTING() and includes it (settings.h makes the members of its struct of the rows, settings.c its
 * table), so it may be included more than once. The members of a row are those of struct setting. `prose` is what
 * `dlctl status`, the commented configuration and dataloaderd.conf(5) say: whole sentences. `make settings-page` writes
 * the latter two. */

/* clang-format off */
SETTING(socket, TEXT, .initial = "/run/dataloaderd/dataloaderd.sock", .max = DLP_SOCKET_PATH_MAX, .unit = "path",
        .prose = "Where clients find the daemon. Not used when systemd passes a socket.")
SETTING(socket_mode, OCTAL, .initial = "0660", .max = 4, .unit = "octal",
        .prose = "Permissions of the socket: whoever may write to it can be served. Not used when systemd passes a "
                 "socket.")
SETTING(metrics_socket, OPTIONAL, .initial = "", .max = DLP_SOCKET_PATH_MAX, .unit = "path",
        .prose = "A second Unix socket, on which scrapers get the metrics over HTTP, such as "
                 "/run/dataloaderd/metrics.sock; empty: there is none; dlctl web and dlctl metrics need "
                 "none.")
SETTING(metrics_mode, OCTAL, .initial = "0660", .max = 4, .unit = "octal",
        .prose = "Permissions of that socket: whoever may write to it sees the jobs of all users.")
SETTING(workers, NUMBER, .initial = "0", .max = WORKERS_MAX, .unit = "threads", .reloads = true,
        .prose = "Threads that decode and augment; 0: the CPUs that affinity mask and CPU quota of the control group "
                 "let the daemon use. \"dlctl workers N\" changes it until the next reload.")
SETTING(nice, NUMBER, .initial = "0", .max = 19, .reloads = true,
        .prose = "Nice value of the threads that decode and make orders: with 0 they compete with other processes as "
                 "equals, with 19 they go last.")
SETTING(cpu_ceiling, SHARE, .initial = "0", .max = 16, .unit = "percent", .reloads = true,
        .prose = "The most CPU time that the decode threads take together: percent of one CPU (\"350\"), or of all "
                 "CPUs that the daemon may use (\"60%\"); 0: no ceiling.")
SETTING(memory_limit, SIZE, .initial = "8GiB", .min = 1 << 20, .max = UINT64_MAX, .unit = "bytes",
        .prose = "Memory of rings, read buffers, decoding scratch and shuffle tables together. A job that does not fit "
                 "is refused with the numbers; a running job is never affected.")
SETTING(admins, TEXT, .initial = "root", .max = 4095, .unit = "users, @groups", .reloads = true, .check = check_admins,
        .prose = "Users and @groups who may administer, beside the daemon's own user. Root of a container is not root.")
SETTING(user_connections, NUMBER, .initial = "50", .min = 1, .max = 100, .unit = "percent", .reloads = true,
        .prose = "Connections that a user may have, as percent of those that other users leave free. Admins have no "
                 "limit.")
SETTING(user_jobs, NUMBER, .initial = "256", .min = 1, .max = 1024, .unit = "jobs", .reloads = true,
        .prose = "Jobs that a user may have at once. Admins have no limit.")
SETTING(user_memory, NUMBER, .initial = "90", .min = 1, .max = 100, .unit = "percent", .reloads = true,
        .prose = "Memory that the rings of a user may take, as percent of what other users leave of memory_limit. "
                 "Admins have no limit.")
SETTING(index_dir, TEXT, .example = "/var/cache/dataloaderd", .max = 3072, .unit = "path",
        .prose = "Where index files and the ledgers of damaged samples are kept. Default: $CACHE_DIRECTORY (systemd "
                 "sets it), else $XDG_CACHE_HOME/dataloaderd, else ~/.cache/dataloaderd.")
SETTING(cache_dir, TEXT, .example = "/var/cache/dataloaderd/remote", .max = 3072, .unit = "path",
        .prose = "Where the files of datasets whose path is a URL are kept, as far as they were fetched. Daemons that "
                 "use the same folder have a part of it each, and of cache_limit. Default: the folder remote in index_dir.")
SETTING(cache_limit, SIZE, .initial = "0", .max = UINT64_MAX, .unit = "bytes",
        .prose = "The most bytes of that folder; 0: four fifths of what is free there or used by it.")
SETTING(fetch_limit, SIZE, .initial = "0", .max = UINT64_MAX, .unit = "bytes a second",
        .prose = "The most that is fetched a second from the origin of a dataset whose path is a URL, for all jobs "
                 "together; 0: no limit. Each origin has it for itself.")
SETTING(fetch_ahead, NUMBER, .initial = "30", .min = 1, .max = 86400, .unit = "seconds",
        .prose = "How far ahead of a rank what it needs is fetched from such an origin, which may be silent for so long and no "
                 "rank waits; where answers are late, at least four times what 99.9 % of them take. A cache that cannot hold "
                 "all of the dataset has an eighth of cache_limit for it.")
SETTING(peers, OPTIONAL, .initial = "", .max = 65536, .unit = "nodes, or path", .check = check_peers,
        .prose = "Nodes that fetch for each other, so that what they all need leaves its origin once: HOST or HOST:PORT, with "
                 "blanks or commas between them, the same list on all; or the absolute path of a folder that all of them have, "
                 "in which each leaves its address. Empty: none.")
SETTING(peer_listen, OPTIONAL, .initial = "", .max = 300, .unit = "ADDRESS:PORT", .check = check_listen,
        .prose = "Where this node serves the others, over plain HTTP. Default: all addresses, port 7433; with a folder "
                 "any port that is free.")
SETTING(peer_key_file, OPTIONAL, .initial = "", .max = 3072, .unit = "path",
        .prose = "A file with a secret that all of them have, which nobody else may read: whoever knows it can read what "
                 "is cached. Needed with a list; with a folder, one is made there.")
SETTING(tokenizers, TEXT, .initial = "/etc/dataloaderd/tokenizers", .max = 3072, .unit = "path", .reloads = true,
        .prose = "The folder of tokenizers, NAME.json or NAME/tokenizer.json, as Hugging Face writes them. Pipelines "
                 "name them in tokens(NAME), and can name no file elsewhere.")
SETTING(plugins, OPTIONAL, .initial = "", .max = 4096, .unit = "names",
        .prose = "Plug-ins that are loaded, separated by blanks or commas: NAME is NAME.so in one of plugin_dirs. Each runs "
                 "in processes of its own, where a crash is the error of one sample.")
SETTING(plugin_dirs, TEXT, .initial = "/usr/local/lib/dataloaderd/plugins:/usr/lib/dataloaderd/plugins", .max = 4096,
        .unit = "paths",
        .prose = "Folders in which plug-ins lie, with \":\" between them; nobody but root and the daemon's user may be "
                 "able to write there.")
SETTING(plugin_timeout, NUMBER, .initial = "60", .min = 1, .max = 86400, .unit = "seconds",
        .prose = "How long the process of a plug-in may take for a sample, for a batch that it collates, or for a part "
                 "of a file that is indexed, before it is killed.")
SETTING(slots, NUMBER, .initial = "4", .min = DLP_SLOTS_MIN, .max = DLP_SLOTS_MAX, .unit = "batches", .reloads = true,
        .prose = "Slots of a rank's ring, unless the client asks for another number: how many batches are prepared "
                 "ahead.")
SETTING(read_depth, NUMBER, .initial = "64", .min = 1, .max = 1024, .unit = "samples",
        .prose = "Samples under way at once. Each has a read buffer of 256 KiB. Reading without a warm cache needs 32 "
                 "or more to be fast.")
SETTING(reader, CHOICE, .initial = "auto", .choices = "auto io_uring threads",
        .prose = "How files are read; auto: with io_uring, unless the system refuses it.")
SETTING(page_cache, CHOICE, .initial = "auto", .choices = "auto use bypass",
        .prose = "Packed datasets are read through the page cache (use) or past it (bypass); auto: through it if they "
                 "fit into half of the available memory.")
SETTING(outage_timeout, NUMBER, .initial = "600", .min = 1, .max = 1000000000, .unit = "seconds", .reloads = true,
        .prose = "How long a job waits for a dataset that cannot be read (a dead mount, a server that does not answer) "
                 "before it ends. Until then it is on hold and loses nothing; dlctl jobs says why.")
SETTING(max_pixels, NUMBER, .initial = "178956970", .min = 1, .max = UINT64_C(1) << 36, .unit = "pixels",
        .prose = "Pictures with more pixels are refused before memory is taken. The default is Pillow's limit.")
SETTING(max_step_pixels, NUMBER, .initial = "268435456", .min = 1, .max = UINT64_C(1) << 40, .unit = "pixels",
        .prose = "The most pixels that all steps of a pipeline together may make of a sample: for each step, those of "
                 "the picture after it. It bounds how long a sample takes, and others wait.")
SETTING(max_scans, NUMBER, .initial = "500", .min = 1, .max = 100000, .unit = "scans",
        .prose = "The most scans of a progressive JPEG: ordinary files have ten, hostile files thousands.")
SETTING(decoder, CHOICE, .initial = "auto", .choices = "auto libjpeg",
        .prose = "Which decoder decodes JPEG: auto uses our own where it can, libjpeg uses libjpeg-turbo for all. The "
                 "pixels are the same; auto is faster.")
SETTING(isolation, CHOICE, .initial = "threads", .choices = "threads process",
        .prose = "Where strangers' files are decoded: in threads of the daemon, or in a process for each worker and "
                 "user that can open no files and no sockets and has only this user's batches. The results are the "
                 "same; a process costs 10 to 40 us a sample.")
SETTING(isolation_timeout, NUMBER, .initial = "60", .min = 1, .max = 86400, .unit = "seconds",
        .prose = "How long such a process may take for a sample before it is killed and the sample tried again, "
                 "twice.")
SETTING(huge_pages, CHOICE, .initial = "try", .choices = "try no",
        .prose = "Huge pages for rings: try uses them if the system allows it. dlctl jobs says what each ring got.")
SETTING(lock_memory, CHOICE, .initial = "try", .choices = "try no",
        .prose = "Rings are locked into memory, if RLIMIT_MEMLOCK or CAP_IPC_LOCK allow it; dlctl jobs says so.")
SETTING(log_level, CHOICE, .initial = "info", .choices = "error warning info debug", .reloads = true,
        .prose = "Lines below this level are left out of the log.")
SETTING(stage_nodes, OPTIONAL, .initial = "", .max = 65536, .unit = "hosts", .reloads = true, .check = check_hosts,
        .prose = "Hosts on which datasets with an origin are staged, separated by blanks or commas; empty: this node "
                 "only.")
SETTING(stage_network, OPTIONAL, .initial = "", .max = 64, .unit = "CIDR", .reloads = true, .check = check_network,
        .prose = "The network that these nodes use while they stage, such as 10.0.0.0/16; empty: MPI chooses one.")
SETTING(paths, FLAG, .initial = "no", .reloads = true,
        .prose = "Whether the daemon's own user, and root if it is an admin, may ask for a dataset by its path, which "
                 "needs no section here. Other users are served by private daemons, which their own processes start.")
SETTING(idle_timeout, NUMBER, .initial = "0", .max = 1000000000, .unit = "seconds", .reloads = true,
        .prose = "How long without a connection the daemon waits before it ends; 0: it does not end.")
#undef SETTING
