/* fetch/of_user.h: who the user that we run as is to object stores and to the hub, as his own tools have it: the
 * environment, the files of AWS' tools, the token of the hub's. Read only where nobody but this user is served.
 *
 *   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN   else the profile's keys
 *   AWS_REGION, AWS_DEFAULT_REGION                                else the profile's region
 *   AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL                         else the profile's endpoint_url
 *   AWS_PROFILE                      the profile; "default"
 *   AWS_SHARED_CREDENTIALS_FILE      ~/.aws/credentials, [NAME]
 *   AWS_CONFIG_FILE                  ~/.aws/config, [profile NAME]
 *   HF_ENDPOINT                      the hub's address
 *   HF_TOKEN                         else the file HF_TOKEN_PATH, $HF_HOME/token, ~/.cache/huggingface/token
 *
 * Others may not read these files (fetch/secret_file.h). What cannot be used is no failure before it is needed: a
 * profile without keys of its own must not keep anybody from a web server. */
#pragma once

#include "daemon/fetch/credentials.h"
#include "daemon/fetch/secret_file.h"
#include "proto/base/why.h"

struct of_user {
        struct credentials_s3 s3;             /* no access_key: none */
        const char *s3_region, *s3_endpoint;  /* NULL: nothing says */
        const char *hub_token, *hub_endpoint; /* the same */
        int s3_error, hub_error;              /* 0, or why they cannot be used: an errno with a sentence */
        struct why s3_why, hub_why;
        struct secret_file credentials, config, token; /* what the texts point into */
        char *hub_address;                             /* of HF_ENDPOINT, without a slash at its end */
};

/* The environment must not change meanwhile, nor until it is freed. 0 or -ENOMEM. */
int of_user_read(struct of_user **ret_user);

void of_user_free(struct of_user *user); /* overwrites what was read; NULL is fine */
