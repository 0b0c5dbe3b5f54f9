// The functions of OpenSSL's libcrypto for authenticated encryption.

#ifndef WEBSERVICE_CCRYPTO_SHIMS_H
#define WEBSERVICE_CCRYPTO_SHIMS_H

#include <openssl/opensslv.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#if OPENSSL_VERSION_NUMBER < 0x10101000L
#error "WebServiceCrypto needs OpenSSL 1.1.1 or newer"
#endif

#endif
