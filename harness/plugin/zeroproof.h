/* The interface between zeroproof and an engine: an implementation of ZeRO in a shared object,
 * which `zeroproof verify ./engine.so` loads, drives and judges. C99, without any library to link.
 *
 * The shared object exports zeroproof_get_engine(). docs/plugin.md tells how to write one, and
 * harness/plugin/example/stage1.c is a whole engine.
 *
 * Ranks are threads of one process: the functions of an engine are called for each rank in a thread
 * of its own, for several ranks at a time. An engine therefore keeps everything in its state and
 * nothing in global variables. All calls for a rank, and all its calls back, are in that thread.
 * Functions are collective: each rank gets the same calls in the same order.
 *
 * Counts and offsets are in elements, sizes in bytes. Tensors are dense and row by row. Pointers
 * that one side gives to the other stay valid for the call, unless it is said otherwise.
 */
#ifndef ZEROPROOF_H
#define ZEROPROOF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Another number is another interface: neither side tries to understand it. Within one number
 * structs with a `struct_size` may grow at their end; nobody reads or writes beyond that size. */
#define ZEROPROOF_ABI_VERSION 1u

/* What functions return, on both sides. After anything but ZEROPROOF_OK of a function of the host,
 * the engine returns ZEROPROOF_ERROR from the call that it is in: the run is over. */
typedef int32_t zeroproof_status;
enum {
    ZEROPROOF_OK = 0,
    ZEROPROOF_UNSUPPORTED = 1, /* of create() alone: the case is refused, before any work */
    ZEROPROOF_ERROR = 2,       /* say why with host->explain() */
    ZEROPROOF_ENVIRONMENT = 3  /* of create() alone: cannot run on this machine */
};

/* Types of elements. */
enum {
    ZEROPROOF_FP32 = 0,
    ZEROPROOF_FP16 = 1,
    ZEROPROOF_BF16 = 2,
    ZEROPROOF_FP64 = 3,
    ZEROPROOF_INT8 = 4,
    ZEROPROOF_INT32 = 5,
    ZEROPROOF_INT64 = 6
};

/* What memory is for. */
enum {
    ZEROPROOF_PARAMETER = 0,
    ZEROPROOF_GRADIENT = 1,
    ZEROPROOF_MASTER = 2,
    ZEROPROOF_MOMENTUM = 3,
    ZEROPROOF_VARIANCE = 4,
    ZEROPROOF_ACTIVATION = 5,
    ZEROPROOF_CHECKPOINT = 6,
    ZEROPROOF_BUFFER = 7
};

/* Collectives over a group of N ranks, by `count`:
 *   broadcast, all_reduce  count elements in and out; of a broadcast only the root's input is read
 *   reduce                 count in; count out on the root, none elsewhere
 *   reduce_scatter         N * count in, count out     in place: output == input + rank * count
 *   all_gather             count in, N * count out     in place: input == output + rank * count
 *   all_to_all             N * count in and out; block i of the input goes to rank i
 *   send, receive          count in / count out, with the other rank `peer`
 * All but reduce_scatter and all_gather are in place where output == input; all_to_all cannot be.
 * fp16 and bf16 are accumulated in fp32. Ranks are added in ascending order. */
enum {
    ZEROPROOF_BROADCAST = 0,
    ZEROPROOF_REDUCE = 1,
    ZEROPROOF_ALL_REDUCE = 2,
    ZEROPROOF_REDUCE_SCATTER = 3,
    ZEROPROOF_ALL_GATHER = 4,
    ZEROPROOF_ALL_TO_ALL = 5,
    ZEROPROOF_SEND = 6,
    ZEROPROOF_RECEIVE = 7
};
enum {
    ZEROPROOF_NO_REDUCTION = 0, /* of what does not reduce */
    ZEROPROOF_SUM = 1,
    ZEROPROOF_MEAN = 2,
    ZEROPROOF_MAX = 3,
    ZEROPROOF_MIN = 4
};
typedef struct zeroproof_operation {
    int32_t op;
    int32_t type;
    int32_t reduction;
    int32_t peer; /* root of broadcast and reduce, other end of send and receive; else ignored */
    const void* input;
    void* output;
    size_t count;
} zeroproof_operation;

