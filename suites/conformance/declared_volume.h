// What a subject declares of its bytes and elements, worked out for a case.
#pragma once

#include <cstddef>
#include <functional>

#include "suites/conformance/clause.h"

namespace zeroproof::suites {

// Which parameters are counted.
enum class Counted { trainable, all };

// Elements of the counted parameters on so many ranks, padding included. A tied parameter counts
// once, or for each of its uses.
std::size_t padded_elements(const Case& c, int ranks, const Padded& padded, Counted counted,
                            bool per_use = false);

// Null where the stage is as the paper has it.
const DeclaredStage* declared_stage(const Context& context, const Segment& segment);

// Where `paper` is no pass and the subject declares another volume: the verdict on that, which is
// "deviates" where it holds.
Judgement or_as_declared(const Context& context, const Judgement& paper,
                         const std::function<Judgement()>& as_declared);

}  // namespace zeroproof::suites
