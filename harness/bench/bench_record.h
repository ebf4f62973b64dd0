// What one run of `zeroproof bench` has measured. docs/bench.md has the JSON form.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/topology.h"

namespace zeroproof::harness {

// Of elements sent, over all ranks, by what they travel over.
using LinkElements = collectives::LinkElements;

// Times of one thing, one for each repeat: the maximum over the ranks, which started together.
struct Timing {
    std::vector<double> seconds;
    std::vector<int> slowest_rank;  // by repeat
    double median_seconds() const;
    double lowest_seconds() const;
    double highest_seconds() const;
};

// What the cost model says of a thing, and whether that thing was used to fit it.
struct Prediction {
    double seconds = 0;
    bool used_for_fit = false;
};

// One operation of one size by one algorithm.
struct OperationResult {
    std::string op;         // collectives::name_of(Op)
    std::string algorithm;  // "native" is the backend's own
    std::string type;       // memory::name_of(DType)
    int ranks = 1;
    std::uint64_t bytes = 0;  // of the logical tensor: the larger of a rank's input and output
    Timing timing;
    // bus bandwidth = bus_factor * bytes / seconds: what each link must carry at least.
    double bus_factor = 1;
    std::string bus_formula;  // "2 (N - 1) / N"
    // What this algorithm sends; empty for the backend's own, which does not tell.
    std::optional<LinkElements> sent;
    std::optional<Prediction> prediction;
    // Bytes a second that bus bandwidth cannot exceed, where the topology tells.
    std::optional<double> bus_limit_bytes_per_s;
    std::uint64_t checked_elements = 0;  // compared with what must come out, tolerance zero

    double algorithm_bandwidth_bytes_per_s() const;
    double bus_bandwidth_bytes_per_s() const;
};

// Elements of one kind of traffic in one step, over all ranks, beside the formula.
struct VolumeRow {
    std::string traffic;  // gradient, parameter
    std::string op;
    std::string phase;
    std::uint64_t operations = 0;             // started by one rank
    std::uint64_t nominal_elements = 0;       // of one rank, measured
    std::uint64_t formula_elements = 0;       // of one rank, padding counted, from model and N
    std::uint64_t sent_elements = 0;          // of all ranks, measured: N - 1 parts in N of nominal
    std::uint64_t formula_sent_elements = 0;  // of all ranks
};

// Whole ZeRO steps of the dot model.
struct StageResult {
    int stage = 0;  // 0 is plain data parallelism
    std::string algorithm;
    std::string type;
    int ranks = 1;
    int micro_steps = 1;
    std::uint64_t parameters = 0;  // Phi
    std::uint64_t bucket_elements = 0;
    double compute_seconds = 0;  // given, of the forward and backward of one micro-step
    bool overlap = true;
    Timing timing;  // of a step: all micro-steps and the update
    // Within a step, of the rank that was slowest in the median repeat:
    double communication_seconds = 0;  // waiting for collectives
    double computing_seconds = 0;      // all else
    std::vector<VolumeRow> volumes;
    std::uint64_t nominal_elements = 0;  // the sum of the rows: 2 Phi or 3 Phi, padding counted
    std::string formula;                 // "2 Phi"
    std::optional<LinkElements> sent;    // as in OperationResult
    std::optional<Prediction> prediction;
};

struct FitErrors {
    // Geometric mean of max(predicted / measured, measured / predicted) - 1.
    double fitted = 0;
    double held_out = 0;
    std::uint64_t fitted_sizes = 0;
    std::uint64_t held_out_sizes = 0;
};

// Latency and bandwidth as fitted, for each algorithm that was.
struct FittedAlgorithm {
    std::string op;
    std::string algorithm;
    std::array<std::optional<double>, collectives::kLinkClasses> latency_s;
    std::array<std::optional<double>, collectives::kLinkClasses> bandwidth_bytes_per_s;
    FitErrors errors;
};

struct BenchRecord {
    std::string zeroproof_version;
    std::string command;
    std::string started;  // UTC, "2026-11-29T12:00:00Z"
    std::string host;
    int processors = 0;
    std::string backend;         // threads, mpi
    std::string backend_detail;  // "Open MPI 4.1.4"
    collectives::Topology topology;
    std::string topology_origin;  // file, or "discovered"
    bool complete = true;         // false: the run ended early, and the results are those so far
    std::string ended_by;         // why, if it is not complete
    std::vector<OperationResult> operations;
    std::vector<StageResult> stages;
    std::vector<FittedAlgorithm> fits;
};

}  // namespace zeroproof::harness
