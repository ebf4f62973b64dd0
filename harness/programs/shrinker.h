// From a case that fails a clause to a smallest one that fails it too.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

using suites::Case;

// One failure on its way, in rounds: whoever runs cases takes the candidates of many shrinkers
// together, since starting a subject may be dear. First all simplifications by themselves, then
// those that kept the failure in larger and larger company; what is smallest is the next beginning.
class Shrinker {
  public:
    // `usable` says which candidates may be run, and gives them as they will be.
    using Usable = std::function<bool(Case& candidate)>;
    Shrinker(Case failing, Usable usable, std::size_t most_candidates);

    // Empty when done. The first round is the case itself.
    std::vector<Case> candidates();
    // Whether each of these fails as the first did; whoever stops at one that does says of those
    // behind it that they do not.
    void tell(const std::vector<bool>& fails);

    const Case& smallest() const { return smallest_; }
    // Whether the case failed when it was run again.
    bool has_failed_again() const { return failed_again_; }
    std::size_t tried() const { return tried_; }
    // Whether it ended because there is nothing left to simplify.
    bool is_minimal() const { return is_minimal_; }

  private:
    enum class Round { again, single, together };

    std::vector<Case> singles();
    std::vector<Case> companies() const;
    void take_best();  // of failing_

    Case smallest_;
    Usable usable_;
    std::size_t most_candidates_;
    Round round_ = Round::again;
    std::vector<Case> asked_;
    std::vector<std::size_t> edits_;    // of asked_, in a round of singles
    std::vector<std::size_t> winners_;  // edits of smallest_
    std::vector<Case> failing_;         // that are smaller, so far
    std::size_t tried_ = 0;
    bool failed_again_ = false;
    bool is_minimal_ = false;
    bool is_done_ = false;
};

}  // namespace zeroproof::harness
