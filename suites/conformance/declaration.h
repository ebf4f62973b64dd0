// What a subject says of itself: what it supports, how it uses the freedom that the specification
// leaves, and where it deviates from the papers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "memory/ledger.h"
#include "suites/conformance/case.h"
#include "suites/conformance/oracle.h"

namespace zeroproof::suites {

// How elements are counted beyond those of the parameters themselves.
enum class Padding {
    none,
    rows,       // each parameter's first dimension to a multiple of N
    parameter,  // each parameter's elements to a multiple of N
    unit,       // the elements of each unit to a multiple of N
    group,      // the trainable elements of each optimizer group to a multiple of N
    owned,      // bytes only: what the rank owns, as its evidence has it
    buckets     // of the reference, as the specification describes
};

struct Padded {
    Padding padding = Padding::none;
    std::size_t alignment = 1;  // multiples of N times this
};

// One kind of traffic in one phase: which operation, and how often.
struct DeclaredTraffic {
    collectives::Op op;
    memory::Phase phase;
    bool every_micro_step =
        true;  // otherwise once a window: forward in the first, else in the last
    Padded padded;
    double times = 1;      // of the padded elements, for what travels more than once
    bool per_use = false;  // a tied parameter travels for each unit that uses it
};

// Bytes at rest, per element; sharded ones on 1/N of the padded elements.
struct DeclaredBytes {
    std::size_t bytes = 0;
    bool sharded = false;
    Padded padded;
};

struct DeclaredStage {
    std::string why;  // in one sentence, for reports
    std::vector<DeclaredTraffic> gradient;
    std::vector<DeclaredTraffic> parameter;
    // Of what travels, by precision; as the weights where absent.
    std::map<Precision, memory::DType> gradient_type;
    std::map<Precision, std::map<memory::Category, DeclaredBytes>> bytes;
};

struct Option {
    std::vector<std::string> values;  // JSON texts; the first is the default
    std::set<int> stages;
};

struct Declaration {
    std::string name;
    std::string version;  // that it was written for; empty: any
    std::set<int> stages;
    std::set<Precision> precisions;
    std::set<std::string> features;
    std::set<ActionKind> actions;
    int most_ranks = 64;  // cases on more are for those who ask for them
    bool tests_transport = false;
    bool trains_transformers = false;
    bool undeclared = false;  // it has said nothing: whatever it refuses clearly is outside
    // In which type the norm is summed: exact gradients then leave no room for a difference.
    memory::DType norm_accumulation = memory::DType::fp32;
    // Most control elements that a step sends; scalars are no part of the papers' volumes. Absent
    // if the subject does not say.
    std::optional<std::size_t> control_elements_per_step;
    // Whether it promises to reduce and gather in buckets of the case's size.
    bool buckets = false;
    // Most bytes live at once on `rank` in a phase of training, model states included; absent if
    // the subject does not say. Of the case's part before a reload.
    std::function<std::size_t(const Case&, memory::Phase, int rank)> peak_bytes{};
    // The same by category, where it says that of a case.
    std::function<std::optional<memory::BytesByCategory>(const Case&, memory::Phase, int rank)>
        peak_bytes_by_category{};
    Meanings meanings;
    // Whether states are made at the first step only.
    bool lazy_states = false;
    // Whether it skips a step whose gradient is not finite.
    bool skips_non_finite = true;
    // Where a stage's volumes and bytes are not those of the paper.
    std::map<int, DeclaredStage> deviating;
    // Promises of the suite that the subject's documentation does not make: clause and reason.
    std::map<std::string, std::string> not_promised;
    // Settings that must not change a result.
    std::map<std::string, Option> options;
};

// Whether the case is inside the declaration; if not, what is outside.
std::string outside_declaration(const Case& c, const Declaration& declaration);

// Of a subject that has said nothing of itself: it may do anything, and refuse anything clearly.
Declaration declares_nothing(std::string name);

// The actions that every subject is expected to know.
std::set<ActionKind> common_actions();

}  // namespace zeroproof::suites
