/* ZeRO stage 1 in C99: optimizer states are partitioned, weights and gradients are whole on every
 * rank. A whole engine for `zeroproof verify`, to read and to begin from. fp32 alone.
 *
 * All trainable parameters lie one behind the other in a flat range, which is padded to a multiple
 * of the ranks and cut into buckets. Each rank owns its N-th part of each bucket. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zeroproof.h>

#define TRY(call)                                    \
    do {                                             \
        const zeroproof_status status_ = (call);     \
        if (status_ != ZEROPROOF_OK) return status_; \
    } while (0)

#define NOWHERE ((size_t)-1)

struct zeroproof_state {
    const zeroproof_host* host;
    const zeroproof_case* c;
    size_t rank, ranks;
    zeroproof_group* groups;
    size_t* begin;     /* by parameter: where it begins, in the flat range or among the frozen */
    size_t* last_unit; /* by bucket: the last unit of a backward pass that adds to it, or NOWHERE */
    size_t elements;   /* of the flat range, without its padding */
    size_t padded;
    size_t bucket; /* elements of a bucket; the last one may be shorter */
    size_t buckets;
    float *weights, *frozen, *gradients; /* whole */
    float *momentum, *variance;          /* of what this rank owns, bucket by bucket */
    zeroproof_request* in_flight;
    size_t in_flight_count;
    int32_t in_window; /* micro-steps so far */
    int64_t steps_taken, steps_skipped;
};

typedef struct zeroproof_state state;

static size_t minimum(size_t a, size_t b) {
    return a < b ? a : b;
}

static zeroproof_status explained(const zeroproof_host* host, zeroproof_status status,
                                  const char* why) {
    host->explain(host, why);
    return status;
}

/* ---- Where things lie ---- */

static size_t bucket_length(const state* s, size_t bucket) {
    return minimum(s->bucket, s->padded - bucket * s->bucket);
}

/* What `rank` of `ranks` owns of a bucket: the first element, and how many. */
static size_t owned_begin(const state* s, size_t bucket, size_t* elements) {
    *elements = bucket_length(s, bucket) / s->ranks;
    return bucket * s->bucket + s->rank * *elements;
}

/* Where the states of a bucket's owned part begin in momentum and variance. */
static size_t shard_begin(const state* s, size_t bucket) {
    return bucket * (s->bucket / s->ranks);
}

static float* weights_of(const state* s, size_t parameter) {
    return (s->c->parameters[parameter].trainable ? s->weights : s->frozen) + s->begin[parameter];
}

/* The part of parameter p that this rank owns in a bucket; 0 elements if none. `begin` is in the
 * flat range. */
static size_t owned_part(const state* s, size_t p, size_t bucket, size_t* begin) {
    size_t length;
    const size_t first = owned_begin(s, bucket, &length);
    const size_t end = minimum(first + length, s->begin[p] + s->c->parameters[p].elements);
    *begin = first > s->begin[p] ? first : s->begin[p];
    return s->c->parameters[p].trainable && end > *begin ? end - *begin : 0;
}

static void lay_out(state* s) {
    const zeroproof_case* c = s->c;
    size_t p, u, i, b, frozen = 0;
    for (p = 0; p < c->parameter_count; ++p) {
        size_t* end = c->parameters[p].trainable ? &s->elements : &frozen;
        s->begin[p] = *end;
        *end += c->parameters[p].elements;
    }
    s->padded = (s->elements + s->ranks - 1) / s->ranks * s->ranks;
    s->bucket = (c->bucket_elements + s->ranks - 1) / s->ranks * s->ranks;
    s->buckets = (s->padded + s->bucket - 1) / s->bucket;
    for (b = 0; b < s->buckets; ++b) s->last_unit[b] = NOWHERE;
    /* Backward begins with the last unit: the first unit that uses a bucket completes it. */
    for (u = c->unit_count; u-- > 0;)
        for (i = 0; i < c->units[u].parameter_count; ++i) {
            const size_t which = c->units[u].parameters[i];
            const size_t n = c->parameters[which].elements;
            if (!c->parameters[which].trainable || n == 0) continue;
            for (b = s->begin[which] / s->bucket; b * s->bucket < s->begin[which] + n; ++b)
                s->last_unit[b] = u;
        }
}

