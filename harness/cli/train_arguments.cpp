#include "harness/cli/train_arguments.h"

namespace zeroproof::harness {

void add_train(CLI::App& app, TrainCommand& options, int& code) {
    constexpr bool kPowersOf1024 = false;
    CLI::App* train = app.add_subcommand(
        "train", "Train a transformer by the reference, with every byte accounted for");
    train->footer(
        "Examples: zeroproof train --model gpt2-small --stage 2 --ranks 2 --steps 200\n"
        "          zeroproof train --model llama-tiny --stage 3 --recompute 1 --json run.json\n"
        "          zeroproof train --checkpoint run --checkpoint-every 50; zeroproof train "
        "--resume "
        "run --ranks 4\n"
        "Exit codes: 0 done, 1 the bytes are not what was predicted, 2 usage, 4 a rank could not "
        "go "
        "on,\nas where memory is too small, 5 a fault of the harness.");
    train->add_flag("--list", options.list, "List the models that are known");
    train->add_option("--model", options.model, "A known model, or a file; docs/train.md")
        ->capture_default_str()
        ->type_name("MODEL");
    train
        ->add_option("--data", options.data,
                     "Any text: each byte is a token; by default this program's licence")
        ->type_name("FILE");
    train->add_option("--stage", options.stage, "0 is plain data parallelism")
        ->capture_default_str()
        ->check(CLI::Range(0, 3));
    train->add_option("--ranks", options.ranks, "Data-parallel ranks, each a thread")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    train
        ->add_option("--tensor-parallel", options.tensor_parallel,
                     "Cut each data-parallel rank's model over so many")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    train->add_option("--precision", options.precision, "Of weights, gradients and activations")
        ->capture_default_str()
        ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
    train->add_option("--steps", options.steps, "Of the whole run")
        ->capture_default_str()
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
    train->add_option("--batch", options.batch, "Sequences of a micro-step, on each rank")
        ->capture_default_str()
        ->check(CLI::Range(1, 65536));
    train->add_option("--micro-steps", options.micro_steps, "In one accumulation window")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
    train->add_option("--learning-rate", options.learning_rate, "Once it has grown")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1e3));
    train->add_option("--warm-up", options.warm_up, "Steps in which the learning rate grows")
        ->capture_default_str()
        ->check(CLI::Range(0, 1'000'000));
    train->add_option("--weight-decay", options.weight_decay, "Of matrices, decoupled")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1e3));
    train->add_option("--clip", options.clip, "Largest norm of the gradient; 0 does not clip")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1e9));
    train->add_option("--seed", options.seed, "Of weights, samples and dropout")
        ->capture_default_str();
    train->add_option("--bucket-elements", options.bucket_elements, "Of a bucket of gradients")
        ->capture_default_str()
        ->check(CLI::Range(1, 1 << 30));
    train->add_flag("--no-overlap", options.no_overlap, "Wait for each collective at once");
    train
        ->add_option("--recompute", options.recompute,
                     "Blocks between two activation checkpoints; 0 keeps all activations")
        ->capture_default_str()
        ->check(CLI::Range(0, 65536));
    train->add_flag("--partition-activations", options.partition_activations,
                    "Partition the checkpoints over the tensor-parallel ranks (ZeRO-R, Pa)");
    train->add_flag("--offload-activations", options.offload_activations,
                    "Move the checkpoints to the host and back (ZeRO-R, Pa+cpu)");
    train->add_flag("--contiguous-activations", options.contiguous_activations,
                    "Keep the checkpoints in one buffer (ZeRO-R, MD)");
    train
        ->add_option("--capacity", options.capacity_bytes,
                     "Of each rank's device, as 32M or 1G; by default without limit")
        ->transform(CLI::AsSizeValue(kPowersOf1024))
        ->type_name("BYTES");
    train
        ->add_option("--checkpoint", options.checkpoint_folder,
                     "Folder of this run's checkpoints; the last two are kept")
        ->type_name("DIR");
    train
        ->add_option("--checkpoint-every", options.checkpoint_every,
                     "Steps between two; by default only at the end")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
    train
        ->add_option("--resume", options.resume,
                     "Go on from the newest checkpoint of this folder, or from this one; the stage "
                     "and the number of ranks may be others")
        ->type_name("DIR");
    train->add_option("--json", options.json_file, "Write the record; docs/train.md")
        ->type_name("FILE");
    train
        ->add_option("--trace", options.trace_file,
                     "Write the bytes of each moment, for chrome://tracing or ui.perfetto.dev")
        ->type_name("FILE");
    train
        ->add_option("--trace-steps", options.trace_steps,
                     "Steps from the second on of which each change is kept")
        ->capture_default_str()
        ->check(CLI::Range(1, 10000));
    train
        ->add_option("--tensors", options.tensors_file,
                     "Write all gradients and weights of each step, for a comparison with another "
                     "implementation, as safetensors")
        ->type_name("FILE");
    train
        ->add_option("--timeout", options.timeout_seconds,
                     "Seconds that a rank may wait for another")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    train->add_option("--progress", options.progress, "A line of progress on the terminal")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "always", "never"}));
    train->callback([&] { code = train_command(options); });
}

}  // namespace zeroproof::harness
