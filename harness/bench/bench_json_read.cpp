// The reading half of bench_json.h.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "collectives/communicator.h"
#include "collectives/record.h"
#include "harness/bench/bench_json.h"
#include "harness/bench/identity.h"
#include "harness/topology/topology_file.h"
#include "memory/dtype.h"
#include "memory/ledger.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using collectives::LinkClass;
using scenarios::JsonReader;

// Every reader of JSON holds integers up to here exactly.
constexpr std::int64_t kMost = std::int64_t{1} << 53;
constexpr std::size_t kLongestName = 100;

std::string read_name(const JsonReader& json) {
    std::string name = json.text();
    if (name.empty() || name.size() > kLongestName)
        json.fail(fmt::format("expected 1 to {} bytes", kLongestName));
    return name;
}

template <typename Enum>
std::string read_name_of(const JsonReader& json, std::size_t values) {
    return std::string(name_of(scenarios::read_named<Enum>(json, values)));
}
std::string read_op(const JsonReader& json) {
    return read_name_of<collectives::Op>(json, 8);
}
std::string read_type(const JsonReader& json) {
    const std::string name = json.text();
    try {
        memory::dtype_from_name(name);
    } catch (const std::invalid_argument& error) {
        json.fail(error.what());
    }
    return name;
}

std::uint64_t read_count(const JsonReader& json, std::int64_t lowest = 0) {
    return static_cast<std::uint64_t>(json.integer(lowest, kMost));
}
int read_int(const JsonReader& json, int lowest, int highest) {
    return static_cast<int>(json.integer(lowest, highest));
}

double read_not_negative(const JsonReader& json) {
    const double value = json.number();
    if (value < 0) json.fail("expected 0 or more");
    return value;
}
double read_positive(const JsonReader& json) {
    const double value = json.number();
    if (!(value > 0)) json.fail("expected more than 0");
    return value;
}

template <typename Read>
auto read_optional(const JsonReader& json, const Read& read)
    -> std::optional<decltype(read(json))> {
    if (json.json().is_null()) return std::nullopt;
    return read(json);
}

template <typename Read>
auto read_by_link(const JsonReader& json, const Read& read) {
    json.allow({name_of(LinkClass::intra_node), name_of(LinkClass::inter_node)});
    return std::array{read(json.at(name_of(LinkClass::intra_node))),
                      read(json.at(name_of(LinkClass::inter_node)))};
}

Timing read_timing(const JsonReader& json, int ranks) {
    json.allow({"seconds", "slowest_rank", "median_seconds", "lowest_seconds", "highest_seconds"});
    Timing timing;
    for (const JsonReader& repeat : json.at("seconds").items())
        timing.seconds.push_back(read_positive(repeat));
    if (timing.seconds.empty()) json.at("seconds").fail("no repeats");
    for (const JsonReader& rank : json.at("slowest_rank").items())
        timing.slowest_rank.push_back(read_int(rank, 0, ranks - 1));
    if (timing.slowest_rank.size() != timing.seconds.size())
        json.at("slowest_rank")
            .fail(fmt::format("{} entries for {} repeats", timing.slowest_rank.size(),
                              timing.seconds.size()));
    return timing;
}

std::optional<LinkElements> read_sent(const JsonReader& json) {
    return read_optional(json, [](const JsonReader& sent) -> LinkElements {
        return read_by_link(sent, [](const JsonReader& link) { return read_count(link); });
    });
}

std::optional<Prediction> read_prediction(const JsonReader& json) {
    return read_optional(json, [](const JsonReader& prediction) -> Prediction {
        prediction.allow({"seconds", "used_for_fit"});
        return {read_positive(prediction.at("seconds")), prediction.at("used_for_fit").boolean()};
    });
}

OperationResult read_operation(const JsonReader& json, int most_ranks) {
    json.allow({"op", "algorithm", "type", "ranks", "bytes", "timing",
                "algorithm_bandwidth_bytes_per_s", "bus_factor", "bus_formula",
                "bus_bandwidth_bytes_per_s", "bus_limit_bytes_per_s", "sent_elements", "prediction",
                "checked_elements"});
    OperationResult result;
    result.op = read_op(json.at("op"));
    result.algorithm = read_name(json.at("algorithm"));
    result.type = read_type(json.at("type"));
    result.ranks = read_int(json.at("ranks"), 1, most_ranks);
    result.bytes = read_count(json.at("bytes"), 1);
    result.timing = read_timing(json.at("timing"), result.ranks);
    result.bus_factor = read_not_negative(json.at("bus_factor"));
    result.bus_formula = read_name(json.at("bus_formula"));
    result.bus_limit_bytes_per_s = read_optional(json.at("bus_limit_bytes_per_s"), read_positive);
    result.sent = read_sent(json.at("sent_elements"));
    result.prediction = read_prediction(json.at("prediction"));
    result.checked_elements = read_count(json.at("checked_elements"));
    return result;
}

VolumeRow read_volume(const JsonReader& json) {
    json.allow({"traffic", "op", "phase", "operations", "nominal_elements", "formula_elements",
                "sent_elements", "formula_sent_elements"});
    VolumeRow row;
    row.traffic = read_name_of<collectives::Traffic>(json.at("traffic"), 3);
    row.op = read_op(json.at("op"));
    row.phase = read_name_of<memory::Phase>(json.at("phase"), memory::kPhases);
    row.operations = read_count(json.at("operations"));
    row.nominal_elements = read_count(json.at("nominal_elements"));
    row.formula_elements = read_count(json.at("formula_elements"));
    row.sent_elements = read_count(json.at("sent_elements"));
    row.formula_sent_elements = read_count(json.at("formula_sent_elements"));
    return row;
}

