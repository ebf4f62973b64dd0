#include "harness/cli/bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <optional>
#include <thread>

#include "collectives/mpi/mpi_world.h"
#include "collectives/thread_world.h"
#include "harness/bench/bench_csv.h"
#include "harness/bench/bench_json.h"
#include "harness/bench/bench_terminal.h"
#include "harness/bench/run_bench.h"
#include "harness/topology/discover.h"
#include "harness/topology/topology_file.h"
#include "harness/version.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;
using collectives::Topology;

constexpr int kWrongResult = 1;
constexpr int kUsage = 2;
constexpr int kRanksFailed = 4;
constexpr int kDefaultRanks = 4;

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Op op_named(const std::string& name) {
    for (const Op op : collectives::kCollectiveOps)
        if (collectives::name_of(op) == name) return op;
    throw scenarios::BadInput("--ops: unknown \"" + name +
                              "\"; known is: broadcast, reduce, all_reduce, reduce_scatter, "
                              "all_gather, all_to_all");
}

BenchPlan plan_of(const BenchCommand& options, const Topology& topology) {
    BenchPlan plan;
    plan.topology = topology;
    plan.type = memory::dtype_from_name(options.type);
    plan.measuring = {.warm_up = options.warm_up,
                      .repeats = options.repeats,
                      .least_seconds = options.least_seconds};
    std::vector<std::string> ops = options.ops;
    if (ops.empty() && (options.stages.empty() || options.fit))
        ops = {"all_reduce", "reduce_scatter", "all_gather"};
    for (const std::string& op : ops) plan.ops.push_back(op_named(op));
    plan.stages = options.stages;
    if (options.ops.empty() && options.stages.empty()) plan.stages = {0, 1, 2, 3};
    plan.algorithms = options.algorithms;
    if (plan.algorithms.empty()) {
        plan.algorithms = {"native", "ring"};
        if (topology.nodes > 1 && topology.ranks_per_node > 1)
            plan.algorithms.push_back("hierarchical");
    }
    if (options.begin_bytes > options.end_bytes)
        throw scenarios::BadInput(
            fmt::format("--begin {} is above --end {}", options.begin_bytes, options.end_bytes));
    for (std::uint64_t bytes = options.begin_bytes; bytes <= options.end_bytes;
         bytes *= options.factor) {
        plan.bytes.push_back(bytes);
        if (bytes > options.end_bytes / options.factor) break;
    }
    plan.parameters = options.parameters;
    plan.units = options.units;
    plan.micro_steps = options.micro_steps;
    plan.bucket_elements = options.bucket_elements;
    plan.compute_seconds.clear();
    for (const double ms : options.compute_ms) plan.compute_seconds.push_back(ms / 1000);
    plan.overlap = !options.no_overlap;
    plan.fit = options.fit;
    return plan;
}

// Everything on which the ranks must agree.
std::string text_of(const BenchCommand& o, const Topology& t) {
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                       fmt::join(o.ops, ","), fmt::join(o.algorithms, ","), o.begin_bytes,
                       o.end_bytes, o.factor, o.type, fmt::join(o.stages, ","), o.parameters,
                       o.units, o.micro_steps, o.bucket_elements, fmt::join(o.compute_ms, ","),
                       o.no_overlap, o.warm_up, o.repeats, o.least_seconds, o.fit, t.nodes,
                       t.ranks_per_node);
}

// A topology that is asked for, with where it comes from; empty if none is.
std::optional<Topology> wanted_topology(const BenchCommand& options, std::string& origin) {
    origin = options.topology;
    const char* variable = std::getenv("ZEROPROOF_TOPOLOGY");
    if (origin.empty() && variable != nullptr) origin = variable;
    if (origin.empty()) return std::nullopt;
    return load_topology(origin);
}

// What rank 0 keeps and shows.
class Report {
  public:
    explicit Report(const BenchCommand& options) : options_(options) {
        for (const std::string& file : {options.json_file, options.csv_file})
            if (!file.empty()) check_writable(file);
        record.zeroproof_version = kVersion;
        record.command = options.command;
        record.started = utc_now();
        record.host = host_name();
        record.processors = static_cast<int>(std::thread::hardware_concurrency());
        record.complete = false;
        record.ended_by = "it runs, or has been killed";
    }

    void show_progress(std::size_t done, std::size_t all, const std::string& what) const {
        const bool terminal = isatty(STDERR_FILENO) != 0;
        if (options_.progress == "never" || (options_.progress == "auto" && !terminal)) return;
        fmt::print(stderr, "{}[{}/{}] {}{}", terminal ? "\r\x1b[K" : "", done + 1, all, what,
                   terminal ? "" : "\n");
    }
    void clear_progress() const {
        if (isatty(STDERR_FILENO) != 0 && options_.progress != "never")
            fmt::print(stderr, "\r\x1b[K");
    }

    // What is known so far, so that a rank's death does not take it along.
    void keep() const {
        if (!options_.json_file.empty()) write_bench_json(options_.json_file, record);
    }
    void end(const std::string& failure) {
        record.complete = failure.empty();
        record.ended_by = failure;
        keep();
        if (!options_.csv_file.empty()) write_whole(options_.csv_file, to_bench_csv(record));
        clear_progress();
        fmt::print("{}", to_bench_terminal(record));
        std::fflush(stdout);
        if (!failure.empty()) fmt::print(stderr, "zeroproof: {}\n", failure);
    }