/* ---- Communication ---- */

static zeroproof_status now(const zeroproof_host* host, zeroproof_communicator communicator,
                            const zeroproof_operation* operation) {
    zeroproof_request request;
    TRY(host->start(host, communicator, operation, &request));
    return host->wait(host, request);
}

static zeroproof_status wait_all(state* s) {
    size_t i;
    for (i = 0; i < s->in_flight_count; ++i) TRY(s->host->wait(s->host, s->in_flight[i]));
    s->in_flight_count = 0;
    return ZEROPROOF_OK;
}

static zeroproof_status reduce_bucket(state* s, size_t bucket) {
    zeroproof_operation o = {ZEROPROOF_REDUCE_SCATTER, ZEROPROOF_FP32, ZEROPROOF_MEAN, -1, 0, 0, 0};
#ifdef STAGE1_WRONG
    /* What the suite's own test is about: the second bucket is summed, not averaged. */
    if (bucket == 1) o.reduction = ZEROPROOF_SUM;
#endif
    o.input = s->gradients + bucket * s->bucket;
    o.output = s->gradients + owned_begin(s, bucket, &o.count);
    TRY(s->host->start(s->host, s->host->gradients, &o, &s->in_flight[s->in_flight_count++]));
    return s->c->overlap ? ZEROPROOF_OK : wait_all(s);
}

static zeroproof_status gather_weights(state* s) {
    size_t b;
    for (b = 0; b < s->buckets; ++b) {
        zeroproof_operation o = {ZEROPROOF_ALL_GATHER, ZEROPROOF_FP32, 0, -1, 0, 0, 0};
        o.input = s->weights + owned_begin(s, b, &o.count);
        o.output = s->weights + b * s->bucket;
        TRY(s->host->start(s->host, s->host->parameters, &o, &s->in_flight[s->in_flight_count++]));
    }
    return wait_all(s);
}

static zeroproof_status barrier(state* s) {
    int32_t nothing = 0;
    zeroproof_operation o = {ZEROPROOF_ALL_REDUCE, ZEROPROOF_INT32, ZEROPROOF_SUM, -1, 0, 0, 1};
    o.input = o.output = &nothing;
    return now(s->host, s->host->control, &o);
}

/* ---- Training ---- */

static float divisor(const state* s) {
    return (float)s->c->micro_steps; /* the reduction has averaged over the ranks */
}

static zeroproof_status clear_gradients(state* s) {
    TRY(wait_all(s));
    if (s->padded > 0) memset(s->gradients, 0, s->padded * sizeof(float));
    return ZEROPROOF_OK;
}

/* Runs a unit: its tensors lie where they are anyway. */
static zeroproof_status run_unit(state* s, size_t unit, int is_backward) {
    const zeroproof_unit* u = &s->c->units[unit];
    zeroproof_tensor* weights = calloc(2 * u->parameter_count + 1, sizeof *weights);
    zeroproof_tensor* gradients = weights + u->parameter_count;
    zeroproof_status status;
    size_t i;
    if (weights == NULL) return explained(s->host, ZEROPROOF_ERROR, "out of memory");
    for (i = 0; i < u->parameter_count; ++i) {
        const size_t p = u->parameters[i];
        weights[i].data = weights_of(s, p);
        if (s->c->parameters[p].trainable) gradients[i].data = s->gradients + s->begin[p];
    }
    status = is_backward ? s->host->backward(s->host, unit, weights, gradients, 1, NULL)
                         : s->host->forward(s->host, unit, weights);
    free(weights);
    return status;
}

static zeroproof_status evaluate(state* s) {
    size_t u;
    for (u = 0; u < s->c->unit_count; ++u) TRY(run_unit(s, u, 0));
    return ZEROPROOF_OK;
}

