#include "harness/programs/shrinker.h"

#include <algorithm>
#include <set>

#include "harness/programs/simplifications.h"

namespace zeroproof::harness {

Shrinker::Shrinker(Case failing, Usable usable, std::size_t most_candidates)
    : smallest_(std::move(failing)),
      usable_(std::move(usable)),
      most_candidates_(most_candidates) {}

std::vector<Case> Shrinker::candidates() {
    asked_.clear();
    if (is_done_) return asked_;
    if (round_ == Round::again) asked_ = {smallest_};
    if (round_ == Round::together) asked_ = companies();
    // Whatever has no company to try goes on with the best by itself.
    if (asked_.empty() && round_ == Round::together) {
        take_best();
        round_ = Round::single;
    }
    if (round_ == Round::single) asked_ = singles();
    if (asked_.empty()) is_done_ = is_minimal_ = true;
    if (tried_ >= most_candidates_) {
        is_done_ = true;
        asked_.clear();
    }
    return asked_;
}

void Shrinker::tell(const std::vector<bool>& fails) {
    tried_ += fails.size();
    if (round_ == Round::again) {
        failed_again_ = fails.front();
        is_done_ = !failed_again_;
        round_ = Round::single;
        return;
    }
    for (std::size_t i = 0; i < fails.size(); ++i)
        if (fails[i]) failing_.push_back(asked_[i]);
    if (round_ == Round::together) {
        take_best();
        round_ = Round::single;
        return;
    }
    winners_.clear();
    for (std::size_t i = 0; i < fails.size(); ++i)
        if (fails[i]) winners_.push_back(edits_[i]);
    round_ = Round::together;
    if (winners_.empty()) is_done_ = is_minimal_ = true;
}

// What saves the most comes first.
std::vector<Case> Shrinker::singles() {
    const std::vector<Edit> edits = simplifications(smallest_);
    const std::size_t present = complexity(smallest_);
    std::vector<std::pair<std::size_t, Case>> found;  // edit and what it makes
    for (std::size_t e = 0; e < edits.size(); ++e) {
        Draft draft(smallest_);
        edits[e].make(draft);
        Case candidate = finished(draft);
        if (complexity(candidate) < present && usable_(candidate))
            found.emplace_back(e, std::move(candidate));
    }
    std::ranges::stable_sort(found, {}, [](const auto& one) { return complexity(one.second); });
    std::vector<Case> cases;
    edits_.clear();
    for (auto& [edit, candidate] : found) {
        edits_.push_back(edit);
        cases.push_back(std::move(candidate));
    }
    return cases;
}

// All winners, three quarters of them, and so on down to two: those that save the most come first.
std::vector<Case> Shrinker::companies() const {
    const std::vector<Edit> edits = simplifications(smallest_);
    const std::size_t present = complexity(smallest_);
    const auto saves = [&](std::size_t edit) {
        Draft draft(smallest_);
        edits[edit].make(draft);
        return present - complexity(finished(draft));
    };
    std::vector<std::size_t> order = winners_;
    std::ranges::stable_sort(order, std::greater(), saves);
    std::vector<Case> cases;
    std::set<std::size_t> sizes;
    for (const std::size_t size : {order.size(), order.size() * 3 / 4, order.size() / 2,
                                   order.size() / 4, std::size_t{3}, std::size_t{2}}) {
        if (size < 2 || size > order.size() || !sizes.insert(size).second) continue;
        Draft draft(smallest_);
        std::set<std::string> topics;
        for (std::size_t i = 0; i < size; ++i)
            if (topics.insert(edits[order[i]].topic).second) edits[order[i]].make(draft);
        Case candidate = finished(draft);
        if (usable_(candidate)) cases.push_back(std::move(candidate));
    }
    return cases;
}

void Shrinker::take_best() {
    smallest_ = *std::ranges::min_element(failing_, {}, complexity);
    failing_.clear();
}

}  // namespace zeroproof::harness
