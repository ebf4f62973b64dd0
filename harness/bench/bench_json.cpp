#include "harness/bench/bench_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/topology/topology_file.h"
#include "harness/writers/json_lines.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using collectives::LinkClass;
using scenarios::Json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json(nullptr);
}

template <typename Make>
Json by_link(const Make& make) {
    Json json = Json::object();
    for (const LinkClass link : collectives::kAllLinkClasses)
        json[std::string(name_of(link))] = make(static_cast<std::size_t>(link));
    return json;
}

// As a file of docs/topology.md. One that nobody has named goes by its shape.
Json json_of(collectives::Topology topology) {
    if (topology.name.empty()) topology.name = shape_of(topology);
    Cluster cluster;
    cluster.topology = std::move(topology);
    return Json::parse(cluster_text(cluster));
}

Json json_of(const Timing& timing) {
    return {{"seconds", timing.seconds},
            {"slowest_rank", timing.slowest_rank},
            {"median_seconds", timing.median_seconds()},
            {"lowest_seconds", timing.lowest_seconds()},
            {"highest_seconds", timing.highest_seconds()}};
}

Json json_of(const std::optional<LinkElements>& sent) {
    if (!sent) return nullptr;
    return by_link([&](std::size_t i) { return (*sent)[i]; });
}

Json json_of(const std::optional<Prediction>& prediction) {
    if (!prediction) return nullptr;
    return {{"seconds", prediction->seconds}, {"used_for_fit", prediction->used_for_fit}};
}

Json json_of(const OperationResult& result) {
    return {{"op", result.op},
            {"algorithm", result.algorithm},
            {"type", result.type},
            {"ranks", result.ranks},
            {"bytes", result.bytes},
            {"timing", json_of(result.timing)},
            {"algorithm_bandwidth_bytes_per_s", result.algorithm_bandwidth_bytes_per_s()},
            {"bus_factor", result.bus_factor},
            {"bus_formula", result.bus_formula},
            {"bus_bandwidth_bytes_per_s", result.bus_bandwidth_bytes_per_s()},
            {"bus_limit_bytes_per_s", or_null(result.bus_limit_bytes_per_s)},
            {"sent_elements", json_of(result.sent)},
            {"prediction", json_of(result.prediction)},
            {"checked_elements", result.checked_elements}};
}

Json json_of(const VolumeRow& row) {
    return {{"traffic", row.traffic},
            {"op", row.op},
            {"phase", row.phase},
            {"operations", row.operations},
            {"nominal_elements", row.nominal_elements},
            {"formula_elements", row.formula_elements},
            {"sent_elements", row.sent_elements},
            {"formula_sent_elements", row.formula_sent_elements}};
}

Json json_of(const StageResult& result) {
    Json volumes = Json::array();
    for (const VolumeRow& row : result.volumes) volumes.push_back(json_of(row));
    return {{"stage", result.stage},
            {"algorithm", result.algorithm},
            {"type", result.type},
            {"ranks", result.ranks},
            {"micro_steps", result.micro_steps},
            {"parameters", result.parameters},
            {"bucket_elements", result.bucket_elements},
            {"compute_seconds", result.compute_seconds},
            {"overlap", result.overlap},
            {"timing", json_of(result.timing)},
            {"communication_seconds", result.communication_seconds},
            {"computing_seconds", result.computing_seconds},
            {"volumes", volumes},
            {"nominal_elements", result.nominal_elements},
            {"formula", result.formula},
            {"sent_elements", json_of(result.sent)},
            {"prediction", json_of(result.prediction)}};
}

Json json_of(const FittedAlgorithm& fit) {
    return {{"op", fit.op},
            {"algorithm", fit.algorithm},
            {"latency_s", by_link([&](std::size_t i) { return or_null(fit.latency_s[i]); })},
            {"bandwidth_bytes_per_s",
             by_link([&](std::size_t i) { return or_null(fit.bandwidth_bytes_per_s[i]); })},
            {"errors",
             {{"fitted", fit.errors.fitted},
              {"held_out", fit.errors.held_out},
              {"fitted_sizes", fit.errors.fitted_sizes},
              {"held_out_sizes", fit.errors.held_out_sizes}}}};
}

template <typename Result>
Json list_of(const std::vector<Result>& results) {
    Json list = Json::array();
    for (const Result& result : results) list.push_back(json_of(result));
    return list;
}

}  // namespace

std::string to_bench_json(const BenchRecord& record) {
    const std::string text = json_by_lines({{"format", kBenchFormat},
                                            {"version", kBenchVersion},
                                            {"zeroproof_version", record.zeroproof_version},
                                            {"command", record.command},
                                            {"started", record.started},
                                            {"host", record.host},
                                            {"processors", record.processors},
                                            {"backend", record.backend},
                                            {"backend_detail", record.backend_detail},
                                            {"topology", json_of(record.topology)},
                                            {"topology_origin", record.topology_origin},
                                            {"complete", record.complete},
                                            {"ended_by", record.ended_by},
                                            {"operations", list_of(record.operations)},
                                            {"stages", list_of(record.stages)},
                                            {"fits", list_of(record.fits)}});
    try {
        parse_bench_json(text, "what was measured");
    } catch (const scenarios::BadInput& error) {
        throw std::logic_error(fmt::format("no bench record: {}", error.what()));
    }
    return text;
}

void write_bench_json(const std::filesystem::path& file, const BenchRecord& record) {
    write_whole(file, to_bench_json(record));
}

}  // namespace zeroproof::harness
