#include "harness/plugin/case_view.h"

#include "memory/dtype.h"

namespace zeroproof::harness {

// The numbers of zeroproof.h are those of this program, in whatever order it lists them.
static_assert(static_cast<int>(memory::DType::fp32) == ZEROPROOF_FP32 &&
              static_cast<int>(memory::DType::fp16) == ZEROPROOF_FP16 &&
              static_cast<int>(memory::DType::bf16) == ZEROPROOF_BF16 &&
              static_cast<int>(memory::DType::fp64) == ZEROPROOF_FP64 &&
              static_cast<int>(memory::DType::int8) == ZEROPROOF_INT8 &&
              static_cast<int>(memory::DType::int32) == ZEROPROOF_INT32 &&
              static_cast<int>(memory::DType::int64) == ZEROPROOF_INT64);

CaseView::CaseView(const suites::Case& c, int stage) {
    for (const suites::ParameterCase& p : c.parameters)
        parameters_.push_back({p.name.c_str(), p.shape.data(), p.shape.size(), p.elements(),
                               p.group, p.trainable ? 1 : 0});
    for (const suites::UnitCase& unit : c.units)
        units_.push_back({unit.parameters.data(), unit.parameters.size()});
    for (const suites::GroupCase& g : c.groups)
        groups_.push_back(
            {g.learning_rate, g.beta1, g.beta2, g.epsilon, g.weight_decay, g.l2 ? 1 : 0});
    for (const std::string& feature : c.features) features_.push_back(feature.c_str());
    for (const auto& [name, value] : c.options) options_.push_back({name.c_str(), value.c_str()});

    view_.struct_size = sizeof view_;
    view_.stage = stage;
    view_.precision = static_cast<std::int32_t>(weight_type(c.precision));
    view_.micro_steps = c.micro_steps;
    view_.id = c.id.c_str();
    view_.parameters = parameters_.data();
    view_.parameter_count = parameters_.size();
    view_.units = units_.data();
    view_.unit_count = units_.size();
    view_.groups = groups_.data();
    view_.group_count = groups_.size();
    view_.bucket_elements = c.bucket_elements;
    view_.overlap = c.overlap ? 1 : 0;
    view_.prefetch = c.prefetch ? 1 : 0;
    view_.clip_norm = c.clip_norm;
    view_.loss_scale = c.loss_scale_at_start();
    view_.loss_scale_factor = c.loss_scale.factor;
    view_.loss_scale_minimum = c.loss_scale.minimum;
    view_.growth_interval = c.loss_scale.growth_interval;
    view_.hysteresis = c.loss_scale.hysteresis;
    view_.features = features_.data();
    view_.feature_count = features_.size();
    view_.options = options_.data();
    view_.option_count = options_.size();
}

}  // namespace zeroproof::harness