static zeroproof_status micro_step(state* s, int32_t last) {
    size_t u, b;
    if (s->in_window++ == 0) TRY(clear_gradients(s));
    TRY(evaluate(s));
    TRY(s->host->begin_backward(s->host));
    for (u = s->c->unit_count; u-- > 0;) {
        TRY(run_unit(s, u, 1));
        for (b = 0; last && b < s->buckets; ++b)
            if (s->last_unit[b] == u) TRY(reduce_bucket(s, b));
    }
    for (b = 0; last && b < s->buckets; ++b)
        if (s->last_unit[b] == NOWHERE) TRY(reduce_bucket(s, b));
    return ZEROPROOF_OK;
}

/* The norm over all ranks of the averaged gradient; INFINITY if an element is not finite. */
static zeroproof_status measure(state* s, double* norm) {
    double sums[2] = {0, 0}; /* of squares, and of what is not finite */
    zeroproof_operation o = {ZEROPROOF_ALL_REDUCE, ZEROPROOF_FP64, ZEROPROOF_SUM, -1, 0, 0, 2};
    size_t b, i, length;
    for (b = 0; b < s->buckets; ++b) {
        const float* g = s->gradients + owned_begin(s, b, &length);
        for (i = 0; i < length; ++i) { /* padding is zero */
            const double value = (double)g[i] / divisor(s);
            if (isfinite(value))
                sums[0] += value * value;
            else
                sums[1] += 1;
        }
    }
    o.input = o.output = sums;
    TRY(now(s->host, s->host->control, &o));
    *norm = sums[1] > 0 ? INFINITY : sqrt(sums[0]);
    return ZEROPROOF_OK;
}

static float coefficient(double norm, double bound) {
    return bound == 0 || norm <= bound ? 1.0f : (float)(bound / norm);
}

/* Adam on `n` elements from `flat` on, whose states begin at `shard`. */
static void adam(state* s, const zeroproof_group* group, size_t flat, size_t shard, size_t n,
                 float clip) {
    const float rate = (float)group->learning_rate, decay = (float)group->weight_decay;
    const float beta1 = (float)group->beta1, beta2 = (float)group->beta2;
    const float epsilon = (float)group->epsilon;
    const float correction1 = (float)(1 - pow(group->beta1, (double)s->steps_taken));
    const float correction2 = (float)(1 - pow(group->beta2, (double)s->steps_taken));
    size_t i;
    for (i = 0; i < n; ++i) {
        float* p = s->weights + flat + i;
        float* m = s->momentum + shard + i;
        float* v = s->variance + shard + i;
        const float g =
            s->gradients[flat + i] / divisor(s) * clip + (group->l2 ? decay * *p : 0.0f);
        *m = beta1 * *m + (1 - beta1) * g;
        *v = beta2 * *v + (1 - beta2) * g * g;
        *p -= rate * (*m / correction1 / (sqrtf(*v / correction2) + epsilon) +
                      (group->l2 ? 0.0f : decay * *p));
    }
}

static zeroproof_status step(state* s, zeroproof_step_report* report) {
    size_t p, b, begin, n, unused;
    if (s->in_window == 0) TRY(clear_gradients(s)); /* a window without any micro-step */
    s->in_window = 0;
    TRY(wait_all(s));
    TRY(measure(s, &report->norm));
    if (isinf(report->norm)) {
        report->skipped = 1;
        ++s->steps_skipped;
        return ZEROPROOF_OK;
    }
    report->clip_coefficient = (double)coefficient(report->norm, s->c->clip_norm);
    ++s->steps_taken;
    for (p = 0; p < s->c->parameter_count; ++p)
        for (b = 0; b < s->buckets; ++b)
            if ((n = owned_part(s, p, b, &begin)) > 0)
                adam(s, &s->groups[s->c->parameters[p].group], begin,
                     shard_begin(s, b) + begin - owned_begin(s, b, &unused), n,
                     (float)report->clip_coefficient);
    return gather_weights(s);
}

static zeroproof_status zero_grad(state* s, int32_t by_model) {
    (void)by_model;
    s->in_window = 0;
    return clear_gradients(s);
}

/* ---- Edits ---- */

static zeroproof_status set_learning_rate(state* s, size_t group, double rate) {
    s->groups[group].learning_rate = rate;
    return ZEROPROOF_OK;
}