/* Handles: numbers, never 0. */
typedef uint64_t zeroproof_communicator;
typedef uint64_t zeroproof_request;

typedef struct zeroproof_tensor {
    void* data;
    int32_t type;
} zeroproof_tensor;

/* What the host does for an engine. Valid until destroy() returns. */
typedef struct zeroproof_host zeroproof_host;
struct zeroproof_host {
    uint32_t struct_size;
    uint32_t abi_version;

    /* All ranks, one for each kind of traffic: use the one whose kind it is. Counted by it. */
    zeroproof_communicator gradients;
    zeroproof_communicator parameters;
    zeroproof_communicator control;

    /* 64-byte aligned and full of NaN. Every model state and every buffer of its size comes from
     * here, so that its bytes are counted. NULL for 0 bytes. */
    zeroproof_status (*allocate)(const zeroproof_host* host, int32_t category, size_t bytes,
                                 void** memory);
    /* NULL is ignored. */
    zeroproof_status (*release)(const zeroproof_host* host, void* memory);

    /* Starts an operation. Until it was waited for, its input is not to be written and its output
     * neither read nor written, and both stay allocated. Ranks of a group start the same operations
     * in the same order. */
    zeroproof_status (*start)(const zeroproof_host* host, zeroproof_communicator communicator,
                              const zeroproof_operation* operation, zeroproof_request* request);
    /* Once for each request. */
    zeroproof_status (*wait)(const zeroproof_host* host, zeroproof_request request);
    /* A communicator for each colour, of the same kind of traffic, ranked by (key, rank).
     * Collective. 0 for a negative colour. What is left at destroy() is closed. */
    zeroproof_status (*split)(const zeroproof_host* host, zeroproof_communicator communicator,
                              int32_t color, int32_t key, zeroproof_communicator* part);
    zeroproof_status (*shape)(const zeroproof_host* host, zeroproof_communicator communicator,
                              int32_t* rank, int32_t* ranks);
    zeroproof_status (*close)(const zeroproof_host* host, zeroproof_communicator communicator);

    /* Elements [begin, begin + elements) of a parameter, before any training. */
    zeroproof_status (*initial_weights)(const zeroproof_host* host, size_t parameter, size_t begin,
                                        size_t elements, float* values);
    /* In micro_step() and evaluate(): computes a unit. One tensor for each of its parameters,
     * whole, as zeroproof_unit lists them. */
    zeroproof_status (*forward)(const zeroproof_host* host, size_t unit,
                                const zeroproof_tensor* weights);
    /* In micro_step(): what follows is the backward pass. */
    zeroproof_status (*begin_backward)(const zeroproof_host* host);
    /* After begin_backward(): adds the gradient of this use of each parameter, times `loss_scale`,
     * to its tensor in `gradients`; where that has no data, it is dropped. `used`, which may be
     * NULL, gets 1 for each parameter that this rank uses in this micro-step, and 0 where nothing
     * was added. */
    zeroproof_status (*backward)(const zeroproof_host* host, size_t unit,
                                 const zeroproof_tensor* weights, const zeroproof_tensor* gradients,
                                 float loss_scale, int32_t* used);

    /* Why the present call is going to fail, or the case is refused. The last text counts. */
    void (*explain)(const zeroproof_host* host, const char* message);
    /* For the engine's author. */
    void (*log)(const zeroproof_host* host, const char* message);
};

/* A case: what is to be trained, and how. Valid until destroy() returns. */
typedef struct zeroproof_parameter {
    const char* name;
    const size_t* shape;
    size_t dimensions;
    size_t elements; /* may be 0 */
    int32_t group;   /* of zeroproof_case.groups */
    int32_t trainable;
} zeroproof_parameter;

typedef struct zeroproof_unit {
    const size_t* parameters; /* indices; a parameter in several units is tied */
    size_t parameter_count;
} zeroproof_unit;

typedef struct zeroproof_group {
    double learning_rate;
    double beta1;
    double beta2;
    double epsilon;
    double weight_decay;
    int32_t l2; /* decay is L2 (Adam); otherwise decoupled (AdamW) */
} zeroproof_group;

