/* Sets the clock of a process wrong: preloaded, it adds WRONG_BY seconds to the machine's clock. The monotonic clocks,
 * which measure durations, are unchanged.
 *
 * libfaketime does this too, but it allocates before it knows the real clock, and the allocator of the server reads the
 * time when it starts: each calls the other until the stack overflows. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long wrong_by;

__attribute__((constructor)) static void begin(void) {
    const char *seconds = getenv("WRONG_BY");
    wrong_by = seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += wrong_by;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed && now) {
        now->tv_sec += wrong_by;
    }
    return failed;
}

time_t time(time_t *now) {
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    if (now) {
        *now = moment.tv_sec;
    }
    return moment.tv_sec;
}
