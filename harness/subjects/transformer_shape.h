// A model of scenarios/ as the reference takes it.
#pragma once

#include "reference/models/transformer_shape.h"
#include "scenarios/transformer_model.h"

namespace zeroproof::harness {

reference::TransformerShape shape_of(const scenarios::TransformerModel& model);

}  // namespace zeroproof::harness
