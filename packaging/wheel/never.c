/* Functions that nothing in the wheel ever calls.
 *
 * Debian's static libraries hold more than our programs use: libcurl.a every protocol it knows, of which http, https
 * and file are allowed (CURLOPT_PROTOCOLS_STR); libtiff.a two compressions that are refused by their number before a
 * byte is decoded; libarchive.a the cipher of archives whose password was given, which we never give. The libraries
 * behind those exist as shared ones alone, or under licences that the wheel could not carry. Here their functions have
 * one body: it names what was called and ends the program, because such a call is a bug of ours. */
#include <stdio.h>
#include <stdlib.h>

_Noreturn static void never(const char *name) {
        fprintf(stderr, "dataloaderd: %s() was called, which is not in this build; please report it\n", name);
        abort();
}

#define NEVER(name)                                                                                                    \
        void name(void);                                                                                               \
        void name(void) {                                                                                              \
                never(#name);                                                                                          \
        }

/* libtiff: JBIG and LERC */
NEVER(jbg_dec_free)
NEVER(jbg_dec_getimage)
NEVER(jbg_dec_getsize)
NEVER(jbg_dec_in)
NEVER(jbg_dec_init)
NEVER(jbg_enc_free)
NEVER(jbg_enc_init)
NEVER(jbg_enc_out)
NEVER(jbg_newlen)
NEVER(jbg_strerror)
NEVER(lerc_decode)
NEVER(lerc_encodeForVersion)
NEVER(lerc_getBlobInfo)

/* libarchive: encrypted archives */
NEVER(nettle_aes128_encrypt)
NEVER(nettle_aes128_set_encrypt_key)
NEVER(nettle_aes192_encrypt)
NEVER(nettle_aes192_set_encrypt_key)
NEVER(nettle_aes256_encrypt)
NEVER(nettle_aes256_set_encrypt_key)
NEVER(nettle_hmac_sha1_digest)
NEVER(nettle_hmac_sha1_set_key)
NEVER(nettle_hmac_sha1_update)
NEVER(nettle_pbkdf2_hmac_sha1)

/* libcurl: RTMP */
NEVER(RTMP_Alloc)
NEVER(RTMP_Close)
NEVER(RTMP_Connect1)
NEVER(RTMP_ConnectStream)
NEVER(RTMP_Free)
NEVER(RTMP_Init)
NEVER(RTMP_Read)
NEVER(RTMP_SetBufferMS)
NEVER(RTMP_SetupURL)
NEVER(RTMP_Write)

/* libcurl: LDAP */
NEVER(ber_bvfree)
NEVER(ber_free)
NEVER(ber_memfree)
NEVER(ber_sockbuf_add_io)
NEVER(ldap_abandon_ext)
NEVER(ldap_err2string)
NEVER(ldap_free_urldesc)
NEVER(ldap_get_attribute_ber)
NEVER(ldap_get_dn_ber)
NEVER(ldap_get_option)
NEVER(ldap_init_fd)
NEVER(ldap_memfree)
NEVER(ldap_msgfree)
NEVER(ldap_msgtype)
NEVER(ldap_parse_result)
NEVER(ldap_parse_sasl_bind_result)
NEVER(ldap_pvt_url_scheme2proto)
NEVER(ldap_result)
NEVER(ldap_sasl_bind)
NEVER(ldap_search_ext)
NEVER(ldap_set_option)
NEVER(ldap_start_tls)
NEVER(ldap_unbind_ext)
NEVER(ldap_url_parse)

/* libcurl: SSH */
NEVER(libssh2_agent_connect)
NEVER(libssh2_agent_disconnect)
NEVER(libssh2_agent_free)
NEVER(libssh2_agent_get_identity)
NEVER(libssh2_agent_init)
NEVER(libssh2_agent_list_identities)
NEVER(libssh2_agent_userauth)
NEVER(libssh2_channel_free)
NEVER(libssh2_channel_read_ex)
NEVER(libssh2_channel_send_eof)
NEVER(libssh2_channel_wait_closed)
NEVER(libssh2_channel_wait_eof)
NEVER(libssh2_channel_write_ex)
NEVER(libssh2_hostkey_hash)
NEVER(libssh2_knownhost_add)
NEVER(libssh2_knownhost_checkp)
NEVER(libssh2_knownhost_del)
NEVER(libssh2_knownhost_free)
NEVER(libssh2_knownhost_get)
NEVER(libssh2_knownhost_init)
NEVER(libssh2_knownhost_readfile)
NEVER(libssh2_knownhost_writefile)
NEVER(libssh2_scp_recv2)
NEVER(libssh2_scp_send64)
NEVER(libssh2_session_abstract)
NEVER(libssh2_session_block_directions)
NEVER(libssh2_session_callback_set)
NEVER(libssh2_session_disconnect_ex)
NEVER(libssh2_session_flag)
NEVER(libssh2_session_free)
NEVER(libssh2_session_handshake)
NEVER(libssh2_session_hostkey)
NEVER(libssh2_session_init_ex)
NEVER(libssh2_session_last_errno)
NEVER(libssh2_session_last_error)
NEVER(libssh2_session_method_pref)
NEVER(libssh2_session_set_blocking)
NEVER(libssh2_sftp_close_handle)
NEVER(libssh2_sftp_init)
NEVER(libssh2_sftp_last_error)
NEVER(libssh2_sftp_mkdir_ex)
NEVER(libssh2_sftp_open_ex)
NEVER(libssh2_sftp_read)
NEVER(libssh2_sftp_readdir_ex)
NEVER(libssh2_sftp_rename_ex)
NEVER(libssh2_sftp_rmdir_ex)
NEVER(libssh2_sftp_seek64)
NEVER(libssh2_sftp_shutdown)
NEVER(libssh2_sftp_stat_ex)
NEVER(libssh2_sftp_statvfs)
NEVER(libssh2_sftp_symlink_ex)
NEVER(libssh2_sftp_unlink_ex)
NEVER(libssh2_sftp_write)
NEVER(libssh2_userauth_authenticated)
NEVER(libssh2_userauth_keyboard_interactive_ex)
NEVER(libssh2_userauth_list)
NEVER(libssh2_userauth_password_ex)
NEVER(libssh2_userauth_publickey_fromfile_ex)

/* libcurl: which domains a cookie may name */
NEVER(psl_builtin)
NEVER(psl_free)
NEVER(psl_is_cookie_domain_acceptable)
NEVER(psl_latest)
