#include "harness/bench/bench_csv.h"

#include <fmt/format.h>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

// RFC 4180: quoted where it must be, quotes doubled.
std::string field_of(std::string_view text) {
    const std::string field = printable(text);
    if (field.find_first_of("\",") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

template <typename Value>
std::string field_of(const std::optional<Value>& value) {
    return value ? fmt::to_string(*value) : "";
}

// The columns that both kinds of results have.
struct Common {
    std::string_view kind, op, algorithm, type;
    int ranks;
    const Timing& timing;
    const std::optional<LinkElements>& sent;
    const std::optional<Prediction>& prediction;
};

std::string link_field(const std::optional<LinkElements>& sent, collectives::LinkClass link) {
    return sent ? fmt::to_string((*sent)[static_cast<std::size_t>(link)]) : "";
}

std::string common_fields(const BenchRecord& record, const Common& common) {
    const Timing& timing = common.timing;
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", common.kind,
                       field_of(record.backend), field_of(record.topology.name),
                       shape_of(record.topology), common.op, field_of(common.algorithm),
                       common.type, common.ranks, timing.seconds.size(), timing.median_seconds(),
                       timing.lowest_seconds(), timing.highest_seconds(),
                       link_field(common.sent, collectives::LinkClass::intra_node),
                       link_field(common.sent, collectives::LinkClass::inter_node),
                       common.prediction ? fmt::to_string(common.prediction->seconds) : "",
                       common.prediction ? fmt::to_string(common.prediction->used_for_fit) : "");
}

constexpr std::string_view kHeader =
    "kind,backend,topology,shape,op,algorithm,type,ranks,repeats,median_seconds,lowest_seconds,"
    "highest_seconds,sent_intra_node_elements,sent_inter_node_elements,predicted_seconds,"
    "used_for_fit,"
    // of operations
    "bytes,algorithm_bandwidth_bytes_per_s,bus_factor,bus_bandwidth_bytes_per_s,"
    "bus_limit_bytes_per_s,checked_elements,"
    // of stages
    "stage,micro_steps,parameters,bucket_elements,compute_seconds,overlap,communication_seconds,"
    "computing_seconds,nominal_elements,formula\r\n";
constexpr std::string_view kNoOperation = ",,,,,";  // between six columns
constexpr std::string_view kNoStage = ",,,,,,,,,";  // between ten

}  // namespace

std::string to_bench_csv(const BenchRecord& record) {
    std::string out(kHeader);
    for (const OperationResult& r : record.operations)
        out += fmt::format("{},{},{},{},{},{},{},{}\r\n",
                           common_fields(record, {"operation", r.op, r.algorithm, r.type, r.ranks,
                                                  r.timing, r.sent, r.prediction}),
                           r.bytes, r.algorithm_bandwidth_bytes_per_s(), r.bus_factor,
                           r.bus_bandwidth_bytes_per_s(), field_of(r.bus_limit_bytes_per_s),
                           r.checked_elements, kNoStage);
    for (const StageResult& r : record.stages)
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
                           common_fields(record, {"stage", "", r.algorithm, r.type, r.ranks,
                                                  r.timing, r.sent, r.prediction}),
                           kNoOperation, r.stage, r.micro_steps, r.parameters, r.bucket_elements,
                           r.compute_seconds, r.overlap, r.communication_seconds,
                           r.computing_seconds, r.nominal_elements, field_of(r.formula));
    return out;
}

}  // namespace zeroproof::harness
