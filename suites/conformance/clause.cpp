#include "suites/conformance/clause.h"

#include <algorithm>
#include <exception>

#include "suites/conformance/clause_registry.h"
#include "suites/conformance/evidence_check.h"

namespace zeroproof::suites {

std::string_view name_of(Verdict verdict) {
    constexpr std::string_view names[] = {"pass",           "deviates",     "fail",
                                          "rejected",       "not declared", "not exercised",
                                          "not observable", "environment",  "harness error"};
    return names[static_cast<std::size_t>(verdict)];
}

const std::vector<Clause>& all_clauses() {
    static const std::vector<Clause> clauses = [] {
        std::vector<Clause> all = registered_clauses();
        std::ranges::sort(all, {}, &Clause::name);
        return all;
    }();
    return clauses;
}

const Clause* find_clause(std::string_view name) {
    const auto& clauses = all_clauses();
    const auto at = std::ranges::find(clauses, name, &Clause::name);
    return at == clauses.end() ? nullptr : &*at;
}

std::string_view family_of(const Clause& clause) {
    return clause.name.substr(0, clause.name.find('.'));
}

bool trains(const Case& c) {
    return !c.transport && c.features.empty();
}

bool feeds_gradients(const Case& c) {
    return trains(c) && !c.transformer;
}

bool trains_transformer(const Case& c) {
    return trains(c) && c.transformer.has_value();
}

bool is_cut(const Case& c) {
    return c.transformer && c.transformer->tensor_parallel > 1;
}

namespace {

bool needs_the_status_alone(const Clause& clause) {
    return clause.name == "LIVENESS.END" || clause.name.starts_with("REJECT.");
}

// What the clause needs and the evidence does not show.
std::string unobserved(const Clause& clause, const Evidence& evidence) {
    std::string names;
    for (std::size_t o = 0; o < kObservations; ++o) {
        const auto observation = static_cast<Observation>(o);
        if (clause.needs.has(observation) && !evidence.observed.has(observation))
            names += (names.empty() ? "" : ", ") + std::string(name_of(observation));
    }
    return names;
}

}  // namespace

Judgement judge(const Clause& clause, const Context& context) {
    if (context.evidence.status == RunStatus::adapter_failed)
        return {Verdict::environment, context.evidence.message, {}, 0};
    std::string outside = outside_declaration(context.c, context.declaration);
    if (context.declaration.undeclared)
        outside = context.evidence.status == RunStatus::rejected ? "what it refuses" : "";
    // How a run ends is for the clauses on liveness and rejection to judge.
    const bool judges_the_end =
        clause.name.starts_with("LIVENESS.") || clause.name.starts_with("REJECT.");
    if (!judges_the_end) {
        switch (context.evidence.status) {
            case RunStatus::completed: break;
            case RunStatus::rejected:
                return {outside.empty() ? Verdict::not_exercised : Verdict::rejected,
                        context.evidence.message,
                        {},
                        0};
            case RunStatus::failed: return {Verdict::not_exercised, "the run did not end", {}, 0};
            case RunStatus::environment:
                return {Verdict::environment, context.evidence.message, {}, 0};
            case RunStatus::adapter_failed: break;  // told above
        }
    }
    if (const auto at = context.declaration.not_promised.find(std::string(clause.name));
        at != context.declaration.not_promised.end() &&
        (context.evidence.status == RunStatus::completed || clause.name.starts_with("REJECT.")))
        return {Verdict::not_declared, at->second, {}, 0};
    try {
        if (context.evidence.status == RunStatus::completed && !needs_the_status_alone(clause)) {
            if (const std::string names = unobserved(clause, context.evidence); !names.empty())
                return {Verdict::not_observable, "the evidence does not show " + names, {}, 0};
            std::string missing = what_is_missing(context.c, context.evidence);
            if (missing.empty() && clause.name.starts_with("INVARIANT.") &&
                context.twin != nullptr && context.twin->status == RunStatus::completed)
                missing = what_is_missing(context.c.twin.front(), *context.twin);
            if (!missing.empty())
                return {Verdict::not_observable, "the evidence lacks " + missing, {}, 0};
        }
        return clause.judge(context);
    } catch (const std::exception& error) {
        return {Verdict::harness_error, error.what(), {}, 0};
    }
}

}  // namespace zeroproof::suites
