#include "harness/bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/bench/bench_terminal.h"
#include "harness/bench/identity.h"
#include "harness/bench/mann_whitney.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

using Series = std::map<std::string, const Timing*>;

// In the order of the record.
std::vector<std::string> identities_of(const BenchRecord& record) {
    std::vector<std::string> identities;
    for (const OperationResult& result : record.operations)
        identities.push_back(identity_of(result));
    for (const StageResult& result : record.stages) identities.push_back(identity_of(result));
    return identities;
}

Series series_of(const BenchRecord& record) {
    Series series;
    for (const OperationResult& result : record.operations)
        series[identity_of(result)] = &result.timing;
    for (const StageResult& result : record.stages) series[identity_of(result)] = &result.timing;
    return series;
}

Comparison comparison_of(const std::string& identity, const Timing& older, const Timing& newer) {
    Comparison c;
    c.identity = identity;
    c.old_repeats = older.seconds.size();
    c.new_repeats = newer.seconds.size();
    c.old_median_seconds = older.median_seconds();
    c.new_median_seconds = newer.median_seconds();
    c.shift_seconds = hodges_lehmann_shift(older.seconds, newer.seconds);
    c.p_slower = mann_whitney_p(newer.seconds, older.seconds);
    c.p_faster = mann_whitney_p(older.seconds, newer.seconds);
    return c;
}

void adjust(std::vector<Comparison>& compared, double Comparison::*p) {
    std::vector<double> p_values;
    for (const Comparison& c : compared) p_values.push_back(c.*p);
    const std::vector<double> adjusted = holm_adjusted(p_values);
    for (std::size_t i = 0; i < compared.size(); ++i) compared[i].*p = adjusted[i];
}

Change change_of(const Comparison& c, std::size_t compared, double level) {
    if (c.p_slower <= level) return Change::slower;
    if (c.p_faster <= level) return Change::faster;
    const double reachable =
        smallest_mann_whitney_p(c.old_repeats, c.new_repeats) * static_cast<double>(compared);
    return reachable > level ? Change::too_few_repeats : Change::no_difference;
}

std::size_t repeats_needed(std::size_t compared, double level) {
    std::size_t repeats = 1;
    while (smallest_mann_whitney_p(repeats, repeats) * static_cast<double>(compared) > level)
        ++repeats;
    return repeats;
}

std::string described(const collectives::Topology& topology) {
    std::string text = shape_of(topology);
    for (const collectives::LinkClass link_class : collectives::kAllLinkClasses) {
        const collectives::Link& link = topology.link(link_class);
        text += fmt::format(
            ", {} {} and {} by {}", name_of(link_class),
            link.bandwidth_bytes_per_s ? shown_rate(*link.bandwidth_bytes_per_s) : "unknown rate",
            link.latency_s ? shown_seconds(*link.latency_s) : "unknown latency",
            name_of(link.sharing));
    }
    return text;
}

std::string table(const ComparedRecords& records) {
    constexpr std::size_t kIdentityColumns = 41;
    const auto row = [](std::string_view change, std::string_view ratio, std::string_view older,
                        std::string_view newer, std::string_view shift, std::string_view p) {
        return fmt::format("{:<14} {:>5} {:>7} {:>7} {:>8} {:>7}  ", change, ratio, older, newer,
                           shift, p);
    };
    std::string out = row("", "ratio", "old", "new", "shift", "p") + "what\n";
    for (const Comparison& c : records.compared) {
        const std::string shift =
            (c.shift_seconds < 0 ? "-" : "+") + shown_seconds(std::abs(c.shift_seconds));
        out += row(name_of(c.change), fmt::format("{:.3f}", c.ratio()),
                   shown_seconds(c.old_median_seconds), shown_seconds(c.new_median_seconds), shift,
                   fmt::format("{:.2g}", c.p()));
        std::string_view indent = "";
        const std::string blank(56, ' ');
        for (const std::string& line : wrapped(c.identity, kIdentityColumns)) {
            out += fmt::format("{}{}\n", indent, line);
            indent = blank;
        }
    }
    return out;
}

void list(std::string& out, std::string_view title, const std::vector<std::string>& identities) {
    if (identities.empty()) return;
    out += fmt::format("\n{}:\n", title);
    for (const std::string& identity : identities) {
        std::string_view indent = "  ";
        for (const std::string& line : wrapped(identity, 96)) {
            out += fmt::format("{}{}\n", indent, line);
            indent = "    ";
        }
    }
}

}  // namespace

std::string_view name_of(Change change) {
    constexpr std::string_view names[] = {"slower", "faster", "no difference", "too few"};
    return names[static_cast<std::size_t>(change)];
}

std::size_t ComparedRecords::count(Change change) const {
    return static_cast<std::size_t>(std::ranges::count(compared, change, &Comparison::change));
}

ComparedRecords compare(const BenchRecord& older, const BenchRecord& newer, double level) {
    ComparedRecords records;
    records.level = level;
    const Series before = series_of(older);
    const Series after = series_of(newer);
    for (const std::string& identity : identities_of(older)) {
        const auto match = after.find(identity);
        if (match == after.end())
            records.only_in_old.push_back(identity);
        else
            records.compared.push_back(
                comparison_of(identity, *before.at(identity), *match->second));
    }
    for (const std::string& identity : identities_of(newer))
        if (!before.contains(identity)) records.only_in_new.push_back(identity);
    adjust(records.compared, &Comparison::p_slower);
    adjust(records.compared, &Comparison::p_faster);
    for (Comparison& c : records.compared) c.change = change_of(c, records.compared.size(), level);
    records.repeats_needed = repeats_needed(records.compared.size(), level);
    std::ranges::stable_sort(records.compared, std::greater{}, &Comparison::ratio);
    return records;
}

std::vector<std::string> differences_of_machine(const BenchRecord& older,
                                                const BenchRecord& newer) {
    std::vector<std::string> differences;
    const auto compare_one = [&](std::string_view what, const std::string& a,
                                 const std::string& b) {
        if (a != b)
            differences.push_back(
                fmt::format("the {} was {} and is {}", what, printable(a), printable(b)));
    };
    compare_one("backend", older.backend, newer.backend);
    compare_one("topology", described(older.topology), described(newer.topology));
    compare_one("number of processors", fmt::to_string(older.processors),
                fmt::to_string(newer.processors));
    return differences;
}

std::string to_terminal(const ComparedRecords& records) {
    std::string out;
    if (records.compared.empty())
        out += "No result stands in both records.\n";
    else
        out += table(records);
    list(out, "Only in OLD", records.only_in_old);
    list(out, "Only in NEW", records.only_in_new);
    if (records.compared.empty()) return out;
    out += fmt::format(
        "\n{} slower, {} faster, {} without a difference beyond noise, {} with too few repeats to "
        "tell.\n",
        records.count(Change::slower), records.count(Change::faster),
        records.count(Change::no_difference), records.count(Change::too_few_repeats));
    out += fmt::format(
        "p is adjusted for {}: a false alarm among all of them has a probability below {}.\n",
        counted(records.compared.size(), "comparison"), records.level);
    if (records.count(Change::too_few_repeats) > 0)
        out += fmt::format(
            "Too few repeats: with {} in each record, times that do not overlap would be told "
            "apart.\n",
            records.repeats_needed);
    return out;
}

int exit_code(const ComparedRecords& records) {
    if (records.count(Change::slower) > 0) return 1;
    return records.count(Change::too_few_repeats) == records.compared.size() ? 3 : 0;
}

}  // namespace zeroproof::harness
