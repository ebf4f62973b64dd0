// Evidence on its way from a program: for each part of a case and rank a JSON file and a file of
// tensors. docs/protocol.md.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "harness/protocol/case_document.h"
#include "harness/protocol/safetensors.h"
#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

inline constexpr std::string_view kEvidenceSchema = "zeroproof.evidence/1";

// What one rank says of one part of a case.
struct RankResult {
    suites::RunStatus status = suites::RunStatus::completed;
    std::string message;
    suites::Observations observed;
    suites::RankEvidence evidence;  // empty unless completed
};

// `results` is the folder of the launch. Whether the rank's JSON file is there: it has finished.
bool has_finished(const std::filesystem::path& results, const PartOfCase& part, int rank);

// What is not observed is left out of the evidence, even if it is given. Values that are wrong are
// evidence, NaN included; what contradicts the protocol or the case's shapes is refused. Throws
// scenarios::BadInput, which names the file and the place in it and says what is expected there.
RankResult read_evidence(const std::filesystem::path& results, const PartOfCase& part, int rank);

// The same, from what was read of the two files; `tensors` is called if they are needed.
RankResult read_evidence(std::string_view json, const std::string& file,
                         const std::function<SafetensorsReader()>& tensors, const PartOfCase& part,
                         int rank);

// For programs written in C++. `results` exists. Times of collectives are not written, nor is
// evidence of a run that was not completed. Throws Unwritable.
void write_evidence(const std::filesystem::path& results, const PartOfCase& part, int rank,
                    const RankResult& result);

// That a rank has been started, and with what.
struct Ready {
    std::string subject;
    std::string version;
};
// Empty until it is there. Throws scenarios::BadInput.
std::optional<Ready> read_ready(const std::filesystem::path& results, int rank);
void write_ready(const std::filesystem::path& results, int rank, const Ready& ready);

}  // namespace zeroproof::harness
