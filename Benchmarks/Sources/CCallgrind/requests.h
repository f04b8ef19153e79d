// What a program tells callgrind that runs it; nothing where it runs alone, or where valgrind's headers are missing.

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>

static inline void callgrindStart(void) { CALLGRIND_START_INSTRUMENTATION; }
static inline void callgrindStop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
#else
static inline void callgrindStart(void) {}
static inline void callgrindStop(void) {}
#endif
