#include "harness/protocol/evidence_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/protocol/whole_file.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/case_writer.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using collectives::CollectiveRecord;
using scenarios::Json;
using scenarios::JsonReader;
using scenarios::read_named;
using suites::ActionKind;
using suites::Case;
using suites::Observation;
using suites::OwnedSlice;
using suites::RunStatus;
using suites::Snapshot;

constexpr std::size_t kMostItems = 1'000'000;
// Sums over all records, times the ranks, still fit into 64 bits.
constexpr std::int64_t kMostElements = std::int64_t{1} << 32;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;  // JSON numbers are doubles elsewhere
constexpr int kMostRanks = 64;
constexpr std::size_t kMostMessageBytes = std::size_t{1} << 20;

constexpr std::string_view kStatuses[] = {"completed", "rejected", "failed", "environment"};

fs::path json_of(const PartOfCase& part, int rank) {
    return fs::path(folder_of(part)) / fmt::format("rank-{}.json", rank);
}
fs::path tensors_of(const PartOfCase& part, int rank) {
    return fs::path(folder_of(part)) / fmt::format("rank-{}.safetensors", rank);
}
fs::path ready_of(int rank) {
    return fmt::format("ready-{}.json", rank);
}

// Actions after which there is a snapshot; -1 is before the first.
std::vector<int> snapshot_actions(const PartOfCase& part) {
    std::vector<int> actions;
    if (part.part.load_from.empty()) actions.push_back(-1);
    for (std::size_t a = part.part.begin; a < part.part.end; ++a)
        if (part.c->program[a].kind != ActionKind::micro_step)
            actions.push_back(static_cast<int>(a));
    return actions;
}

bool is_after_step(const Snapshot& snapshot) {
    return snapshot.action >= 0 && snapshot.kind == ActionKind::step;
}

// Far more than a subject has to say, and little enough to take into memory.
std::uint64_t most_json_bytes(const PartOfCase& part) {
    constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
    const std::uint64_t places = (part.part.end - part.part.begin + 1) *
                                 (part.c->parameters.size() + part.c->units.size() + 1);
    return std::min(kMost, (std::uint64_t{16} << 20) + places * 4096);
}

std::uint64_t most_tensor_bytes(const PartOfCase& part) {
    std::uint64_t elements = 0;
    std::uint64_t used_elements = 0;
    for (std::size_t p = 0; p < part.c->parameters.size(); ++p) {
        elements += part.c->parameters[p].elements();
        used_elements += part.c->parameters[p].elements() * uses_of(*part.c, p);
    }
    // In the widest type: weights and four states in each snapshot, padding as much again; weights
    // in two passes of each action; and the largest header that the format allows.
    constexpr std::uint64_t kWidth = 8;
    const std::uint64_t actions = part.part.end - part.part.begin + 1;
    return kWidth * actions * (2 * 5 * elements + 2 * used_elements) + (std::uint64_t{100} << 20);
}

std::vector<JsonReader> items_of(const JsonReader& list, std::size_t most) {
    if (list.json().is_array() && list.json().size() > most)
        list.fail(fmt::format("{} items; at most {} are expected", list.json().size(), most));
    return list.items();
}

double read_number(const JsonReader& number) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!number.json().is_string()) return number.number();
    constexpr double values[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
    return values[number.choice({"inf", "-inf", "nan"})];
}

std::size_t read_count(const JsonReader& count, std::int64_t most) {
    return static_cast<std::size_t>(count.integer(0, most));
}

void check_schema(const JsonReader& reader) {
    const JsonReader schema = reader.at("schema");
    if (schema.text() != kEvidenceSchema)
        schema.fail(
            fmt::format("\"{}\", where this program reads \"{}\": update the one or the other",
                        schema.text(), kEvidenceSchema));
}

class EvidenceReader {
  public:
    EvidenceReader(const JsonReader& reader, const PartOfCase& part, int rank)
        : reader_(reader), part_(part), case_(*part.c), rank_(rank) {
        for (std::size_t p = 0; p < case_.parameters.size(); ++p)
            parameters_[case_.parameters[p].name] = p;
    }