/* Of what this rank owns of a parameter. */
static void scale_owned(const state* s, float* flat, size_t p, float factor) {
    size_t b, begin, n;
    for (b = 0; b < s->buckets; ++b)
        for (n = owned_part(s, p, b, &begin); n > 0; --n) flat[begin + n - 1] *= factor;
}

static zeroproof_status clip(state* s, double bound) {
    double norm;
    size_t p;
    TRY(wait_all(s));
    TRY(measure(s, &norm));
    if (isinf(norm)) return ZEROPROOF_OK; /* the step will be skipped */
    for (p = 0; p < s->c->parameter_count; ++p)
        scale_owned(s, s->gradients, p, coefficient(norm, bound));
    return ZEROPROOF_OK;
}

static zeroproof_status scale_gradient(state* s, size_t parameter, double factor) {
    TRY(wait_all(s));
    scale_owned(s, s->gradients, parameter, (float)factor);
    return ZEROPROOF_OK;
}

static zeroproof_status scale_weight(state* s, size_t parameter, double factor) {
    size_t i;
    if (s->c->parameters[parameter].trainable) {
        scale_owned(s, s->weights, parameter, (float)factor);
        return gather_weights(s);
    }
    for (i = 0; i < s->c->parameters[parameter].elements; ++i)
        weights_of(s, parameter)[i] *= (float)factor;
    return ZEROPROOF_OK;
}

/* ---- Checkpoints: rank 0 writes the whole weights, each rank its states ---- */

struct header {
    uint64_t ranks;
    int64_t steps_taken, steps_skipped;
};

static FILE* open_file(const char* folder, const char* name, size_t number, const char* mode) {
    char path[4096];
    const int length =
        snprintf(path, sizeof path, "%s/%s-%lu", folder, name, (unsigned long)number);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, mode) : NULL;
}

/* Writes or reads all weights. */
static int move_weights(state* s, const char* folder, int writes) {
    FILE* file = open_file(folder, "weights", 0, writes ? "wb" : "rb");
    int done = file != NULL;
    size_t p;
    for (p = 0; done && p < s->c->parameter_count; ++p) {
        const size_t n = s->c->parameters[p].elements;
        if (n == 0) continue;
        done = n == (writes ? fwrite(weights_of(s, p), sizeof(float), n, file)
                            : fread(weights_of(s, p), sizeof(float), n, file));
    }
    if (file != NULL) done = (fclose(file) == 0) && done;
    return done;
}

static int save_shard(const state* s, const char* folder) {
    const struct header h = {s->ranks, s->steps_taken, s->steps_skipped};
    const size_t shard = s->padded / s->ranks;
    FILE* file = open_file(folder, "states", s->rank, "wb");
    int done = file != NULL && fwrite(&h, sizeof h, 1, file) == 1;
    if (shard > 0)
        done = done && fwrite(s->momentum, sizeof(float), shard, file) == shard &&
               fwrite(s->variance, sizeof(float), shard, file) == shard;
    if (file != NULL) done = (fclose(file) == 0) && done;
    return done;
}

static zeroproof_status save(state* s, const char* folder) {
    if (!save_shard(s, folder) || (s->rank == 0 && !move_weights(s, folder, 1)))
        return explained(s->host, ZEROPROOF_ERROR, "a checkpoint cannot be written");
    return barrier(s); /* nobody loads what is not there yet */
}

/* Takes what this rank owns of the states that `old`, which is another rank's view of the flat
 * range, has saved. */
static void take_states(state* s, const state* old, const float* momentum, const float* variance) {
    size_t b, i, length, own_length;
    for (b = 0; b < old->buckets; ++b) {
        const size_t begin = owned_begin(old, b, &length);
        for (i = 0; i < length && begin + i < s->elements; ++i) {
            const size_t own_bucket = (begin + i) / s->bucket;
            const size_t own_begin = owned_begin(s, own_bucket, &own_length);
            const size_t from = shard_begin(old, b) + i;
            const size_t to = shard_begin(s, own_bucket) + begin + i - own_begin;
            if (begin + i < own_begin || begin + i >= own_begin + own_length) continue;
            s->momentum[to] = momentum[from];
            s->variance[to] = variance[from];
        }
    }
}

