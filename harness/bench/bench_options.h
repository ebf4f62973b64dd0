// What `zeroproof bench` is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/topology.h"
#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

// How long is measured.
struct Measuring {
    int warm_up = 2;               // iterations before the first repeat
    int repeats = 10;              // each of which gives one time
    double least_seconds = 0.005;  // of a repeat: short operations run several times in it
};

struct BenchPlan {
    collectives::Topology topology;
    memory::DType type = memory::DType::fp32;
    Measuring measuring;

    std::vector<collectives::Op> ops;
    std::vector<std::string> algorithms;  // native, or names of algorithms or of sets of them
    std::vector<std::uint64_t> bytes;     // of the logical tensor, ascending

    std::vector<int> stages;
    std::uint64_t parameters = 0;  // Phi
    int units = 8;
    int micro_steps = 1;
    std::uint64_t bucket_elements = 1 << 20;
    std::vector<double> compute_seconds = {0.0};  // of the forward and backward of a micro-step
    bool overlap = true;

    bool fit = false;
};

// Told on rank 0 before each measurement: how many are done, of how many, and what comes.
using BenchProgress = std::function<void(std::size_t done, std::size_t all, const std::string&)>;

}  // namespace zeroproof::harness