    RankResult read_all(const std::function<SafetensorsReader()>& tensors) {
        check_schema(reader_);
        reader_.allow({"schema", "index", "id", "rank", "status", "message", "observed",
                       "snapshots", "echoes", "collectives", "in_flight", "races", "races_watched",
                       "peak_bytes"});
        check_place();
        const auto status = static_cast<RunStatus>(
            reader_.at("status").choice({kStatuses[0], kStatuses[1], kStatuses[2], kStatuses[3]}));
        result_.status = status;
        if (status != RunStatus::completed || reader_.has("message")) {
            const JsonReader message = reader_.at("message");
            result_.message = message.text();
            if (result_.message.size() > kMostMessageBytes)
                message.fail(fmt::format("more than {} bytes: give its end", kMostMessageBytes));
        }
        if (status != RunStatus::completed) return std::move(result_);
        for (const JsonReader& one : items_of(reader_.at("observed"), suites::kObservations))
            result_.observed.add(read_named<Observation>(one, suites::kObservations));
        const SafetensorsReader opened = tensors();
        tensors_ = &opened;
        read_snapshots();
        read_echoes();
        read_collectives();
        read_in_flight();
        read_races();
        read_peak_bytes();
        for (const auto& [name, place] : opened.tensors())
            if (!known_tensors_.contains(name))
                reader_.fail(fmt::format("no key calls for tensor {}: leave it out", shown(name)));
        return std::move(result_);
    }

  private:
    void check_place() const {
        const auto same = [&](const char* key, std::int64_t expected) {
            const JsonReader value = reader_.at(key);
            if (const auto seen = value.integer(0, kMostCount); seen != expected)
                value.fail(fmt::format("{}, in the file that is for {}", seen, expected));
        };
        same("index", static_cast<std::int64_t>(part_.index));
        same("rank", rank_);
        if (reader_.at("id").text() != case_.id)
            reader_.at("id").fail(fmt::format("cases.json calls this case \"{}\"", case_.id));
    }

    bool observes(Observation one) const { return result_.observed.has(one); }
    static std::string leave_out(Observation one) {
        return fmt::format("take \"{}\" out of \"observed\"", name_of(one));
    }

    // What is observed must be there. What is not may be there, and is read, but not kept.
    template <typename Read, typename Value>
    void take(const JsonReader& object, const char* key, Observation observation, Read read,
              Value& value) const {
        if (!object.has(key)) {
            if (observes(observation))
                object.fail(fmt::format("the key \"{}\" is missing: give it, or {}", key,
                                        leave_out(observation)));
            return;
        }
        Value seen = read(object.at(key));
        if (observes(observation)) value = std::move(seen);
    }

    // The tensor, if it is observed.
    std::vector<float> tensor(const std::string& name, Observation observation,
                              std::initializer_list<Shape> shapes, bool is_due = true) {
        known_tensors_.insert(name);
        if (!observes(observation)) return {};
        if (!tensors_->has(name)) {
            if (!is_due) return {};
            reader_.fail(fmt::format("its tensors lack {}: write it, or {}", shown(name),
                                     leave_out(observation)));
        }
        return tensors_->floats(name, std::span(shapes.begin(), shapes.size()));
    }

    std::size_t parameter_named(const JsonReader& name) const {
        const std::string text = name.text();
        const auto at = parameters_.find(text);
        if (at == parameters_.end())
            name.fail(fmt::format("the case has no parameter {}", shown(text)));
        return at->second;
    }

    // Of an action of this part.
    int read_action(const JsonReader& action, bool before_the_first) const {
        const auto begin = static_cast<std::int64_t>(part_.part.begin);
        const auto end = static_cast<std::int64_t>(part_.part.end);
        const std::int64_t index = action.integer(before_the_first ? -1 : 0, kMostCount);
        if (index != -1 && (index < begin || index >= end))
            action.fail(fmt::format("{} is none of this part's actions, which are {} to {}", index,
                                    begin, end - 1));
        return static_cast<int>(index);
    }

    std::size_t read_unit(const JsonReader& unit) const {
        return read_count(unit, static_cast<std::int64_t>(case_.units.size()) - 1);
    }

    void read_snapshots() {
        const std::vector<int> expected = snapshot_actions(part_);
        const JsonReader list = reader_.at("snapshots");
        const std::vector<JsonReader> items = items_of(list, expected.size());
        if (items.size() != expected.size())
            list.fail(fmt::format(
                "{} snapshots where {} are due: one before the first action, unless load_from is "
                "set, and one after each that is no micro_step",
                items.size(), expected.size()));
        for (std::size_t s = 0; s < items.size(); ++s) {
            const JsonReader action = items[s].at("action");
            if (action.integer(-1, kMostCount) != expected[s])
                action.fail(fmt::format("this snapshot is due after action {}", expected[s]));
            result_.evidence.snapshots.push_back(read_snapshot(items[s], s, expected[s]));
        }
    }

