/* dlctl web: a status page of the daemon, on a loopback address, by a process of its own: the daemon opens no port. */

#include <errno.h>
#include <event2/event.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/dlctl_ending.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/web/site.h"

#define PORT_DEFAULT 9750

struct choice {
        const char *address;
        int port;
        struct option_list hosts, users;
};

static int web_choose(struct context *context, const struct command *command, int argc, char **argv,
                      struct choice *choice) {
        const struct option_row rows[] = {
                { "address", OPTION_TEXT, &choice->address, "ADDRESS",
                  "where to listen: 127.0.0.1 (default), another address 127.x.x.x, or ::1" },
                { "port", OPTION_COUNT, &choice->port, "N", "the port (default: 9750); 0: one that is free" },
                { "host", OPTION_LIST, &choice->hosts, "NAME",
                  "a further name that browsers may call this page by, such as that of a proxy; may be repeated" },
                { "user", OPTION_LIST, &choice->users, "NAME",
                  "a user who may look beside you and root, such as prometheus; may be repeated" },
        };
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);
        if (r >= 0)
                return r;
        if (choice->port > 65535)
                return fail(EXIT_USAGE, "web: --port: %d is not allowed; choose a number from 0 to 65535",
                            choice->port);
        return -1;
}

/* Adds the user's number: that of a name, or one that is written as such. Returns -1, or an exit code. */
static int add_user(struct server_options *options, const char *name) {
        const struct passwd *found = getpwnam(name);
        char *end;
        unsigned long number = strtoul(name, &end, 10);

        if (!found && (*name < '0' || *name > '9' || *end || number >= UINT32_MAX))
                return fail(EXIT_USAGE, "web: --user: this machine has no user \"%s\"", name);
        options->users[options->n_users++] = found ? found->pw_uid : (uid_t)number;
        return -1;
}

/* localhost and the loopback addresses are always right: ssh -L and browsers use them. */
static int fill_options(const struct choice *choice, const char *hosts[OPTION_LIST_MAX + 5],
                        struct server_options *options) {
        size_t n = 0;
        int r = -1;

        hosts[n++] = "localhost";
        hosts[n++] = "127.0.0.1";
        hosts[n++] = "::1";
        hosts[n++] = choice->address;
        for (size_t i = 0; i < choice->hosts.n; i++)
                hosts[n++] = choice->hosts.values[i];
        hosts[n] = NULL;

        options->address = strcmp(choice->address, "localhost") == 0 ? "127.0.0.1" : choice->address;
        options->port = (uint16_t)choice->port;
        options->hosts = hosts;
        options->users[options->n_users++] = geteuid();
        for (size_t i = 0; r < 0 && i < choice->users.n && options->n_users < SERVER_USERS_MAX; i++)
                r = add_user(options, choice->users.values[i]);
        return r;
}

/* The page's place is what people and scripts wait for. Returns an exit code. */
static int say_where(const struct context *context, const struct server_options *options, uint16_t port) {
        bool is_v6 = strchr(options->address, ':') != NULL;
        char url[80];

        snprintf(url, sizeof(url), "http://%s%s%s:%u/", is_v6 ? "[" : "", options->address, is_v6 ? "]" : "", port);
        if (context->format == OUTPUT_JSON) {
                cJSON *record = record_new();

                record_text(record, "url", url);
                output_record(context->format, record);
                cJSON_Delete(record);
        } else {
                printf("%s\n", url);
        }
        return output_flush() < 0 ? EXIT_REFUSED : EXIT_DONE; /* a page that nobody can find is of no use */
}

static void web_on_signal(evutil_socket_t number, short what, void *arg) {
        (void)number;
        (void)what;
        event_base_loopbreak(arg);
}

/* Ctrl-C is how this ends. */
static int serve_until_signal(struct event_base *base) {
        struct event *interrupt = evsignal_new(base, SIGINT, web_on_signal, base),
                     *end = evsignal_new(base, SIGTERM, web_on_signal, base);
        int r = EXIT_REFUSED;

        if (interrupt && end && event_add(interrupt, NULL) == 0 && event_add(end, NULL) == 0 &&
            event_base_dispatch(base) == 0)
                r = EXIT_DONE;
        if (interrupt)
                event_free(interrupt);
        if (end)
                event_free(end);
        return r;
}

static const char *web_user_name(void) {
        const struct passwd *self = getpwuid(geteuid());
        static char number[16];

        snprintf(number, sizeof(number), "%u", geteuid());
        return self ? self->pw_name : number;
}

static int web_serve(struct context *context, struct event_base *base, const struct server_options *given) {
        struct server_options options = *given;
        struct site site = { .view = NULL };
        struct server *server = NULL;
        struct why why;
        int r;

        page_make(&site.page);
        options.arg = &site;
        options.answer = site_answer;
        r = server_open(base, &options, &why, &server);
        if (r < 0) {
                r = fail(r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED, "web: %s", why.text);
        } else {
                site.view = view_new(web_user_name());
                site.scrape.context = context;
                site.watch = watch_new(base, context, site.view);
                r = say_where(context, &options, server_port(server));
                if (r == EXIT_DONE)
                        r = serve_until_signal(base);
        }
        server_close(server);
        watch_free(site.watch);
        view_free(site.view);
        page_free(&site.page);
        return r;
}

int web_run(struct context *context, const struct command *command, int argc, char **argv) {
        const char *hosts[OPTION_LIST_MAX + 5];
        struct server_options options = { .n_users = 0 };
        struct event_base *base;
        struct choice choice = { .address = "127.0.0.1", .port = PORT_DEFAULT };
        int r;

        r = web_choose(context, command, argc, argv, &choice);
        if (r >= 0)
                return r;
        r = fill_options(&choice, hosts, &options);
        if (r >= 0)
                return r;
        base = event_base_new();
        if (!base)
                return fail(EXIT_REFUSED, "no memory");
        r = web_serve(context, base, &options);
        event_base_free(base);
        return r;
}
