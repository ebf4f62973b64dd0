// A case is data: what is trained, on how many ranks, how, and by which program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/dtype.h"
#include "scenarios/transformer_model.h"

namespace zeroproof::suites {

// Which ranks and micro-steps use a parameter. Elsewhere its gradient is zero.
enum class Usage {
    always,
    even_ranks,
    odd_micro_steps,
    alternating,  // rank + micro-step is even
    never
};

struct ParameterCase {
    std::string name;
    std::vector<std::size_t> shape;
    int group = 0;
    bool trainable = true;
    Usage usage = Usage::always;
    int gradient_exponent = 0;  // its gradients are times 2 to this power

    std::size_t elements() const;
};

struct UnitCase {
    std::string name;
    std::vector<std::size_t> parameters;  // of Case::parameters
};

struct GroupCase {
    // Exact in binary, so that 1 - beta is exact too; a large epsilon, since Adam is nearly
    // blind to the gradient's scale without one.
    double learning_rate = 0x1p-6;
    double beta1 = 0.875;
    double beta2 = 0.96875;
    double epsilon = 0.125;
    double weight_decay = 0;
    bool l2 = false;  // otherwise decoupled
};

struct LossScaleCase {
    double initial = 256;
    double factor = 2;
    int growth_interval = 1000;
    int hysteresis = 1;
    double minimum = 1;
};

enum class Precision { fp32, bf16, fp16 };
memory::DType weight_type(Precision precision);

enum class GradientKind {
    exact,    // any order of reduction gives the same bits
    rounding  // full mantissas: reductions round, the bound is derived
};

enum class Model { dot, echo };

enum class Surroundings {
    plain,
    hostile  // late completion, poison until the wait, inputs checked
};

enum class ActionKind {
    micro_step,  // forward and backward
    step,
    zero_grad,
    evaluate,
    reload,  // save, end, start anew with the resume ranks and stage, load
    read,    // only look
    save,
    load,            // what was saved last
    rate,            // of a group
    clip,            // the window's gradient, now
    scale_gradient,  // of a parameter
    scale_weight,    // its master included
    freeze,
    unfreeze,
    add_group  // its parameters were as frozen until now
};
inline constexpr std::size_t kActionKinds = 15;

// A parameter that a micro-step leaves out, on one rank or, if negative, on all.
struct Unused {
    std::size_t parameter;
    int rank;
};

struct Action {
    ActionKind kind;
    int group = 0;                 // rate, add_group
    std::size_t parameter = 0;     // scale_gradient, scale_weight, freeze, unfreeze
    double value = 0;              // the rate, the bound of clip, the factor of scale_*
    bool by_model = false;         // zero_grad: by the model, not by the optimizer
    std::vector<Unused> unused{};  // micro_step, beyond what ParameterCase::usage says
};

// A gradient element that is not finite.
struct Injection {
    std::size_t micro_step;  // counted from the start of the program
    int rank;
    std::size_t parameter;
    std::size_t element;
    double value;  // infinity or NaN
};

// A self-test of the transport, in place of training: each collective with this type and count.
struct TransportCase {
    memory::DType type = memory::DType::fp32;
    std::size_t count = 0;
    std::size_t misalignment_bytes = 0;
    bool in_place = false;
};

// A transformer that is trained in place of given gradients. Its parameters, units and groups are
// in the case as any others; data and start are the subject's.
struct TransformerCase {
    scenarios::TransformerModel model;
    std::size_t samples = 1;  // of a micro-step of one rank
    // Ranks over which each of the case's ranks cuts its model: there are ranks times as many.
    int tensor_parallel = 1;
    std::size_t blocks_per_checkpoint = 0;  // 0 keeps all activations
    bool partition_checkpoints = false;     // ZeRO-R: Pa, over the tensor-parallel ranks
    bool offload_checkpoints = false;       // Pa+cpu
    bool contiguous_checkpoints = false;    // MD

    std::size_t stream_elements() const { return samples * model.sequence * model.hidden; }
};

struct Case {
    std::string family;
    std::string id;  // family and the values of the sweep: names the case for ever

    int stage = 0;
    int ranks = 1;
    Precision precision = Precision::fp32;
    int micro_steps = 1;
    std::vector<ParameterCase> parameters;
    std::vector<UnitCase> units;
    std::vector<GroupCase> groups;
    std::size_t bucket_elements = 16;
    bool overlap = true;
    bool prefetch = true;
    double clip_norm = 0;
    LossScaleCase loss_scale;
    std::vector<std::string> features;  // of the wider family: a subject rejects what it lacks
    // Settings of the subject's own, by name; none may change a result. JSON texts.
    std::map<std::string, std::string> options;
    Model model = Model::dot;
    GradientKind gradients = GradientKind::exact;
    Surroundings surroundings = Surroundings::plain;
    std::vector<Action> program;
    std::vector<Injection> injections;
    int resume_ranks = 0;  // after a reload; 0 is as before
    int resume_stage = -1;
    std::uint64_t seed = 1;
    bool measured = false;  // its bytes and elements are shown beside the formulas
    std::optional<TransportCase> transport;
    std::optional<TransformerCase> transformer;

    // What the invariance clauses compare with, if anything, and what differs in it.
    std::string twin_of;     // "stage", "bucket", "overlap", ...; empty without a twin
    std::vector<Case> twin;  // one or none

    double loss_scale_at_start() const {
        return precision == Precision::fp16 ? loss_scale.initial : 1;
    }
    std::size_t trainable_elements() const;
    // At the beginning, or after a reload.
    bool has_several_ranks() const { return ranks > 1 || resume_ranks > 1; }
    bool has_reload() const;
    bool has(ActionKind kind) const;
    // Whether what is trained changes on the way: by freezing, or by a group that joins late.
    bool changes_trainable() const;
};

// How many units use a parameter.
std::size_t uses_of(const Case& c, std::size_t parameter);

std::string_view name_of(Precision precision);
std::string_view name_of(ActionKind kind);

}  // namespace zeroproof::suites