    Snapshot read_snapshot(const JsonReader& object, std::size_t number, int action) {
        Snapshot snapshot;
        snapshot.action = action;
        if (action >= 0) snapshot.kind = case_.program[static_cast<std::size_t>(action)].kind;
        const auto count = [](const JsonReader& value) { return value.integer(0, kMostCount); };
        const auto truth = [](const JsonReader& value) { return value.boolean(); };
        if (is_after_step(snapshot)) {
            object.allow({"action", "owned", "steps_taken", "steps_skipped", "loss_scale",
                          "live_bytes", "skipped", "norm", "clip_coefficient"});
            take(object, "skipped", Observation::skips, truth, snapshot.skipped);
            take(object, "norm", Observation::norm, read_number, snapshot.norm);
            take(object, "clip_coefficient", Observation::clip_coefficient, read_number,
                 snapshot.clip_coefficient);
        } else {
            object.allow(
                {"action", "owned", "steps_taken", "steps_skipped", "loss_scale", "live_bytes"});
        }
        take(object, "steps_taken", Observation::steps, count, snapshot.steps_taken);
        take(object, "steps_skipped", Observation::steps, count, snapshot.steps_skipped);
        take(object, "loss_scale", Observation::loss_scale, read_number, snapshot.loss_scale);
        take(
            object, "live_bytes", Observation::live_bytes,
            [](const JsonReader& bytes) {
                return read_bytes<memory::Category, memory::kCategories>(bytes);
            },
            snapshot.live_bytes);
        const std::string prefix = fmt::format("{}/", number);
        for (const JsonReader& item : items_of(object.at("owned"), kMostItems))
            snapshot.owned.push_back(read_slice(
                item, fmt::format("{}owned/{}/", prefix, snapshot.owned.size()), snapshot));
        for (const suites::ParameterCase& parameter : case_.parameters) {
            std::vector<float> values =
                tensor(prefix + "weights/" + parameter.name, Observation::weights,
                       {parameter.shape, {parameter.elements()}});
            if (observes(Observation::weights)) snapshot.weights.push_back(std::move(values));
        }
        return snapshot;
    }

    OwnedSlice read_slice(const JsonReader& object, const std::string& prefix,
                          const Snapshot& snapshot) {
        object.allow({"parameter", "begin", "elements"});
        OwnedSlice slice;
        slice.parameter = parameter_named(object.at("parameter"));
        // Beyond the parameter is for a clause to find.
        slice.begin = read_count(object.at("begin"), kMostElements);
        slice.elements = read_count(object.at("elements"), kMostElements);
        const Shape shape = {slice.elements};
        slice.master = tensor(prefix + "master", Observation::master, {shape});
        slice.momentum = tensor(prefix + "momentum", Observation::momentum, {shape});
        slice.variance = tensor(prefix + "variance", Observation::variance, {shape});
        if (is_after_step(snapshot))
            slice.gradient =
                tensor(prefix + "gradient", Observation::gradient, {shape}, !snapshot.skipped);
        return slice;
    }

