/* Engines that break the interface, one for each name that the build defines: what the suite has to
 * survive, and to name. Otherwise they do nothing. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zeroproof.h>

struct zeroproof_state {
    const zeroproof_host* host;
    int32_t rank;
    void* memory;
};

static zeroproof_status reduce(zeroproof_state* s, zeroproof_communicator communicator,
                               size_t count) {
    float values[64] = {0};
    zeroproof_operation o = {ZEROPROOF_ALL_REDUCE, ZEROPROOF_FP32, ZEROPROOF_SUM, -1, 0, 0, 0};
    zeroproof_request request = 0;
    zeroproof_status status;
    o.input = o.output = values;
    o.count = count;
    status = s->host->start(s->host, communicator, &o, &request);
    if (status != ZEROPROOF_OK) return status;
    status = s->host->wait(s->host, request);
#ifdef WAITS_TWICE
    status = s->host->wait(s->host, request);
#endif
    return status;
}

#ifdef CALLS_FROM_ANOTHER_THREAD
static void* in_another_thread(void* argument) {
    zeroproof_state* s = argument;
    s->host->allocate(s->host, ZEROPROOF_BUFFER, 8, &s->memory);
    return NULL;
}
#endif

#ifdef CRASHES_ON_LOADING
__attribute__((constructor)) static void crash(void) {
    abort();
}
#endif

static zeroproof_status micro_step(zeroproof_state* s, int32_t last) {
    zeroproof_status status = ZEROPROOF_OK;
    (void)last;
    (void)reduce;
#if defined(CRASHES)
    *(volatile int*)s->memory = 1;
#elif defined(EXITS)
    exit(0);
#elif defined(HANGS)
    for (;;) sleep(1);
#elif defined(RELEASES_TWICE)
    s->host->allocate(s->host, ZEROPROOF_BUFFER, 8, &s->memory);
    s->host->release(s->host, s->memory);
    status = s->host->release(s->host, s->memory);
#elif defined(RELEASES_FOREIGN)
    status = s->host->release(s->host, s);
#elif defined(ONE_RANK_ALONE)
    if (s->rank == 0) status = reduce(s, s->host->gradients, 4);
#elif defined(OTHER_COUNTS)
    status = reduce(s, s->host->gradients, (size_t)s->rank + 1);
#elif defined(ENDLESS_COUNT)
    status = reduce(s, s->host->gradients, (size_t)-1);
#elif defined(WAITS_TWICE)
    status = reduce(s, s->host->gradients, 4);
#elif defined(OTHER_HANDLE)
    status = reduce(s, 42, 4);
#elif defined(OTHER_HOST)
    {
        zeroproof_host copy = *s->host;
        status = copy.allocate(&copy, ZEROPROOF_BUFFER, 8, &s->memory);
    }
#elif defined(IGNORES_ERRORS)
    (void)reduce(s, 42, 4);
#elif defined(CALLS_FROM_ANOTHER_THREAD)
    {
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_another_thread, s) == 0) pthread_join(thread, NULL);
    }
#elif defined(OTHER_UNIT)
    {
        const zeroproof_tensor nothing = {0};
        status = s->host->forward(s->host, (size_t)-1, &nothing);
    }
#elif defined(NO_WEIGHTS)
    status = s->host->forward(s->host, 0, NULL);
#elif defined(BACKWARD_FIRST)
    {
        const zeroproof_tensor nothing = {0};
        status = s->host->backward(s->host, 0, &nothing, &nothing, 1, NULL);
    }
#elif defined(OTHER_STATUS)
    status = 77;
#elif defined(OTHER_CATEGORY)
    status = s->host->allocate(s->host, -1, 8, &s->memory);
#elif defined(ALL_MEMORY)
    status = s->host->allocate(s->host, ZEROPROOF_BUFFER, (size_t)-1 / 2, &s->memory);
#endif
    (void)s;
    return status;
}

static zeroproof_status step(zeroproof_state* s, zeroproof_step_report* report) {
    (void)s;
    (void)report;
    return ZEROPROOF_OK;
}

static zeroproof_status slices(zeroproof_state* s, zeroproof_slice* slices, size_t capacity,
                               size_t* count) {
    (void)s;
    *count = 0;
#if defined(ENDLESS_SLICES)
    *count = (size_t)-1;
#elif defined(OTHER_PARAMETER)
    *count = 1;
    if (capacity > 0) {
        slices->parameter = 999;
        slices->begin = 0;
        slices->elements = 1;
    }
#endif
    (void)slices;
    (void)capacity;
    return ZEROPROOF_OK;
}

static zeroproof_status read_weights(zeroproof_state* s, size_t parameter, float* values) {
    (void)s;
    (void)parameter;
#ifdef WRITES_BEYOND
    memset(values, 0, 4096 * sizeof(char));
#endif
    (void)values;
    return ZEROPROOF_OK;
}

static zeroproof_status create(const zeroproof_host* host, int32_t rank, int32_t ranks,
                               const zeroproof_case* c, zeroproof_state** state) {
#ifdef REFUSES_ON_ONE_RANK
    if (rank == 1) return ZEROPROOF_UNSUPPORTED;
#endif
#ifdef CALLS_A_HOST_OF_BEFORE
    static const zeroproof_host* first = NULL;
    void* memory;
    if (rank == 0 && first == NULL) first = host;
    if (rank == 0 && first != host) return first->allocate(first, ZEROPROOF_BUFFER, 8, &memory);
#endif
    (void)ranks;
    (void)c;
#ifndef GIVES_NO_STATE
    *state = calloc(1, sizeof **state);
    if (*state == NULL) return ZEROPROOF_ERROR;
    (*state)->host = host;
    (*state)->rank = rank;
#else
    (void)state;
    (void)host;
    (void)rank;
#endif
    return ZEROPROOF_OK;
}

static void destroy(zeroproof_state* s) {
    free(s);
}

static zeroproof_status describe(zeroproof_description* d) {
#ifdef CRASHES_ON_DESCRIBING
    abort();
#endif
#ifndef HAS_NO_NAME
    d->name = "hostile";
#endif
    d->stages = 15;
    d->precisions = 1;
#ifdef SAYS_NONSENSE
    d->stages = 1u << 20;
#endif
    return ZEROPROOF_OK;
}

#ifdef EXPORTS_NOTHING
const zeroproof_engine* zeroproof_engine_of_another_name(uint32_t version);
#define zeroproof_get_engine zeroproof_engine_of_another_name
#endif
const zeroproof_engine* zeroproof_get_engine(uint32_t abi_version) {
    static zeroproof_engine engine;
    engine.struct_size = sizeof engine;
    engine.abi_version = abi_version;
    engine.describe = describe;
    engine.create = create;
    engine.destroy = destroy;
    engine.micro_step = micro_step;
    engine.step = step;
    engine.slices = slices;
    engine.read_weights = read_weights;
#if defined(OF_ANOTHER_VERSION)
    engine.abi_version = 7;
#elif defined(KNOWS_NO_VERSION)
    return NULL;
#elif defined(HAS_NO_TABLE_SIZE)
    engine.struct_size = 0;
#elif defined(HAS_NO_FUNCTIONS)
    engine.create = NULL;
#elif defined(HAS_A_NONSENSE_TABLE)
    return (const zeroproof_engine*)(uintptr_t)8;
#endif
    return &engine;
}
