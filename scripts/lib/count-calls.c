// A library for LD_PRELOAD that counts the calls of a process that allocate memory or lock a mutex.
// `counted_calls` returns the numbers. For glibc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic unsigned long allocations, bytes, locks, swift_calls;

// The numbers of allocations, of requested bytes and of locks since the start of the process.
void counted_calls(unsigned long counts[3]) {
    counts[0] = allocations;
    counts[1] = bytes;
    counts[2] = locks + swift_calls / 2;
}

static size_t count(size_t size) {
    allocations++;
    bytes += size;
    return size;
}

void *malloc(size_t size) { return __libc_malloc(count(size)); }
void *calloc(size_t number, size_t size) {
    count(number * size);
    return __libc_calloc(number, size);
}
void *realloc(void *old, size_t size) { return __libc_realloc(old, count(size)); }
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, count(size)); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, count(size)); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *new = __libc_memalign(alignment, count(size));
    if (!new) return ENOMEM;
    *memory = new;
    return 0;
}

// Defines a function that counts a lock and calls the function of the C library.
#define COUNTED_LOCK(name, type)                                                     \
    int name(type *lock) {                                                           \
        static int (*next)(type *);                                                  \
        if (!next) next = (int (*)(type *))dlsym(RTLD_NEXT, #name);                  \
        locks++;                                                                     \
        return next(lock);                                                           \
    }
COUNTED_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNTED_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNTED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

#ifdef __x86_64__
// A lock of Synchronization.Mutex is inlined. Debug builds call a function both to lock and to
// unlock it, which has a copy in each object file of the program. A breakpoint replaces the first
// instruction of each copy, `push %rbp`, and the handler of the signal executes the instruction.
static void count_swift_call(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    registers[REG_RSP] -= sizeof(greg_t);
    *(greg_t *)registers[REG_RSP] = registers[REG_RBP];
    swift_calls++;
}

// Returns the address of the program, which is the first object.
static int program_address(struct dl_phdr_info *info, size_t size, void *address) {
    (void)size;
    *(ElfW(Addr) *)address = info->dlpi_addr;
    return 1;
}

// COUNTED_FUNCTIONS contains the addresses of the copies in the program, separated by spaces.
__attribute__((constructor)) static void set_breakpoints(void) {
    const char *list = getenv("COUNTED_FUNCTIONS");
    if (!list) return;
    unsetenv("COUNTED_FUNCTIONS");
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = count_swift_call, .sa_flags = SA_SIGINFO}, NULL);
    ElfW(Addr) base = 0;
    dl_iterate_phdr(program_address, &base);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *end;
    for (ElfW(Addr) offset; (offset = strtoul(list, &end, 16)) && end != list; list = end) {
        unsigned char *function = (unsigned char *)(base + offset);
        mprotect((void *)((ElfW(Addr))function & ~(page - 1)), page, PROT_READ | PROT_WRITE | PROT_EXEC);
        if (*function == 0x55) *function = 0xcc;
    }
}
#endif