    // By the names of an enumeration; what is not there is 0.
    template <typename Enum, std::size_t Count>
    static std::array<std::size_t, Count> read_bytes(const JsonReader& object) {
        std::array<std::size_t, Count> bytes{};
        if (!object.json().is_object()) object.fail("expected an object");
        std::size_t known = 0;
        for (std::size_t i = 0; i < Count; ++i) {
            const std::string_view name = name_of(static_cast<Enum>(i));
            if (!object.has(name)) continue;
            bytes[i] = read_count(object.at(name), kMostBytes);
            ++known;
        }
        if (known < object.json().size()) {
            std::vector<std::string_view> names;
            for (std::size_t i = 0; i < Count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
            object.fail(fmt::format("an unknown key; known are {}", fmt::join(names, ", ")));
        }
        return bytes;
    }

    // The list under a key, read item by item.
    template <typename Item>
    void take_list(const char* key, Observation observation, std::vector<Item>& list,
                   const std::function<Item(const JsonReader&, std::size_t)>& read) const {
        take(
            reader_, key, observation,
            [&](const JsonReader& value) {
                std::vector<Item> all;
                for (const JsonReader& item : items_of(value, kMostItems))
                    all.push_back(read(item, all.size()));
                return all;
            },
            list);
    }

    void read_echoes() {
        take_list<suites::Echo>(
            "echoes", Observation::echoes, result_.evidence.echoes,
            [&](const JsonReader& object, std::size_t number) {
                object.allow({"action", "backward", "unit", "parameter"});
                suites::Echo echo;
                echo.action = read_action(object.at("action"), false);
                echo.backward = object.at("backward").boolean();
                echo.unit = read_unit(object.at("unit"));
                echo.parameter = parameter_named(object.at("parameter"));
                const suites::ParameterCase& parameter = case_.parameters[echo.parameter];
                echo.weights = tensor(fmt::format("echo/{}", number), Observation::echoes,
                                      {parameter.shape, {parameter.elements()}});
                return echo;
            });
    }

    void read_collectives() {
        std::vector<int> actions;
        take_list<CollectiveRecord>("collectives", Observation::collectives,
                                    result_.evidence.collectives,
                                    [&](const JsonReader& object, std::size_t) {
                                        actions.push_back(read_action(object.at("action"), true));
                                        return read_collective(object);
                                    });
        if (observes(Observation::collectives))
            result_.evidence.collective_actions = std::move(actions);
    }

    CollectiveRecord read_collective(const JsonReader& object) const {
        object.allow({"action", "phase", "traffic", "op", "reduction", "type", "in_elements",
                      "out_elements", "peer", "group", "sequence", "awaited"});
        CollectiveRecord record;
        record.rank = rank_;
        record.phase = read_named<memory::Phase>(object.at("phase"), memory::kPhases);
        record.traffic =
            read_named<collectives::Traffic>(object.at("traffic"), collectives::kTraffics);
        record.op = read_named<collectives::Op>(object.at("op"), kOps);
        record.reduction = read_named<collectives::Reduction>(object.at("reduction"), kReductions);
        record.type = read_named<memory::DType>(object.at("type"), std::size(memory::kAllDTypes));
        record.in_elements = read_count(object.at("in_elements"), kMostElements);
        record.out_elements = read_count(object.at("out_elements"), kMostElements);
        record.peer = static_cast<int>(object.at("peer").integer(-1, kMostRanks - 1));
        const JsonReader group = object.at("group");
        for (const JsonReader& rank : items_of(group, kMostRanks)) {
            record.group.push_back(static_cast<int>(rank.integer(0, part_.part.ranks - 1)));
            if (std::ranges::count(record.group, record.group.back()) > 1)
                rank.fail("stands twice in the group");
        }
        if (std::ranges::count(record.group, rank_) == 0)
            group.fail(fmt::format("rank {} is not in its own group: give world ranks", rank_));
        record.sequence = read_count(object.at("sequence"), kMostCount);
        record.awaited = object.at("awaited").boolean();
        return record;
    }

    void read_in_flight() {
        take_list<suites::InFlight>(
            "in_flight", Observation::in_flight, result_.evidence.in_flight,
            [&](const JsonReader& object, std::size_t) {
                object.allow({"action", "backward", "unit", "gradients", "parameters"});
                suites::InFlight in_flight;
                in_flight.action = read_action(object.at("action"), false);
                in_flight.backward = object.at("backward").boolean();
                in_flight.unit = read_unit(object.at("unit"));
                in_flight.gradient = read_count(object.at("gradients"), kMostCount);
                in_flight.parameter = read_count(object.at("parameters"), kMostCount);
                return in_flight;
            });
    }

    void read_races() {
        take(
            reader_, "races_watched", Observation::races,
            [](const JsonReader& value) { return value.boolean(); },
            result_.evidence.races_watched);
        take_list<collectives::Race>(
            "races", Observation::races, result_.evidence.races,
            [](const JsonReader& object, std::size_t) {
                object.allow({"kind", "operation", "number", "element"});
                return collectives::Race{
                    read_named<collectives::RaceKind>(object.at("kind"), kRaceKinds),
                    object.at("operation").text(), read_count(object.at("number"), kMostCount),
                    read_count(object.at("element"), kMostElements)};
            });
    }

    void read_peak_bytes() {
        take(
            reader_, "peak_bytes", Observation::peak_bytes,
            [](const JsonReader& bytes) {
                return read_bytes<memory::Phase, memory::kPhases>(bytes);
            },
            result_.evidence.peak_bytes);
    }

    static constexpr std::size_t kOps = 8;
    static constexpr std::size_t kReductions = 5;
    static constexpr std::size_t kRaceKinds = 3;

    const JsonReader& reader_;
    const PartOfCase& part_;
    const Case& case_;
    int rank_;
    std::map<std::string, std::size_t> parameters_;
    const SafetensorsReader* tensors_ = nullptr;
    std::set<std::string> known_tensors_;
    RankResult result_;
};

class EvidenceWriter {
  public:
    EvidenceWriter(const PartOfCase& part, int rank, const RankResult& result)
        : case_(*part.c), result_(result) {
        if (result.status > RunStatus::environment)
            throw std::logic_error("a status that the protocol does not have");
        json_ = {{"schema", kEvidenceSchema},
                 {"index", part.index},
                 {"id", case_.id},
                 {"rank", rank},
                 {"status", kStatuses[static_cast<std::size_t>(result.status)]},
                 {"message", result.message}};
        if (result.status != RunStatus::completed) return;
        json_["observed"] = Json::array();
        for (std::size_t i = 0; i < suites::kObservations; ++i)
            if (observes(static_cast<Observation>(i)))
                json_["observed"].push_back(name_of(static_cast<Observation>(i)));
        json_["snapshots"] = Json::array();
        for (const Snapshot& snapshot : result.evidence.snapshots) add_snapshot(snapshot);
        if (observes(Observation::echoes)) add_echoes();
        if (observes(Observation::collectives)) add_collectives();
        if (observes(Observation::in_flight)) add_in_flight();
        if (observes(Observation::races)) add_races();
        if (observes(Observation::peak_bytes))
            json_["peak_bytes"] = bytes_to_json<memory::Phase>(result.evidence.peak_bytes);
    }