/* Of one rank that has saved. Sets `ranks` to how many there were. */
static int load_shard(state* s, const char* folder, size_t rank, size_t* ranks) {
    FILE* file = open_file(folder, "states", rank, "rb");
    struct header h;
    state old = *s;
    float* values = NULL;
    size_t shard = 0;
    int done = file != NULL && fread(&h, sizeof h, 1, file) == 1 && h.ranks > rank;
    if (done) {
        *ranks = old.ranks = (size_t)h.ranks;
        old.rank = rank;
        old.padded = (s->elements + old.ranks - 1) / old.ranks * old.ranks;
        old.bucket = (s->c->bucket_elements + old.ranks - 1) / old.ranks * old.ranks;
        old.buckets = (old.padded + old.bucket - 1) / old.bucket;
        shard = old.padded / old.ranks;
        values = malloc(2 * shard * sizeof(float) + 1);
        done = values != NULL && fread(values, sizeof(float), 2 * shard, file) == 2 * shard;
    }
    if (done) {
        take_states(s, &old, values, values + shard);
        s->steps_taken = h.steps_taken;
        s->steps_skipped = h.steps_skipped;
    }
    free(values);
    if (file != NULL) fclose(file);
    return done;
}

static zeroproof_status load(state* s, const char* folder) {
    size_t rank, ranks = 1;
    int done = move_weights(s, folder, 0);
    for (rank = 0; done && rank < ranks; ++rank) done = load_shard(s, folder, rank, &ranks);
    s->in_window = 0;
    return done ? ZEROPROOF_OK : explained(s->host, ZEROPROOF_ERROR, "a checkpoint cannot be read");
}

/* ---- What is observed ---- */

static zeroproof_status progress(state* s, zeroproof_progress* progress) {
    progress->steps_taken = s->steps_taken;
    progress->steps_skipped = s->steps_skipped;
    return ZEROPROOF_OK;
}

static zeroproof_status slices(state* s, zeroproof_slice* slices, size_t capacity, size_t* count) {
    size_t p, b, begin, n;
    *count = 0;
    for (p = 0; p < s->c->parameter_count; ++p)
        for (b = 0; b < s->buckets; ++b) {
            if ((n = owned_part(s, p, b, &begin)) == 0) continue;
            if (*count < capacity) {
                slices[*count].parameter = p;
                slices[*count].begin = begin - s->begin[p];
                slices[*count].elements = n;
            }
            ++*count;
        }
    return ZEROPROOF_OK;
}

static zeroproof_status read_slice(state* s, const zeroproof_slice* slice, int32_t what,
                                   float* values) {
    const size_t flat = s->begin[slice->parameter] + slice->begin; /* never in two buckets */
    const size_t bucket = flat / s->bucket;
    size_t unused, i;
    const size_t shard = shard_begin(s, bucket) + flat - owned_begin(s, bucket, &unused);
    for (i = 0; i < slice->elements; ++i)
        values[i] = what == ZEROPROOF_READ_MASTER     ? s->weights[flat + i]
                    : what == ZEROPROOF_READ_MOMENTUM ? s->momentum[shard + i]
                    : what == ZEROPROOF_READ_VARIANCE ? s->variance[shard + i]
                                                      : s->gradients[flat + i] / divisor(s);
    return ZEROPROOF_OK;
}

static zeroproof_status read_weights(state* s, size_t parameter, float* values) {
    memcpy(values, weights_of(s, parameter), s->c->parameters[parameter].elements * sizeof(float));
    return ZEROPROOF_OK;
}

/* ---- Beginning and end ---- */

static void destroy(state* s) {
    s->host->release(s->host, s->weights);
    s->host->release(s->host, s->frozen);
    s->host->release(s->host, s->gradients);
    s->host->release(s->host, s->momentum);
    s->host->release(s->host, s->variance);
    free(s->groups);
    free(s->begin);
    free(s->last_unit);
    free(s->in_flight);
    free(s);
}

static zeroproof_status take(state* s, int32_t category, size_t elements, float** memory) {
    void* bytes = NULL;
    TRY(s->host->allocate(s->host, category, elements * sizeof(float), &bytes));
    *memory = bytes;
    return ZEROPROOF_OK;
}

