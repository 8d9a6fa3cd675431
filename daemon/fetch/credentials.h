/* fetch/credentials.h: who we are to an origin, from the file that the configuration names. What the user that we run as
 * has of his own is fetch/of_user.h.
 *
 * The file is AWS' own, and may say besides who to be to web servers. A section begins with its name in brackets; a
 * value goes to the end of its line; a line that begins with '#' or ';' is a comment:
 *
 *   [default]                            or another profile, if AWS_PROFILE names it
 *   aws_access_key_id     = AKIA...
 *   aws_secret_access_key = ...
 *   aws_session_token     = ...          of temporary credentials
 *
 *   [https://data.example.org]           sent to this server, scheme and port included, and to no other
 *   user     = ...
 *   password = ...
 *
 *   [https://hub.example.org:8443]
 *   token    = ...                       "Authorization: Bearer ..."
 *
 * The section of https://huggingface.co with a token is that of the hub, too. Others may not read the file
 * (fetch/secret_file.h). Read once. */
#pragma once

#include "proto/base/why.h"

struct credentials_s3 {
        const char *access_key, *secret_key;
        const char *session_token; /* NULL: none */
};

struct credentials_web {
        const char *server;          /* the section's name, a URL */
        const char *user, *password; /* NULL: there is a token */
        const char *token;
};

struct credentials;

/* Returns 0; -EACCES if others may read it, -EINVAL if it is not such a file, -ENOENT, ... with `why`; -ENOMEM. */
int credentials_read(const char *path, struct credentials **ret_credentials, struct why *why);

/* Overwrites what was read. NULL is fine. */
void credentials_free(struct credentials *credentials);
void credentials_freep(struct credentials **credentials);

/* For the object store. NULL: there are none. */
const struct credentials_s3 *credentials_s3(const struct credentials *credentials);

/* For the server of this http or https URL. NULL: none. */
const struct credentials_web *credentials_web(const struct credentials *credentials, const char *url);