    const SafetensorsWriter& tensors() const { return tensors_; }
    std::string text() const {
        // Messages of exceptions may hold anything.
        return json_.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }

  private:
    bool observes(Observation one) const { return result_.observed.has(one); }

    template <typename Enum, std::size_t Count>
    static Json bytes_to_json(const std::array<std::size_t, Count>& bytes) {
        Json json = Json::object();
        for (std::size_t i = 0; i < Count; ++i)
            json[std::string(name_of(static_cast<Enum>(i)))] = bytes[i];
        return json;
    }

    void add_tensor(Observation observation, const std::string& name, const Shape& shape,
                    const std::vector<float>& values) {
        if (observes(observation)) tensors_.add(name, shape, std::span(values));
    }

    void add_snapshot(const Snapshot& snapshot) {
        const std::string prefix = fmt::format("{}/", json_["snapshots"].size());
        Json json{{"action", snapshot.action}, {"owned", Json::array()}};
        for (const OwnedSlice& slice : snapshot.owned) {
            const std::string path = fmt::format("{}owned/{}/", prefix, json["owned"].size());
            json["owned"].push_back({{"parameter", case_.parameters[slice.parameter].name},
                                     {"begin", slice.begin},
                                     {"elements", slice.elements}});
            const Shape shape = {slice.elements};
            add_tensor(Observation::master, path + "master", shape, slice.master);
            add_tensor(Observation::momentum, path + "momentum", shape, slice.momentum);
            add_tensor(Observation::variance, path + "variance", shape, slice.variance);
            const bool is_due = is_after_step(snapshot) && !snapshot.skipped;
            if (is_due || !slice.gradient.empty())
                add_tensor(Observation::gradient, path + "gradient", shape, slice.gradient);
        }
        if (observes(Observation::weights))
            for (std::size_t p = 0; p < case_.parameters.size(); ++p)
                add_tensor(Observation::weights, prefix + "weights/" + case_.parameters[p].name,
                           case_.parameters[p].shape, snapshot.weights.at(p));
        if (observes(Observation::steps)) {
            json["steps_taken"] = snapshot.steps_taken;
            json["steps_skipped"] = snapshot.steps_skipped;
        }
        if (observes(Observation::loss_scale))
            json["loss_scale"] = suites::number_to_json(snapshot.loss_scale);
        if (observes(Observation::live_bytes))
            json["live_bytes"] = bytes_to_json<memory::Category>(snapshot.live_bytes);
        if (is_after_step(snapshot)) {
            if (observes(Observation::skips)) json["skipped"] = snapshot.skipped;
            if (observes(Observation::norm)) json["norm"] = suites::number_to_json(snapshot.norm);
            if (observes(Observation::clip_coefficient))
                json["clip_coefficient"] = suites::number_to_json(snapshot.clip_coefficient);
        }
        json_["snapshots"].push_back(std::move(json));
    }

