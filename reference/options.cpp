#include "reference/options.h"

#include <fmt/format.h>

#include <limits>
#include <set>

namespace zeroproof::reference {

namespace {

// Buckets are rounded up to a multiple of the ranks, which must not wrap around to 0.
constexpr std::size_t kMostBucketElements = std::numeric_limits<std::size_t>::max() / 2;

}  // namespace

DType weight_type(Precision precision) {
    switch (precision) {
        case Precision::fp32: return DType::fp32;
        case Precision::bf16: return DType::bf16;
        case Precision::fp16: return DType::fp16;
    }
    throw std::logic_error("a Precision outside its enumeration");
}

void check(const Options& options, const Model& model) {
    const auto require = [](bool holds, const std::string& message) {
        if (!holds) throw Unsupported(message);
    };
    require(options.stage >= 0 && options.stage <= 3,
            fmt::format("stage {} is none of 0, 1, 2, 3", options.stage));
    require(options.micro_steps >= 1,
            fmt::format("{} micro-steps: at least 1", options.micro_steps));
    require(options.bucket_elements >= 1, "a bucket of 0 elements: at least 1");
    require(options.bucket_elements <= kMostBucketElements,
            fmt::format("a bucket of {} elements: at most {}", options.bucket_elements,
                        kMostBucketElements));
    require(options.clip_norm >= 0, fmt::format("clip norm {} is negative", options.clip_norm));

    const LossScaleOptions& scale = options.loss_scale;
    require(scale.initial >= scale.minimum && scale.minimum > 0 && scale.factor > 1 &&
                scale.growth_interval >= 1 && scale.hysteresis >= 1,
            "loss scale: 0 < minimum <= initial, factor > 1, interval and hysteresis >= 1");

    std::set<std::string> names;
    for (const Parameter& parameter : model.parameters()) {
        require(names.insert(parameter.name).second,
                fmt::format("two parameters are named '{}'", parameter.name));
        require(!parameter.trainable ||
                    (parameter.group >= 0 &&
                     static_cast<std::size_t>(parameter.group) < options.groups.size()),
                fmt::format("parameter '{}' is in group {}, of {}", parameter.name, parameter.group,
                            options.groups.size()));
    }
    for (const Unit& unit : model.units())
        for (const std::size_t parameter : unit.parameters)
            require(parameter < model.parameters().size(),
                    fmt::format("unit '{}' uses parameter {}, of {}", unit.name, parameter,
                                model.parameters().size()));
}

}  // namespace zeroproof::reference
