// SQLite for Swift, which cannot call variadic C functions.

#ifndef WEBSERVICE_CSQLITE_SHIMS_H
#define WEBSERVICE_CSQLITE_SHIMS_H

#include <sqlite3.h>

#if SQLITE_VERSION_NUMBER < 3031000
#error "WebServiceSQLite needs SQLite 3.31 or newer"
#endif

// The options are those that are on or off, such as SQLITE_DBCONFIG_DEFENSIVE.
static inline int csqlite_configure(sqlite3 *database, int option, int is_on) { return sqlite3_db_config(database, option, is_on, (int *)0); }

#endif
