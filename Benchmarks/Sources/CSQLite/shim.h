#include <sqlite3.h>
#ifdef __linux__
#include <malloc.h>
#endif