typedef struct zeroproof_option {
    const char* name;
    const char* value; /* JSON */
} zeroproof_option;

typedef struct zeroproof_case {
    uint32_t struct_size;
    int32_t stage;
    int32_t precision;   /* of weights and gradients: ZEROPROOF_FP32, _FP16 or _BF16 */
    int32_t micro_steps; /* GA, of a window */
    const char* id;

    const zeroproof_parameter* parameters; /* in the order of registration */
    size_t parameter_count;
    const zeroproof_unit* units; /* in the order of the forward pass */
    size_t unit_count;
    const zeroproof_group* groups;
    size_t group_count;

    size_t bucket_elements;
    int32_t overlap;  /* reduce gradients while backward computes */
    int32_t prefetch; /* stage 3: gather the next unit while one computes */
    double clip_norm; /* bound of the gradient norm in every step; 0 does not clip */

    /* fp16 alone. */
    double loss_scale;
    double loss_scale_factor;
    double loss_scale_minimum;
    int32_t growth_interval;
    int32_t hysteresis;

    const char* const* features; /* beyond this list: refuse the case if you do not know one */
    size_t feature_count;
    const zeroproof_option* options; /* settings of the engine's own, which change no result */
    size_t option_count;
} zeroproof_case;

/* What an engine says of itself. docs/declarations.md tells what follows from it. */
enum {
    ZEROPROOF_HIDES_GRADIENT = 1 << 0, /* read_slice() cannot give ... */
    ZEROPROOF_HIDES_MOMENTUM = 1 << 1,
    ZEROPROOF_HIDES_VARIANCE = 1 << 2,
    ZEROPROOF_HIDES_MASTER = 1 << 3,
    ZEROPROOF_HIDES_NORM = 1 << 4, /* zeroproof_step_report has no ... */
    ZEROPROOF_HIDES_CLIP = 1 << 5,
    ZEROPROOF_HIDES_BYTES = 1 << 6,     /* model states are not allocated through the host */
    ZEROPROOF_HIDES_TRAFFIC = 1 << 7,   /* collectives do not go through the host */
    ZEROPROOF_HIDES_OWNERSHIP = 1 << 8, /* slices only hand over values */
    ZEROPROOF_HIDES_LOSS_SCALE = 1 << 9
};

typedef struct zeroproof_description {
    uint32_t struct_size;
    const char* name; /* UTF-8, valid as long as the shared object is loaded, as all texts here */
    const char* version; /* may be NULL */
    uint32_t stages;     /* bit s: stage s */
    uint32_t precisions; /* bit t: type t, such as 1u << ZEROPROOF_BF16 */
    uint32_t hidden;     /* ZEROPROOF_HIDES_... */
    int32_t most_ranks;  /* 0 is 64 */

    int32_t skips_unused;     /* what no rank has used in a window is not stepped; otherwise its
                                 gradient is zero */
    int32_t lazy_states;      /* optimizer states are made in the first step */
    int32_t steps_non_finite; /* never skips a step */
    int32_t norm_in_fp64;     /* the norm is summed in fp64, otherwise fp32 */
    int32_t promises_buckets; /* no operation carries more than the case's bucket */
    int32_t promises_control; /* a step sends at most ... */
    size_t control_elements_per_step; /* ... so many control elements */
    double clip_epsilon;              /* in bound / (norm + clip_epsilon) */

    const char* const* features;
    size_t feature_count;
    /* NULL, or a JSON object of further keys of a declaration: deviating, not_promised, options. */
    const char* further;
} zeroproof_description;

typedef struct zeroproof_step_report {
    uint32_t struct_size;
    int32_t skipped;
    double norm;             /* of the averaged, unscaled gradient, before clipping */
    double clip_coefficient; /* 1 is preset */
} zeroproof_step_report;

typedef struct zeroproof_progress {
    uint32_t struct_size;
    int64_t steps_taken;
    int64_t steps_skipped;
    double loss_scale; /* 1 is preset */
} zeroproof_progress;

/* A run of elements of one parameter whose states this rank keeps. */
typedef struct zeroproof_slice {
    size_t parameter;
    size_t begin;
    size_t elements;
} zeroproof_slice;