    BenchRecord record;

  private:
    const BenchCommand& options_;
};

// The run itself on one rank. Returns what was wrong with a result, the same on every rank.
std::string measure(Team& team, const BenchPlan& plan, Report* report) {
    BenchRecord nobodys;  // of the ranks that report nothing
    try {
        run_bench(
            team, plan, report == nullptr ? nobodys : report->record,
            [&](std::size_t done, std::size_t all, const std::string& what) {
                report->show_progress(done, all, what);
            },
            [&] { report->keep(); });
    } catch (const WrongResult& wrong) {
        return wrong.what();
    }
    return {};
}

void check_plan(const BenchPlan& plan, int ranks) {
    try {
        check(plan, ranks);
    } catch (const std::invalid_argument& bad) {
        throw scenarios::BadInput(bad.what());
    }
}

int run_threads(const BenchCommand& options) {
    std::string origin;
    std::optional<Topology> topology = wanted_topology(options, origin);
    const int ranks = options.ranks > 0 ? options.ranks
                      : topology        ? topology->ranks()
                                        : kDefaultRanks;
    if (!topology) {
        topology = discover(1, ranks);
        origin = "discovered";
    }
    const BenchPlan plan = plan_of(options, *topology);
    check_plan(plan, ranks);

    Report report(options);
    report.record.backend = "threads";
    report.record.backend_detail = fmt::format("{} threads of one process", ranks);
    report.record.topology = *topology;
    report.record.topology_origin = origin;
    std::string wrong;
    collectives::ThreadWorld world(ranks, std::chrono::seconds(options.timeout_seconds));
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        Team team(communicator);
        const std::string what = measure(team, plan, team.leads() ? &report : nullptr);
        if (team.leads()) wrong = what;
    });
    report.end(failure ? failure->message : wrong);
    return failure ? kRanksFailed : wrong.empty() ? 0 : kWrongResult;
}

// Equally many ranks on each node, or an error.
Topology discover_over(collectives::MpiWorld& mpi, Team& team) {
    const auto on_node = team.gather(static_cast<std::uint64_t>(mpi.ranks_on_this_node()));
    for (const std::uint64_t ranks : on_node)
        if (ranks != on_node.front())
            throw scenarios::BadInput(fmt::format(
                "nodes of {} and of {} ranks: give the same number to each, as with --map-by "
                "ppr:{}:node",
                on_node.front(), ranks, on_node.front()));
    const int ranks_per_node = static_cast<int>(on_node.front());
    return discover(team.ranks() / ranks_per_node, ranks_per_node);
}

int run_mpi_rank(const BenchCommand& options, collectives::MpiWorld& mpi, Team& team,
                 std::optional<Report>& report) {
    std::string origin;
    std::optional<Topology> topology = wanted_topology(options, origin);
    if (!topology) {
        topology = discover_over(mpi, team);
        origin = "discovered";
    }
    if (options.ranks > 0 && options.ranks != team.ranks())
        throw scenarios::BadInput(
            fmt::format("--ranks {}, but mpirun has started {}", options.ranks, team.ranks()));
    if (const int other = team.first_to_differ(text_of(options, *topology)); other >= 0)
        throw scenarios::BadInput(
            fmt::format("rank {} was started with other options than rank 0", other));
    const BenchPlan plan = plan_of(options, *topology);
    check_plan(plan, team.ranks());
    if (team.leads()) {
        report.emplace(options);
        report->record.backend = "mpi";
        report->record.backend_detail = collectives::MpiWorld::library();
        report->record.topology = *topology;
        report->record.topology_origin = origin;
    }
    const std::string wrong = measure(team, plan, report ? &*report : nullptr);
    if (report) report->end(wrong);
    return wrong.empty() ? 0 : kWrongResult;
}

int run_mpi(const BenchCommand& options) {
    if (!collectives::MpiWorld::is_built_in())
        throw scenarios::BadInput(
            "this build has no MPI: install libopenmpi-dev, and configure and build again");
    collectives::MpiWorld mpi(std::chrono::seconds(options.timeout_seconds));
    // The nodes of a lab are one machine.
    if (std::getenv("ZEROPROOF_LAB") != nullptr) mpi.wait_as(collectives::Waiting::politely);
    Team team(mpi.world());
    std::optional<Report> report;
    const auto say = [&](const std::string& what) {
        if (report)
            report->end(what);
        else if (team.leads())
            fmt::print(stderr, "zeroproof: {}\n", what);
        std::fflush(nullptr);
    };
    try {
        return run_mpi_rank(options, mpi, team, report);
    } catch (const scenarios::BadInput& bad) {  // the same on every rank
        say(bad.what());
        return kUsage;
    } catch (const std::exception& failure) {  // the others may wait for this rank
        if (!team.leads()) fmt::print(stderr, "zeroproof: {}\n", failure.what());
        say(failure.what());
        mpi.abort(kRanksFailed);
    }
}

}  // namespace

int bench_command(const BenchCommand& options) {
    if (options.backend == "threads" ||
        (options.backend == "auto" && !collectives::MpiWorld::was_launched()))
        return run_threads(options);
    return run_mpi(options);
}

}  // namespace zeroproof::harness
