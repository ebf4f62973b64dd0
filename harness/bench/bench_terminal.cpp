#include "harness/bench/bench_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "harness/writers/text.h"
#include "memory/dtype.h"

namespace zeroproof::harness {

namespace {

// In the first unit in which it stays below 1000.
std::string three_digits(double value, double step, std::span<const std::string_view> units) {
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < units.size()) {
        value /= step;
        ++unit;
    }
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

// Rounded, in powers of 1000, as rates are.
std::string about_bytes(double bytes) {
    constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
    return bytes < 999.5 ? fmt::format("{:.0f} B", bytes) : three_digits(bytes, 1000, units);
}

std::string per_cent(double part) {
    return fmt::format("{:.0f} %", 100 * part);
}
std::string error_of(const std::optional<Prediction>& prediction, const Timing& timing) {
    if (!prediction) return "";
    return fmt::format("{:+.0f} %", 100 * (prediction->seconds / timing.median_seconds() - 1));
}
std::string predicted(const std::optional<Prediction>& prediction) {
    return prediction ? shown_seconds(prediction->seconds) : "";
}

// The one that is slowest in the most repeats.
int slowest_rank(const Timing& timing) {
    std::map<int, int> repeats;
    for (const int rank : timing.slowest_rank) ++repeats[rank];
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto most = std::ranges::max_element(repeats, fewer);
    return most == repeats.end() ? 0 : most->first;
}

// Columns as wide as their widest cell, the first one left-aligned. Columns without any value are
// left out.
using Row = std::vector<std::string>;
std::string table(const Row& header, const std::vector<Row>& rows) {
    std::string out;
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < header.size(); ++i) {
        std::size_t width = 0;
        for (const Row& row : rows) width = std::max(width, columns_of(row[i]));
        widths.push_back(width == 0 ? 0 : std::max(width, columns_of(header[i])));
    }
    const auto add = [&](const Row& row) {
        std::string line = left_aligned(row[0], widths[0]);
        for (std::size_t i = 1; i < row.size(); ++i)
            if (widths[i] > 0) line += " " + right_aligned(row[i], widths[i]);
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    };
    add(header);
    for (const Row& row : rows) add(row);
    return out;
}

// Results that a table can hold, in the order of the record.
template <typename Result, typename Key>
std::vector<std::vector<const Result*>> groups_of(const std::vector<Result>& results,
                                                  const Key& key) {
    std::vector<std::vector<const Result*>> groups;
    for (const Result& result : results) {
        const auto same = std::ranges::find_if(
            groups, [&](const auto& group) { return key(*group.front()) == key(result); });
        if (same == groups.end())
            groups.push_back({&result});
        else
            same->push_back(&result);
    }
    return groups;
}

std::string operations_table(const std::vector<const OperationResult*>& group) {
    const OperationResult& first = *group.front();
    std::string out =
        fmt::format("\n{} {}, {}. Bus bandwidth is {} times algorithm bandwidth, N = {}: {:.4g}.\n",
                    first.op, first.type, counted(static_cast<std::size_t>(first.ranks), "rank"),
                    printable(first.bus_formula), first.ranks, first.bus_factor);
    std::vector<Row> rows;
    for (const OperationResult* r : group)
        rows.push_back({printable(r->algorithm), shown_bytes(r->bytes),
                        shown_seconds(r->timing.median_seconds()),
                        fmt::format("{}..{}", shown_seconds(r->timing.lowest_seconds()),
                                    shown_seconds(r->timing.highest_seconds())),
                        shown_rate(r->algorithm_bandwidth_bytes_per_s()),
                        shown_rate(r->bus_bandwidth_bytes_per_s()),
                        fmt::to_string(slowest_rank(r->timing)),
                        r->bus_limit_bytes_per_s
                            ? per_cent(r->bus_bandwidth_bytes_per_s() / *r->bus_limit_bytes_per_s)
                            : "",
                        predicted(r->prediction), error_of(r->prediction, r->timing)});
    return out + table({"algorithm", "size", "median", "lowest..highest", "alg. bw", "bus bw",
                        "slow", "limit", "model", "error"},
                       rows);
}

bool equals_formula(const StageResult& result) {
    return std::ranges::all_of(result.volumes, [](const VolumeRow& row) {
        return row.nominal_elements == row.formula_elements &&
               row.sent_elements == row.formula_sent_elements;
    });
}

// Rows that are not as the formula says; nothing if there are none.
std::string deviations_of(const StageResult& result) {
    std::string out;
    for (const VolumeRow& row : result.volumes)
        if (row.nominal_elements != row.formula_elements ||
            row.sent_elements != row.formula_sent_elements)
            out += fmt::format(
                "  stage {} {}: {} {} in {}: {} elements, formula {}; sent {}, formula {}\n",
                result.stage, printable(result.algorithm), row.traffic, row.op, row.phase,
                row.nominal_elements, row.formula_elements, row.sent_elements,
                row.formula_sent_elements);
    return out;
}

auto group_key(const StageResult& r) {
    return std::tuple(r.type, r.ranks, r.micro_steps, r.parameters, r.bucket_elements,
                      r.compute_seconds, r.overlap);
}

std::string ratio_to_stage_2(const StageResult& result,
                             const std::vector<const StageResult*>& group) {
    for (const StageResult* other : group)
        if (other->stage == 2 && other->algorithm == result.algorithm)
            return fmt::format("{:.2f}",
                               result.timing.median_seconds() / other->timing.median_seconds());
    return "";
}

std::string stages_table(const std::vector<const StageResult*>& group) {
    const StageResult& first = *group.front();
    std::string out = fmt::format(
        "\nStages {}, {}, {}, Phi = {}, buckets of {}.\nCompute {} a micro-step, {} overlap.\n",
        first.type, counted(static_cast<std::size_t>(first.ranks), "rank"),
        counted(static_cast<std::size_t>(first.micro_steps), "micro-step"), first.parameters,
        first.bucket_elements, shown_seconds(first.compute_seconds),
        first.overlap ? "with" : "without");
    const auto element_bytes =
        static_cast<double>(memory::size_of(memory::dtype_from_name(first.type)));
    const auto link_bytes = [&](const StageResult& r, std::size_t link) {
        return r.sent ? about_bytes(static_cast<double>((*r.sent)[link]) * element_bytes) : "";
    };
    std::vector<Row> rows;
    std::string deviations;
    for (const StageResult* r : group) {
        rows.push_back({fmt::format("{} {}", r->stage, printable(r->algorithm)),
                        fmt::format("{:.3f}", static_cast<double>(r->nominal_elements) /
                                                  static_cast<double>(r->parameters)),
                        (equals_formula(*r) ? "= " : "! ") + printable(r->formula),
                        link_bytes(*r, 0), link_bytes(*r, 1),
                        shown_seconds(r->timing.median_seconds()),
                        shown_seconds(r->communication_seconds),
                        shown_seconds(r->computing_seconds), ratio_to_stage_2(*r, group),
                        predicted(r->prediction), error_of(r->prediction, r->timing)});
        deviations += deviations_of(*r);
    }
    out += table({"stage", "Phi", "formula", "intra", "inter", "step", "waiting", "other",
                  "/ st. 2", "model", "error"},
                 rows);
    return out + (deviations.empty() ? "" : "Not as the formula says:\n" + deviations);
}

std::string legend_of(const BenchRecord& record) {
    std::string text = "\n";
    const auto add = [&](std::string_view sentence) {
        for (const std::string& line : wrapped(sentence, 100)) text += line + "\n";
    };
    if (!record.operations.empty())
        add("Times are those of the slowest rank in each repeat. slow: the rank that was it most "
            "often. limit: bus bandwidth as a part of what the topology allows. model: the time "
            "that the cost model gives.");
    if (!record.stages.empty())
        add("Phi: elements of one rank in one step, in units of Phi, as counted; = says that every "
            "row of the record equals the formula, padding counted. intra, inter: bytes that all "
            "ranks send within and between nodes. waiting: for collectives, the rest of the step "
            "is other. / st. 2: the step's time in units of stage 2's. model: the time that the "
            "cost "
            "model gives the step's operations, one after the other.");
    return text;
}

}  // namespace

