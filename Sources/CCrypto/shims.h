// The constants of OpenSSL's libcrypto for authenticated encryption. The library is not linked.

#ifndef WEBSERVICE_CCRYPTO_SHIMS_H
#define WEBSERVICE_CCRYPTO_SHIMS_H

#include <openssl/opensslv.h>
#include <openssl/evp.h>

#if OPENSSL_VERSION_NUMBER < 0x10101000L
#error "WebServiceCrypto needs OpenSSL 1.1.1 or newer"
#endif

// The name of the library that belongs to the headers.
#ifdef OPENSSL_SHLIB_VERSION
#define WEBSERVICE_TEXT_OF(number) #number
#define WEBSERVICE_TEXT(number) WEBSERVICE_TEXT_OF(number)
static const char *const WEBSERVICE_LIBCRYPTO = "libcrypto.so." WEBSERVICE_TEXT(OPENSSL_SHLIB_VERSION);
#else
static const char *const WEBSERVICE_LIBCRYPTO = "libcrypto.so.1.1";
#endif

#endif
