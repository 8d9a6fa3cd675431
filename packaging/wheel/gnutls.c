/* Debian's libmicrohttpd is built with TLS, and begins and ends GnuTLS whether or not it is used. Our pages do not use
 * it: HTTP is what they speak, on this machine alone. The rest of GnuTLS is in never.c. */

int gnutls_global_init(void);
int gnutls_global_init(void) {
        return 0;
}

void gnutls_global_deinit(void);
void gnutls_global_deinit(void) {
}
