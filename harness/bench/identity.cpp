#include "harness/bench/identity.h"

#include <fmt/format.h>

#include "harness/bench/bench_terminal.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {

std::string identity_of(const OperationResult& result) {
    return fmt::format("{} {} {} {}, {}", result.op, printable(result.algorithm), result.type,
                       counted(static_cast<std::size_t>(result.ranks), "rank"),
                       shown_bytes(result.bytes));
}

std::string identity_of(const StageResult& result) {
    return fmt::format("stage {} {} {} {}, {}, {} parameters in buckets of {}, compute {} s, {}",
                       result.stage, printable(result.algorithm), result.type,
                       counted(static_cast<std::size_t>(result.ranks), "rank"),
                       counted(static_cast<std::size_t>(result.micro_steps), "micro-step"),
                       result.parameters, result.bucket_elements, result.compute_seconds,
                       result.overlap ? "overlap" : "no overlap");
}

}  // namespace zeroproof::harness