/* What read_slice() is asked for; all as fp32. Gradients are asked for right after a step that was
 * not skipped: averaged, unscaled, before clipping. In fp32 the weight is its own master. */
enum {
    ZEROPROOF_READ_MASTER = 0,
    ZEROPROOF_READ_MOMENTUM = 1,
    ZEROPROOF_READ_VARIANCE = 2,
    ZEROPROOF_READ_GRADIENT = 3
};

/* One rank of the engine: what create() has made. */
typedef struct zeroproof_state zeroproof_state;

/* Functions may be NULL where that is said; cases that need one that is are then refused. */
typedef struct zeroproof_engine {
    uint32_t struct_size;
    uint32_t abi_version;

    /* Fills what differs from the preset zeros. Called in any thread. */
    zeroproof_status (*describe)(zeroproof_description* description);

    /* First, once for a case and rank. What it cannot do as asked it refuses here, before it
     * allocates or sends anything. Unless it returns ZEROPROOF_OK it leaves nothing behind. */
    zeroproof_status (*create)(const zeroproof_host* host, int32_t rank, int32_t ranks,
                               const zeroproof_case* c, zeroproof_state** state);
    /* Last, after a failure as well: the host may then refuse everything but release(). */
    void (*destroy)(zeroproof_state* state);

    /* Forward and backward; gradients are accumulated. `last` of the window: a step follows. */
    zeroproof_status (*micro_step)(zeroproof_state* state, int32_t last);
    /* The optimizer's step, clipped if the case says so, skipped if a gradient is not finite. */
    zeroproof_status (*step)(zeroproof_state* state, zeroproof_step_report* report);

    /* Each of the following may be NULL. */

    /* Discards what the window has accumulated, and begins it anew. */
    zeroproof_status (*zero_grad)(zeroproof_state* state, int32_t by_model);
    /* A forward pass that changes nothing. */
    zeroproof_status (*evaluate)(zeroproof_state* state);
    /* Everything that training needs, into an existing folder that all ranks share, and from it:
     * perhaps in another process, on another number of ranks, or in another stage. */
    zeroproof_status (*save)(zeroproof_state* state, const char* folder);
    zeroproof_status (*load)(zeroproof_state* state, const char* folder);

    zeroproof_status (*set_learning_rate)(zeroproof_state* state, size_t group, double rate);
    /* Between the last micro-step of a window and its step, of the accumulated gradient: */
    zeroproof_status (*clip)(zeroproof_state* state, double bound);
    zeroproof_status (*scale_gradient)(zeroproof_state* state, size_t parameter, double factor);
    /* Between two windows. In place, its master included. */
    zeroproof_status (*scale_weight)(zeroproof_state* state, size_t parameter, double factor);
    zeroproof_status (*set_trainable)(zeroproof_state* state, size_t parameter, int32_t trainable);
    /* A group that the optimizer has left out until now. */
    zeroproof_status (*add_group)(zeroproof_state* state, size_t group);

    /* What is observed; after create() and after every call but micro_step(). None changes
     * anything; collectives are allowed, and not counted. */
    zeroproof_status (*progress)(zeroproof_state* state, zeroproof_progress* progress);
    /* The number of slices that this rank keeps, and as many of them as `capacity` allows: the same
     * ones in the same order each time. */
    zeroproof_status (*slices)(zeroproof_state* state, zeroproof_slice* slices, size_t capacity,
                               size_t* count);
    zeroproof_status (*read_slice)(zeroproof_state* state, const zeroproof_slice* slice,
                                   int32_t what, float* values);
    /* The whole parameter as this rank would use it. */
    zeroproof_status (*read_weights)(zeroproof_state* state, size_t parameter, float* values);
} zeroproof_engine;

/* The one symbol of the shared object: the engine's table, which stays valid, or NULL if it does
 * not know that version. */
#if defined(_WIN32)
#define ZEROPROOF_EXPORT __declspec(dllexport)
#else
#define ZEROPROOF_EXPORT __attribute__((visibility("default")))
#endif
ZEROPROOF_EXPORT const zeroproof_engine* zeroproof_get_engine(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif
