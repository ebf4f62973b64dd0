// An implementation under test.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "suites/conformance/evidence.h"

namespace zeroproof::suites {

// What a subject says of itself. A case outside of it must be rejected.
struct Declaration {
    std::string name;
    std::set<int> stages;
    std::set<Precision> precisions;
    std::set<std::string> features;
    // In which type the norm is summed: exact gradients then leave no room for a difference.
    memory::DType norm_accumulation = memory::DType::fp32;
    // Most control elements that a step sends; scalars are no part of the papers' volumes.
    std::size_t control_elements_per_step = 0;
    // Most bytes live at once on `rank` in a phase of training, model states included; absent if
    // the subject does not say. Of the case's part before a reload.
    std::function<std::size_t(const Case&, memory::Phase, int rank)> peak_bytes{};
};

class Subject {
  public:
    virtual ~Subject() = default;
    virtual const Declaration& declaration() const = 0;
    // Never throws for what the implementation does: that is evidence. Several threads may call.
    virtual Evidence run(const Case& c, std::chrono::milliseconds timeout) = 0;
};

// Whether the case is inside the declaration; if not, what is outside.
std::string outside_declaration(const Case& c, const Declaration& declaration);

}  // namespace zeroproof::suites
