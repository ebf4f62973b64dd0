// A case in the structs of zeroproof.h.
#pragma once

#include <vector>

#include "harness/plugin/zeroproof.h"
#include "suites/conformance/case.h"

namespace zeroproof::harness {

// Points into the case, which outlives it, and into itself.
class CaseView {
  public:
    CaseView(const suites::Case& c, int stage);
    CaseView(const CaseView&) = delete;
    CaseView& operator=(const CaseView&) = delete;

    const zeroproof_case* get() const { return &view_; }

  private:
    std::vector<zeroproof_parameter> parameters_;
    std::vector<zeroproof_unit> units_;
    std::vector<zeroproof_group> groups_;
    std::vector<const char*> features_;
    std::vector<zeroproof_option> options_;
    zeroproof_case view_{};
};

}  // namespace zeroproof::harness