std::string shown_seconds(double seconds) {
    constexpr std::string_view units[] = {"ns", "us", "ms", "s"};
    return seconds >= 0.9995 || seconds == 0 ? three_digits(seconds, 1, std::span(units).last(1))
                                             : three_digits(seconds * 1e9, 1000, units);
}

std::string shown_rate(double bytes_per_s) {
    constexpr std::string_view units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    return three_digits(bytes_per_s, 1000, units);
}

std::string shown_bytes(std::uint64_t bytes) {
    constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB"};
    for (std::size_t i = std::size(units); i-- > 0;) {
        const std::uint64_t unit = std::uint64_t{1} << (10 * (i + 1));
        if (bytes >= unit && bytes % (unit / 4) == 0)
            return fmt::format("{} {}", static_cast<double>(bytes) / static_cast<double>(unit),
                               units[i]);
    }
    return fmt::format("{} B", bytes);
}

std::string to_bench_terminal(const BenchRecord& record) {
    std::string out;
    const std::string detail =
        record.backend_detail.empty() ? "" : fmt::format(" ({})", record.backend_detail);
    const std::string where = printable(fmt::format(
        "{}{} on {} of {}, topology {} ({}); {}, {}, {}", record.backend, detail,
        counted(static_cast<std::size_t>(record.topology.nodes), "node"),
        counted(static_cast<std::size_t>(record.topology.ranks_per_node), "rank"),
        record.topology.name, record.topology_origin, record.host,
        counted(static_cast<std::size_t>(record.processors), "processor"), record.started));
    for (const std::string& line : wrapped(where, 100)) out += line + "\n";
    if (!record.complete)
        for (const std::string& line : wrapped(
                 "Not complete: " + printable(record.ended_by) + ". What was measured until then:",
                 100))
            out += line + "\n";
    for (const auto& group : groups_of(record.operations, [](const OperationResult& r) {
             return std::tuple(r.op, r.type, r.ranks, r.bus_formula);
         }))
        out += operations_table(group);
    for (const auto& group : groups_of(record.stages, group_key)) out += stages_table(group);
    return out + legend_of(record);
}

}  // namespace zeroproof::harness
