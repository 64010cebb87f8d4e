/* A disk that fails: preloaded, it lets the n-th operation that changes a folder fail or be the
 * last one of the process. Operations are open for writing, write, truncate, sync, rename, unlink
 * and mkdir. fault_arm starts counting; before that, and elsewhere, everything works. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { FULL_ONCE, FULL_FROM_THEN_ON, FAILING_ONCE, KILLED_BEFORE, KILLED_AFTER };

static char folder[4096];
static int target, kind, seen;

void fault_arm(const char *where, int number, int what)
{
    strncpy(folder, where, sizeof folder - 1);
    target = number;
    kind = what;
    seen = 0;
}

int fault_reached(void) { return seen >= target; }

static int is_here(const char *path)
{
    return folder[0] && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_here(int fd)
{
    char link[64], path[4096];
    if (!folder[0])
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return is_here(path);
}

enum { GO_ON, FAIL, LAST };

static int verdict(int here)
{
    if (!here)
        return GO_ON;
    seen++;
    if (seen != target && !(kind == FULL_FROM_THEN_ON && seen > target))
        return GO_ON;
    switch (kind) {
    case KILLED_BEFORE:
        kill(getpid(), SIGKILL);
        return FAIL;
    case KILLED_AFTER:
        return LAST;
    default:
        errno = kind == FAILING_ONCE ? EIO : ENOSPC;
        return FAIL;
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define GUARDED(here, call)                                                                        \
    int what = verdict(here);                                                                      \
    if (what == FAIL)                                                                              \
        return -1;                                                                                 \
    __typeof__(call) result = call;                                                                \
    if (what == LAST)                                                                              \
        kill(getpid(), SIGKILL);                                                                   \
    return result

/* The last write of a process is torn: half of it arrives. */
#define HALF(size) (what == LAST ? (size) / 2 : (size))

ssize_t write(int fd, const void *data, size_t size)
{
    GUARDED(is_open_here(fd), REAL(write)(fd, data, HALF(size)));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    GUARDED(is_open_here(fd), REAL(pwrite)(fd, data, HALF(size), at));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    GUARDED(is_open_here(fd), REAL(pwrite64)(fd, data, HALF(size), at));
}
int ftruncate(int fd, off_t size) { GUARDED(is_open_here(fd), REAL(ftruncate)(fd, size)); }
int ftruncate64(int fd, off64_t size) { GUARDED(is_open_here(fd), REAL(ftruncate64)(fd, size)); }
int fsync(int fd) { GUARDED(is_open_here(fd), REAL(fsync)(fd)); }
int fdatasync(int fd) { GUARDED(is_open_here(fd), REAL(fdatasync)(fd)); }
int rename(const char *from, const char *to) { GUARDED(is_here(to), REAL(rename)(from, to)); }
int unlink(const char *path) { GUARDED(is_here(path), REAL(unlink)(path)); }
int mkdir(const char *path, mode_t mode) { GUARDED(is_here(path), REAL(mkdir)(path, mode)); }

#define OPENING(name)                                                                              \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = va_arg(rest, mode_t);                                                        \
        va_end(rest);                                                                              \
        GUARDED((flags & O_ACCMODE) != O_RDONLY && is_here(path), REAL(name)(path, flags, mode));  \
    }
OPENING(open)
OPENING(open64)
