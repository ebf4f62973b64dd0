#include "harness/writers/measurement_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

// "2 phi + 14 phi / N" as the papers print it.
std::string as_printed(std::string formula) {
    constexpr std::string_view phi = " phi";
    for (std::size_t at; (at = formula.find(phi)) != std::string::npos;)
        formula.replace(at, phi.size(), "Φ");
    return formula;
}

MeasurementRow row_of(const Measurement& m) {
    return {.stage = m.c->stage,
            .bytes_formula = as_printed(m.bytes_formula),
            .bytes_nominal = number(m.bytes_nominal),
            .bytes_exact = fmt::to_string(m.bytes_exact),
            .bytes_seen = fmt::to_string(m.bytes_seen),
            .bytes_equal = m.bytes_seen == m.bytes_exact,
            .elements_formula = as_printed(m.elements_formula),
            .elements_nominal = number(m.elements_nominal),
            .elements_exact = fmt::to_string(m.elements_exact),
            .elements_seen = fmt::to_string(m.elements_seen),
            .elements_equal = m.elements_seen == m.elements_exact,
            .elements_sent = number(m.elements_sent)};
}

std::string sentence_of(std::string_view what, std::string_view unit, std::size_t differ,
                        std::size_t all) {
    if (differ > 0)
        return fmt::format("{} DIFFER from the exact figure in {} of {}.", what, differ,
                           counted(all, "configuration"));
    return fmt::format("{} equal the exact figure, to the {}, in {}{}.", what, unit,
                       all == 1 ? "" : "all ", counted(all, "configuration"));
}

bool differs(const MeasurementGroup& group) {
    return std::ranges::any_of(group.rows, [](const MeasurementRow& row) {
        return !row.bytes_equal || !row.elements_equal;
    });
}

std::vector<MeasurementGroup> chosen(const std::vector<MeasurementGroup>& groups,
                                     std::size_t most) {
    std::set<std::size_t> shown;
    for (std::size_t i = 0; i < groups.size() && shown.size() < most; ++i)
        if (differs(groups[i])) shown.insert(i);
    std::vector<std::size_t> others;  // the last first: large numbers of ranks tell most
    for (std::size_t i = groups.size(); i-- > 0;)
        if (!shown.contains(i)) others.push_back(i);
    const std::size_t free = std::min(most - shown.size(), others.size());
    for (std::size_t i = 0; i < free; ++i)
        shown.insert(others[free == 1 ? 0 : i * (others.size() - 1) / (free - 1)]);
    std::vector<MeasurementGroup> out;
    for (const std::size_t i : shown) out.push_back(groups[i]);
    return out;
}

}  // namespace

MeasurementTable measurement_table(const Record& record, std::size_t most_rows) {
    std::map<std::tuple<suites::Precision, int, int, std::size_t>, MeasurementGroup> by_key;
    std::size_t bytes_differ = 0;
    std::size_t elements_differ = 0;
    for (const Measurement& m : record.measurements) {
        const Case& c = *m.c;
        const MeasurementRow row = row_of(m);
        bytes_differ += !row.bytes_equal;
        elements_differ += !row.elements_equal;
        MeasurementGroup& group = by_key[{c.precision, c.ranks, c.micro_steps, m.phi}];
        group.precision = suites::name_of(c.precision);
        group.ranks = c.ranks;
        group.micro_steps = c.micro_steps;
        group.phi = m.phi;
        // Cases that differ in something else show the same line.
        if (std::ranges::find(group.rows, row) == group.rows.end()) group.rows.push_back(row);
    }
    MeasurementTable table;
    if (by_key.empty()) return table;
    std::vector<MeasurementGroup> groups;
    for (auto& [key, group] : by_key) {
        std::ranges::stable_sort(group.rows, {}, &MeasurementRow::stage);
        groups.push_back(std::move(group));
    }
    std::size_t rows_of_group = 0;
    for (const MeasurementGroup& group : groups)
        rows_of_group = std::max(rows_of_group, group.rows.size());
    table.groups = chosen(groups, std::max<std::size_t>(1, most_rows / rows_of_group));
    table.groups_left_out = groups.size() - table.groups.size();
    table.bytes_differ = bytes_differ > 0;
    table.elements_differ = elements_differ > 0;
    const std::size_t all = record.measurements.size();
    table.sentences = {sentence_of("Measured bytes", "byte", bytes_differ, all),
                       sentence_of("Measured elements", "element", elements_differ, all)};
    return table;
}

}  // namespace zeroproof::harness