    void add_echoes() {
        Json& echoes = json_["echoes"] = Json::array();
        for (const suites::Echo& echo : result_.evidence.echoes) {
            add_tensor(Observation::echoes, fmt::format("echo/{}", echoes.size()),
                       case_.parameters[echo.parameter].shape, echo.weights);
            echoes.push_back({{"action", echo.action},
                              {"backward", echo.backward},
                              {"unit", echo.unit},
                              {"parameter", case_.parameters[echo.parameter].name}});
        }
    }

    void add_collectives() {
        Json& all = json_["collectives"] = Json::array();
        for (const CollectiveRecord& record : result_.evidence.collectives)
            all.push_back({{"action", result_.evidence.collective_actions.at(all.size())},
                           {"phase", name_of(record.phase)},
                           {"traffic", name_of(record.traffic)},
                           {"op", name_of(record.op)},
                           {"reduction", name_of(record.reduction)},
                           {"type", name_of(record.type)},
                           {"in_elements", record.in_elements},
                           {"out_elements", record.out_elements},
                           {"peer", record.peer},
                           {"group", record.group},
                           {"sequence", record.sequence},
                           {"awaited", record.awaited}});
    }

    void add_in_flight() {
        Json& all = json_["in_flight"] = Json::array();
        for (const suites::InFlight& in_flight : result_.evidence.in_flight)
            all.push_back({{"action", in_flight.action},
                           {"backward", in_flight.backward},
                           {"unit", in_flight.unit},
                           {"gradients", in_flight.gradient},
                           {"parameters", in_flight.parameter}});
    }

    void add_races() {
        json_["races_watched"] = result_.evidence.races_watched;
        Json& races = json_["races"] = Json::array();
        for (const collectives::Race& race : result_.evidence.races)
            races.push_back({{"kind", name_of(race.kind)},
                             {"operation", race.operation},
                             {"number", race.number},
                             {"element", race.element}});
    }

    const Case& case_;
    const RankResult& result_;
    Json json_;
    SafetensorsWriter tensors_;
};

}  // namespace

bool has_finished(const fs::path& results, const PartOfCase& part, int rank) {
    std::error_code error;
    return fs::exists(fs::symlink_status(results / json_of(part, rank), error));
}

RankResult read_evidence(std::string_view json, const std::string& file,
                         const std::function<SafetensorsReader()>& tensors, const PartOfCase& part,
                         int rank) {
    const Json document = scenarios::parse_json(json, file);
    return EvidenceReader(JsonReader(document, file), part, rank).read_all(tensors);
}

RankResult read_evidence(const fs::path& results, const PartOfCase& part, int rank) {
    const UntrustedFile json =
        UntrustedFile::demand(results, json_of(part, rank), most_json_bytes(part));
    const auto tensors = [&] {
        return SafetensorsReader(
            UntrustedFile::demand(results, tensors_of(part, rank), most_tensor_bytes(part)));
    };
    return read_evidence(json.text(), json.name(), tensors, part, rank);
}

void write_evidence(const fs::path& results, const PartOfCase& part, int rank,
                    const RankResult& result) {
    std::error_code error;
    fs::create_directory(results / folder_of(part), error);  // if not, writing says so
    const EvidenceWriter writer(part, rank, result);
    writer.tensors().write(results / tensors_of(part, rank));
    // Last: it says that the rank has finished.
    WholeFile file(results / json_of(part, rank));
    file.write(writer.text());
    file.finish();
}

std::optional<Ready> read_ready(const fs::path& results, int rank) {
    constexpr std::uint64_t kMostReadyBytes = 1 << 16;
    const auto file = UntrustedFile::open(results, ready_of(rank), kMostReadyBytes);
    if (!file) return std::nullopt;
    const Json document = scenarios::parse_json(file->text(), file->name());
    const JsonReader reader(document, file->name());
    check_schema(reader);
    reader.allow({"schema", "subject", "version"});
    return Ready{reader.at("subject").text(), reader.at("version").text()};
}

void write_ready(const fs::path& results, int rank, const Ready& ready) {
    const Json json{
        {"schema", kEvidenceSchema}, {"subject", ready.subject}, {"version", ready.version}};
    WholeFile file(results / ready_of(rank));
    file.write(json.dump() + "\n");
    file.finish();
}

}  // namespace zeroproof::harness
