// Helpers of clauses: collecting discrepancies, and walking what a run left behind.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>

#include "suites/conformance/clause.h"

namespace zeroproof::suites {

// Collects discrepancies: keeps the first, counts the others. A clause that compared nothing at all
// has not been exercised.
class Comparison {
  public:
    // A place where a discrepancy may be; `fill` is called for the first only.
    void check(bool holds, const std::function<Discrepancy()>& fill) {
        ++compared_;
        if (holds) return;
        if (failed_++ == 0) first_ = fill();
    }
    Judgement judgement(std::string_view if_nothing_compared = "nothing to compare") const;

  private:
    std::size_t compared_ = 0;
    std::size_t failed_ = 0;
    Discrepancy first_;
};

// In full precision: 17 digits, and the bits' hexadecimal form where that is short.
std::string full(double value);
// "1.5 +- 2e-08".
std::string full(Bounded value);
// Equal within the bound; infinities and NaN only to themselves.
bool matches(double seen, Bounded expected);
bool same_bits(float a, float b);

// What is judged where the twin has not run to its end, if it has not.
std::optional<Judgement> without_twin(const Context& context);

// Calls `visit(segment, rank, snapshot, expected)` for each snapshot of each rank, with the entry
// of the oracle for its action.
using VisitSnapshot =
    std::function<void(const Segment&, int rank, const Snapshot&, const Expected&)>;
void for_each_snapshot(const Context& context, const VisitSnapshot& visit);
// Only those after a step.
void for_each_step(const Context& context, const VisitSnapshot& visit);

// Calls `visit(segment, rank, ours, first)` for each snapshot of each rank but the first, beside
// that of rank 0 after the same action.
void for_each_beside_rank_0(const Context& context,
                            const std::function<void(const Segment&, int rank, const Snapshot& ours,
                                                     const Snapshot& first)>& visit);
// Calls `visit(rank, before, after)` for each two snapshots of a rank that follow each other.
void for_each_transition(
    const Context& context,
    const std::function<void(int rank, const Snapshot& before, const Snapshot& after)>& visit);
// Masters, moments and weights must have the same bits; `when` says after what, for the message.
void compare_states(const Case& c, int rank, const Snapshot& before, const Snapshot& after,
                    std::string_view when, Comparison& comparison);

// "which step of the program", from 1, that an action is or comes after; 0 before the first.
int step_number(const Case& c, int action);
// N and the stage that hold at the action.
int ranks_at(const Case& c, int action);
int stage_at(const Case& c, int action);
// Whether the action lies behind the reload, if there is one.
bool after_reload(const Case& c, int action);

// An element that a rank owns.
struct OwnedElement {
    int rank;
    const Snapshot& snapshot;
    const Expected& expected;
    const OwnedSlice& slice;
    std::size_t index;    // within the slice
    std::size_t element;  // within the parameter
};
// Every element that a rank says it owns and that exists, after each snapshot that `wanted` takes.
void for_each_owned_element(const Context& context,
                            const std::function<bool(const Snapshot&)>& wanted,
                            const std::function<void(const OwnedElement&)>& visit);

// A discrepancy at an owned element.
Discrepancy at(const Case& c, const OwnedElement& where, std::string quantity, std::string expected,
               std::string seen);

// The rank that owns an element in a snapshot of a segment, or -1.
int owner_of(const Segment& segment, int action, std::size_t parameter, std::size_t element);

}  // namespace zeroproof::suites
