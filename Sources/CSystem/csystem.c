#define _GNU_SOURCE
#include "csystem.h"

#include <malloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int csystem_open_beneath(int dirfd, const char *path, int flags, mode_t mode) {
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags,
        .mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    // The kernel asks for a retry when a directory was renamed while it walked the path.
    for (int tries = 0;; tries++) {
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN || tries == 100) return (int)fd;
    }
}

int csystem_stat_beneath(int dirfd, const char *path, struct stat *status) {
    int fd = csystem_open_beneath(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = fstat(fd, status);
    int number = errno;
    close(fd);
    errno = number;
    return result;
}

int csystem_clone_file(int to, int from) { return ioctl(to, FICLONE, from); }

int csystem_rename_new(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE);
}

int csystem_rename_exchange(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
}

int64_t csystem_filesystem_type(const char *path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (int64_t)(uint32_t)status.f_type : -1;
}

int csystem_fcntl(int fd, int command, int argument) { return fcntl(fd, command, argument); }

int csystem_terminal_columns(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static atomic_int caught = 0;

static void on_signal(int number) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&caught, &none, number)) _exit(128 + number);
}

static int hangup_is_ignored;

int csystem_hangup_is_ignored(void) { return hangup_is_ignored; }

void csystem_catch_interrupts(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    // nohup(1) ignores it for us, and means it.
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) != 0 || before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
    else hangup_is_ignored = 1;
    // Whoever started us may have blocked them for itself.
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGINT);
    sigaddset(&heard, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &heard, NULL);
    // A reader that goes away shows up as EPIPE from write, which is an error we can report.
    signal(SIGPIPE, SIG_IGN);
    // So does a limit on the size of files, as EFBIG.
    signal(SIGXFSZ, SIG_IGN);
}

int csystem_caught_signal(void) { return atomic_load(&caught); }

int csystem_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int csystem_open_nameless(const char *folder) { return open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600); }

int csystem_contains(const void *bytes, size_t count, const void *needle, size_t needle_count) {
    return memmem(bytes, count, needle, needle_count) != NULL;
}

void csystem_return_freed_memory(void) { malloc_trim(0); }

void csystem_keep_freed_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_TOP_PAD, 1 << 20);
    /* Under `ulimit -v` the heaps that each thread would get leave too little for anything else. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
}
