// zeroproof bench
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroproof::harness {

struct BenchCommand {
    std::string backend = "auto";  // threads, mpi; auto: mpi under mpirun, else threads
    std::string topology;  // a file or a known cluster; empty: $ZEROPROOF_TOPOLOGY, or this one
    int ranks = 0;         // of threads; 0: as the topology has, or 4

    std::vector<std::string> ops;
    std::vector<std::string> algorithms;
    std::uint64_t begin_bytes = 4096;
    std::uint64_t end_bytes = 16 << 20;
    std::uint64_t factor = 4;
    std::string type = "fp32";

    std::vector<int> stages;
    std::uint64_t parameters = 1'000'000;
    int units = 8;
    int micro_steps = 1;
    std::uint64_t bucket_elements = 1 << 20;
    std::vector<double> compute_ms = {0.0};
    bool no_overlap = false;

    int warm_up = 2;
    int repeats = 10;
    double least_seconds = 0.005;
    int timeout_seconds = 60;
    bool fit = false;

    std::string json_file;
    std::string csv_file;
    std::string progress = "auto";
    std::string command;  // as typed, for the record
};

// Returns the exit code: 0, 1 something measured is not what it must be, 4 a rank died or waited in
// vain. Throws scenarios::BadInput and Unwritable for what the user got wrong.
int bench_command(const BenchCommand& options);

}  // namespace zeroproof::harness
