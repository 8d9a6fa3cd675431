/* Agents of mpirun's among processes: which host is each for? */
#include <string.h>

#include "daemon/staging/nodes/launcher_openmpi_late.h"
#include "tests/support/suite.h"

#define HOSTS     "node1,node10,10.0.0.3,n.example.org"
#define ROW(text) text, sizeof(text) - 1

static const struct {
        const char *arguments;
        size_t n_bytes;
        const char *host; /* NULL: it is not an agent */
} AGENTS[] = {
        { ROW("/usr/bin/ssh\0-o\0ConnectTimeout=5\0node10\0 orted -mca ess \"env\"\0"), "node10" },
        { ROW("/usr/bin/ssh\0node1\0PATH=/x:$PATH ; orted -mca orte_node_regex node[1:1]\0"), "node1" },
        { ROW("/bin/sh\0/tmp/agent\0"
              "10.0.0.3\0orted\0"),
          "10.0.0.3" },
        { ROW("ssh\0-l\0orted\0n.example.org\0true\0"), NULL }, /* after the host, not before it */
        { ROW("ssh\0node2\0orted\0"), NULL },                   /* not one of ours */
        { ROW("ssh\0node\0orted\0"), NULL },                    /* the beginning of one */
        { ROW("dataloaderd-stage\0photos\0"), NULL },           /* a process of this node */
        { ROW("ssh\0node1"), NULL },
        { ROW("\0\0"), NULL },
        { ROW(""), NULL },
};

START_TEST(an_agent_names_the_host_it_is_for) {
        size_t length = 0;
        const char *host = late_host_of(AGENTS[_i].arguments, AGENTS[_i].n_bytes, HOSTS, &length);

        if (!AGENTS[_i].host) {
                ck_assert_ptr_null(host);
                return;
        }
        ck_assert_ptr_nonnull(host);
        ck_assert_uint_eq(length, strlen(AGENTS[_i].host));
        ck_assert_int_eq(memcmp(host, AGENTS[_i].host, length), 0);
}
END_TEST

START_TEST(a_process_without_agents_is_late_with_nobody) {
        char names[32] = "x";

        ck_assert_uint_eq(late_hosts(1, HOSTS, names, sizeof(names)), 0);
        ck_assert_str_eq(names, "");
        ck_assert_uint_eq(late_hosts(0x7fffffff, HOSTS, names, sizeof(names)), 0); /* and one that is none, too */
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "agents", an_agent_names_the_host_it_is_for, sizeof(AGENTS) / sizeof(AGENTS[0]) },
                { "agents", a_process_without_agents_is_late_with_nobody },
        };

        return suite_run("launch_late", rows, sizeof(rows) / sizeof(rows[0]));
}
