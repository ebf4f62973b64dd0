// A clause: one promise of ZeRO, in words and as a function from what was observed to a verdict.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "suites/conformance/evidence.h"
#include "suites/conformance/oracle.h"
#include "suites/conformance/subject.h"

namespace zeroproof::suites {

enum class Verdict {
    pass,
    deviates,  // not as the paper has it, but as the subject declares; the note tells both
    fail,
    rejected,        // refused clearly before work began, and the case is outside the declaration
    not_declared,    // the subject does not promise this
    not_exercised,   // the run did not come to the point that would show it
    not_observable,  // the evidence lacks what the clause needs
    environment,     // the subject could not run here
    harness_error
};
std::string_view name_of(Verdict verdict);

// One place where what was seen is not what was expected. Places that do not apply are negative.
struct Discrepancy {
    std::string quantity;  // what is compared, with its unit
    std::string expected;  // in full precision
    std::string seen;
    int rank = -1;
    int owner = -1;
    int action = -2;  // of the program; -1 before it
    int step = -1;    // which step of the program it is, from 1
    std::string parameter{};
    long long element = -1;
    std::string diagnosis{};  // what the digits tell
};

struct Judgement {
    Verdict verdict = Verdict::pass;
    std::string note;   // why, where the verdict is neither pass nor fail
    Discrepancy first;  // of a fail
    std::size_t more_like_it = 0;
};

struct Context {
    const Case& c;
    const Declaration& declaration;
    const Evidence& evidence;
    const std::vector<Expected>& expected;
    const Evidence* twin;  // of c.twin.front(), if there is one
};

struct Clause {
    std::string_view name;      // in words, for ever: STAGE2.GRADIENT.OWNER
    std::string_view sentence;  // normative
    std::string_view source;    // paper and section, or the specification where papers are silent
    std::string_view fault_classes;  // what breaks it in the field, by class of the catalogue
    // Verdicts beside pass and fail, and when they are given.
    std::string_view otherwise;
    bool (*applies)(const Case& c);
    Judgement (*judge)(const Context& context);
    Observations needs{};  // without one of these it cannot be judged
};

// Every clause, sorted by name. Each file in clauses/ gives some.
const std::vector<Clause>& all_clauses();
// Null if there is none of that name.
const Clause* find_clause(std::string_view name);
// STAGE2 of STAGE2.GRADIENT.OWNER.
std::string_view family_of(const Clause& clause);

// Whether the case trains, and is inside what any subject could promise.
bool trains(const Case& c);
// Of those, the ones whose gradients and weights the case gives.
bool feeds_gradients(const Case& c);
bool trains_transformer(const Case& c);
// Whether weights are cut over tensor-parallel ranks.
bool is_cut(const Case& c);

// The verdict of one clause on one run, whatever came of the run.
Judgement judge(const Clause& clause, const Context& context);

}  // namespace zeroproof::suites
