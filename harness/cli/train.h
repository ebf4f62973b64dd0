// zeroproof train
#pragma once

#include <cstdint>
#include <string>

namespace zeroproof::harness {

struct TrainCommand {
    std::string model = "gpt2-small";
    std::string data;  // a file; empty: what is shipped
    int stage = 0;
    int ranks = 2;
    int tensor_parallel = 1;
    std::string precision = "fp32";
    std::int64_t steps = 100;
    std::uint64_t batch = 4;
    int micro_steps = 1;
    double learning_rate = 1e-3;
    double weight_decay = 0.1;
    std::int64_t warm_up = 10;
    double clip = 1;
    std::uint64_t seed = 1;
    std::uint64_t bucket_elements = 1 << 20;
    bool no_overlap = false;

    std::uint64_t recompute = 0;
    bool partition_activations = false;
    bool offload_activations = false;
    bool contiguous_activations = false;
    std::uint64_t capacity_bytes = 0;  // 0: no limit

    std::string checkpoint_folder;
    std::int64_t checkpoint_every = 0;
    std::string resume;
    std::int64_t timeout_seconds = 600;

    std::string json_file;
    std::string trace_file;
    std::int64_t trace_steps = 1;
    std::string tensors_file;
    std::string progress = "auto";
    bool list = false;
    std::string command;  // as typed, for the record
};

// Returns the exit code: 0 done, 1 the bytes are not what was predicted, 4 a rank could not go on,
// as where a device has too little memory. Throws scenarios::BadInput and Unwritable for what the
// user got wrong.
int train_command(const TrainCommand& options);

}  // namespace zeroproof::harness