static zeroproof_status fill(state* s) {
    const zeroproof_case* c = s->c;
    size_t p, elements = 0, frozen = 0;
    for (p = 0; p < c->parameter_count; ++p)
        *(c->parameters[p].trainable ? &elements : &frozen) += c->parameters[p].elements;
    s->groups = malloc(c->group_count * sizeof *s->groups + 1);
    s->begin = malloc(c->parameter_count * sizeof *s->begin + 1);
    /* There are no more buckets than elements. */
    s->last_unit = malloc((elements + s->ranks) * sizeof *s->last_unit);
    s->in_flight = malloc((elements + s->ranks) * sizeof *s->in_flight);
    if (s->groups == NULL || s->begin == NULL || s->last_unit == NULL || s->in_flight == NULL)
        return explained(s->host, ZEROPROOF_ERROR, "out of memory");
    memcpy(s->groups, c->groups, c->group_count * sizeof *s->groups);
    lay_out(s);

    TRY(take(s, ZEROPROOF_PARAMETER, s->padded, &s->weights));
    TRY(take(s, ZEROPROOF_PARAMETER, frozen, &s->frozen));
    TRY(take(s, ZEROPROOF_GRADIENT, s->padded, &s->gradients));
    TRY(take(s, ZEROPROOF_MOMENTUM, s->padded / s->ranks, &s->momentum));
    TRY(take(s, ZEROPROOF_VARIANCE, s->padded / s->ranks, &s->variance));
    if (s->padded > 0) {
        memset(s->momentum, 0, s->padded / s->ranks * sizeof(float));
        memset(s->variance, 0, s->padded / s->ranks * sizeof(float));
    }
    for (p = 0; p < c->parameter_count; ++p)
        TRY(s->host->initial_weights(s->host, p, 0, c->parameters[p].elements, weights_of(s, p)));
    return clear_gradients(s);
}

static zeroproof_status create(const zeroproof_host* host, int32_t rank, int32_t ranks,
                               const zeroproof_case* c, zeroproof_state** result) {
    zeroproof_status status;
    state* s;
    if (c->stage != 1) return explained(host, ZEROPROOF_UNSUPPORTED, "stage 1 alone");
    if (c->precision != ZEROPROOF_FP32) return explained(host, ZEROPROOF_UNSUPPORTED, "fp32 alone");
    if (c->feature_count > 0) return explained(host, ZEROPROOF_UNSUPPORTED, "an unknown feature");
    s = calloc(1, sizeof *s);
    if (s == NULL) return explained(host, ZEROPROOF_ERROR, "out of memory");
    s->host = host;
    s->c = c;
    s->rank = (size_t)rank;
    s->ranks = (size_t)ranks;
    status = fill(s);
    if (status != ZEROPROOF_OK)
        destroy(s);
    else
        *result = s;
    return status;
}

static zeroproof_status describe(zeroproof_description* d) {
    d->name = "stage1.c";
    d->version = "1";
    d->stages = 1u << 1;
    d->precisions = 1u << ZEROPROOF_FP32;
    d->norm_in_fp64 = 1;
    d->promises_buckets = 1;
    d->promises_control = 1;
    d->control_elements_per_step = 2;
    return ZEROPROOF_OK;
}

const zeroproof_engine* zeroproof_get_engine(uint32_t abi_version) {
    static const zeroproof_engine engine = {
        .struct_size = sizeof(zeroproof_engine),
        .abi_version = ZEROPROOF_ABI_VERSION,
        .describe = describe,
        .create = create,
        .destroy = destroy,
        .micro_step = micro_step,
        .step = step,
        .zero_grad = zero_grad,
        .evaluate = evaluate,
        .save = save,
        .load = load,
        .set_learning_rate = set_learning_rate,
        .clip = clip,
        .scale_gradient = scale_gradient,
        .scale_weight = scale_weight,
        .progress = progress,
        .slices = slices,
        .read_slice = read_slice,
        .read_weights = read_weights,
    };
    return abi_version == ZEROPROOF_ABI_VERSION ? &engine : NULL;
}