StageResult read_stage(const JsonReader& json, int most_ranks) {
    json.allow({"stage", "algorithm", "type", "ranks", "micro_steps", "parameters",
                "bucket_elements", "compute_seconds", "overlap", "timing", "communication_seconds",
                "computing_seconds", "volumes", "nominal_elements", "formula", "sent_elements",
                "prediction"});
    StageResult result;
    result.stage = read_int(json.at("stage"), 0, 3);
    result.algorithm = read_name(json.at("algorithm"));
    result.type = read_type(json.at("type"));
    result.ranks = read_int(json.at("ranks"), 1, most_ranks);
    result.micro_steps = read_int(json.at("micro_steps"), 1, 1'000'000);
    result.parameters = read_count(json.at("parameters"), 1);
    result.bucket_elements = read_count(json.at("bucket_elements"));
    result.compute_seconds = read_not_negative(json.at("compute_seconds"));
    result.overlap = json.at("overlap").boolean();
    result.timing = read_timing(json.at("timing"), result.ranks);
    result.communication_seconds = read_not_negative(json.at("communication_seconds"));
    result.computing_seconds = read_not_negative(json.at("computing_seconds"));
    for (const JsonReader& row : json.at("volumes").items())
        result.volumes.push_back(read_volume(row));
    result.nominal_elements = read_count(json.at("nominal_elements"));
    const std::uint64_t sum = std::accumulate(
        result.volumes.begin(), result.volumes.end(), std::uint64_t{0},
        [](std::uint64_t before, const VolumeRow& row) { return before + row.nominal_elements; });
    if (sum != result.nominal_elements)
        json.at("nominal_elements").fail(fmt::format("the volumes add up to {}", sum));
    result.formula = read_name(json.at("formula"));
    result.sent = read_sent(json.at("sent_elements"));
    result.prediction = read_prediction(json.at("prediction"));
    return result;
}

FittedAlgorithm read_fit(const JsonReader& json) {
    json.allow({"op", "algorithm", "latency_s", "bandwidth_bytes_per_s", "errors"});
    FittedAlgorithm fit;
    fit.op = read_op(json.at("op"));
    fit.algorithm = read_name(json.at("algorithm"));
    fit.latency_s = read_by_link(json.at("latency_s"), [](const JsonReader& link) {
        return read_optional(link, read_not_negative);
    });
    fit.bandwidth_bytes_per_s =
        read_by_link(json.at("bandwidth_bytes_per_s"),
                     [](const JsonReader& link) { return read_optional(link, read_positive); });
    const JsonReader errors = json.at("errors");
    errors.allow({"fitted", "held_out", "fitted_sizes", "held_out_sizes"});
    fit.errors = {read_not_negative(errors.at("fitted")), read_not_negative(errors.at("held_out")),
                  read_count(errors.at("fitted_sizes")), read_count(errors.at("held_out_sizes"))};
    return fit;
}

void check_format(const JsonReader& json) {
    if (!json.has("format") || !json.json().at("format").is_string() ||
        json.json().at("format") != kBenchFormat)
        json.fail(fmt::format("this is no record of `zeroproof bench`: {}",
                              json.has("record_version")
                                  ? "it is one of `zeroproof verify`, which measures no times"
                                  : fmt::format("there is no \"format\": \"{}\"", kBenchFormat)));
    if (json.at("version").integer(1, kMost) != kBenchVersion)
        json.at("version").fail(fmt::format("this program reads version {}", kBenchVersion));
}

template <typename Result, typename Read>
std::vector<Result> read_results(const JsonReader& json, const Read& read) {
    std::vector<Result> results;
    std::set<std::string> known;
    for (const JsonReader& item : json.items()) {
        results.push_back(read(item));
        const std::string identity = identity_of(results.back());
        if (!known.insert(identity).second) item.fail(fmt::format("{} stands twice", identity));
    }
    return results;
}

}  // namespace

BenchRecord parse_bench_json(std::string_view text, const std::string& file) {
    const scenarios::Json document = scenarios::parse_json(text, file);
    const JsonReader json(document, file);
    check_format(json);
    json.allow({"format", "version", "zeroproof_version", "command", "started", "host",
                "processors", "backend", "backend_detail", "topology", "topology_origin",
                "complete", "ended_by", "operations", "stages", "fits"});
    BenchRecord record;
    record.zeroproof_version = json.at("zeroproof_version").text();
    record.command = json.at("command").text();
    record.started = json.at("started").text();
    record.host = json.at("host").text();
    record.processors = read_int(json.at("processors"), 0, 1 << 20);
    record.backend = read_name(json.at("backend"));
    record.backend_detail = json.at("backend_detail").text();
    record.topology =
        read_cluster(json.at("topology").json().dump(), file + ": /topology").topology;
    record.topology_origin = json.at("topology_origin").text();
    record.complete = json.at("complete").boolean();
    record.ended_by = json.at("ended_by").text();
    if (record.complete != record.ended_by.empty())
        json.at("ended_by").fail("a run that is not complete says why, and no other does");
    const int ranks = record.topology.ranks();
    record.operations = read_results<OperationResult>(
        json.at("operations"), [&](const JsonReader& item) { return read_operation(item, ranks); });
    record.stages = read_results<StageResult>(
        json.at("stages"), [&](const JsonReader& item) { return read_stage(item, ranks); });
    for (const JsonReader& fit : json.at("fits").items()) record.fits.push_back(read_fit(fit));
    return record;
}

BenchRecord read_bench_json(const std::string& file) {
    return parse_bench_json(scenarios::read_text_file(file), file);
}

}  // namespace zeroproof::harness
